package engine

// Stats is what the store has done since it was opened, for benches and
// metrics. Work is counted per command, Rows and Bytes after writes of one
// entry joined.
type Stats struct {
	Commands uint64 `json:"commands"`
	Entries  uint64 `json:"entries"`
	Syncs    uint64 `json:"syncs"`
	Gets     uint64 `json:"gets"`
	Scanned  uint64 `json:"scanned"`
	Written  uint64 `json:"written"` // rows put or deleted by commands
	Rows     uint64 `json:"rows"`    // rows that reached the store
	Bytes    uint64 `json:"bytes"`   // bytes of the log, with framing
	Disk     uint64 `json:"disk"`    // bytes of the store on disk
}

// Load is what the node holds for its callers at this moment. All of it is bounded
// by package limits.
type Load struct {
	Commands       int // that wait for the log
	Bytes          int // of their encoded requests
	QueriesRunning int
	QueriesWaiting int
	Parked         int // calls that wait for something to deliver
}

// LoadOf is what a node holds now.
func LoadOf(e *Engine) Load {
	l := Load{Parked: e.parked.taken()}
	l.QueriesRunning, l.QueriesWaiting = e.queries.counts()
	e.admission.mu.Lock()
	defer e.admission.mu.Unlock()
	l.Commands, l.Bytes = e.admission.count, e.admission.bytes
	return l
}

// Stats sums up every shard.
func (e *Engine) Stats() Stats {
	s := Stats{Syncs: e.store.Syncs(), Bytes: e.store.LogBytesWritten(), Disk: e.store.DiskBytes()}
	for i := uint16(0); i <= e.identity.Shards; i++ {
		st := e.log.Status(i)
		s.Commands += st.Position
		s.Entries += st.Entries
		s.Gets += st.Work.Gets
		s.Scanned += st.Work.Scanned
		s.Written += st.Work.Puts + st.Work.Deletes
		s.Rows += st.Rows
	}
	return s
}
