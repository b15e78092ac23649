package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/machine"
)

// flight is an entry of this node on its way: proposed, and neither applied nor
// known to be lost.
type flight struct {
	proposals *proposals
	commands  []proposal
	id        flightID
	term      uint64 // in which it was made; it is proposed in no other
	entry     *machine.Entry
	data      []byte
	index     uint64 // in the log of this node; 0 before raft has taken it
	doubtful  uint64 // the tick at which its callers are told that nobody knows; 0 while the lead lasts
}

// add takes a flight, so that whoever applies its entry finds it.
func (fs *flights) add(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.byID[f.id] = f
}

// remove says whether the flight was still there: whoever removes it settles it.
func (fs *flights) remove(f *flight) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.byID[f.id] != f {
		return false
	}
	delete(fs.byID, f.id)
	return true
}

// all takes every flight out.
func (fs *flights) all() []*flight {
	return fs.takeIf(func(*flight) bool { return true })
}

func (fs *flights) takeIf(which func(*flight) bool) (out []*flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for id, f := range fs.byID {
		if which(f) {
			delete(fs.byID, id)
			out = append(out, f)
		}
	}
	return out
}

// placed notes the index that raft gave an entry.
func (fs *flights) placed(e *pb.Entry) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.byID[idOf(e.GetData())]; f != nil && f.term == e.GetTerm() {
		f.index = e.GetIndex()
	}
}

// reached takes out what an entry that is committed settles: its own flight, nil when
// it is not of this process, and those whose place it or an earlier one has taken.
// Such a flight can be in no log any more that is ever committed.
func (fs *flights) reached(e *pb.Entry) (own *flight, lost []*flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.byID) == 0 {
		return nil, nil
	}
	if f := fs.byID[idOf(e.GetData())]; f != nil && f.term == e.GetTerm() && f.index == e.GetIndex() {
		own = f
		delete(fs.byID, f.id)
	}
	for id, f := range fs.byID {
		if f.index != 0 && f.index <= e.GetIndex() {
			lost = append(lost, f)
			delete(fs.byID, id)
		}
	}
	return own, lost
}

// doubt sets when the callers of all that is in flight are told that nobody knows.
func (fs *flights) doubt(tick uint64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.byID {
		if f.doubtful == 0 {
			f.doubtful = tick
		}
	}
}

// expire tells those whose time has come. What becomes of their entries is found by
// repeating the commands.
func (fs *flights) expire(tick uint64) {
	for _, f := range fs.takeIf(func(f *flight) bool { return f.doubtful != 0 && f.doubtful <= tick }) {
		f.settle(unknown())
	}
}

// abandon tells all of them at once.
func (fs *flights) abandon() {
	for _, f := range fs.all() {
		f.settle(unknown())
	}
}

func unknown() error {
	return fault.New(fault.UnknownWriteOutcome, "leader_lost",
		"this node lost the lead while the command was on its way to the others; repeat it with the same id to learn its outcome")
}

// refused answers that raft has not taken the entry.
func (f *flight) refused() {
	if f.proposals.remove(f) {
		f.settle(f.proposals.s.notLeader())
	}
}

// settle answers every command with an error, and frees the slot. The flight must
// have been taken out, or never been added.
func (f *flight) settle(err error) {
	for i := range f.commands {
		f.commands[i].answer(result{err: err})
	}
	<-f.proposals.slots
}

// lost answers that the entry is in no log.
func (f *flight) lost() {
	f.settle(fault.New(fault.OwnershipLost, "entry_lost",
		"this node lost the lead before the command reached the others, and another entry has its place. Nothing happened; repeat it with the same id"))
}

// applied answers with what the commands came to.
func (f *flight) applied(outcomes []machine.Outcome) {
	for i := range f.commands {
		f.commands[i].answer(result{out: outcomes[i]})
	}
	<-f.proposals.slots
}
