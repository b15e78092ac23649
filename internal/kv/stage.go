package kv

// The stages of an entry, in the order in which they come to pass. Log written,
// log synced and applied are Pebble's doing: applied can come before either of
// the other two, and one write or sync of the log can serve several entries.
// Readers see an entry from applied on and are not answered before it is synced.
const (
	// StageEncoded: the commands that wait are joined into an entry; none of them
	// was evaluated. The log reports it.
	StageEncoded = "entry encoded"
	// StageEvaluated: every command of the entry has its outcome, and what they
	// write is an overlay in memory.
	StageEvaluated = "entry evaluated"
	// StageBuilt: the overlay is one Pebble batch, which is what the log holds of
	// an entry. Pebble does not have it yet.
	StageBuilt = "batch built"
	// StageWritten: bytes of a log were handed to the operating system. They
	// survive the process and not a power loss.
	StageWritten = "log written"
	// StageSynced: bytes of a log are on the disk. From here on what they hold
	// survives everything.
	StageSynced = "log synced"
	// StageApplied: the entry is in Pebble's memory and visible.
	StageApplied = "applied"
	// StageReplied: one command of the entry was handed its outcome. The log
	// reports it.
	StageReplied = "replied"
)

// Stages lists them all.
func Stages() []string {
	return []string{StageEncoded, StageEvaluated, StageBuilt, StageWritten, StageSynced, StageApplied, StageReplied}
}

// Stage tells Options.Stage that a stage has been reached.
func (s *Store) Stage(name string) {
	if s.opts.Stage != nil {
		s.opts.Stage(name)
	}
}
