package replica

import (
	"sync/atomic"

	"github.com/keyload/keyload/fault"
)

// shard is what the goroutines of one shard share.
type shard struct {
	number     uint16
	h          *host
	group      *group // the loop's
	proposals  *proposals
	reads      *reads
	apply      *applier
	stands     atomic.Pointer[standing]
	dueChanged chan struct{}
}

// standing is who leads a shard, as the loop saw it last.
type standing struct {
	leader, term uint64
	mine         bool // this node leads
	here         bool // and has applied an entry of the term
}

func (s *shard) standing() *standing { return s.stands.Load() }

// tellDue says that something may be due earlier than was known.
func (s *shard) tellDue() {
	select {
	case s.dueChanged <- struct{}{}:
	default:
	}
}

// stopped is the error of a shard that does nothing more on this node.
func stopped(shard uint16, cause error) error {
	return fault.New(fault.RecoveryRequired, "shard_stopped",
		"shard %d has stopped on this node: %v. Nothing happened; ask another node, put the cause right and start this one again", shard, cause)
}

// notLeader is the answer to who asks a node for what only the leader does.
func (s *shard) notLeader() error {
	if leader := s.standing().leader; leader != 0 && leader != s.h.cfg.Node {
		return fault.New(fault.OwnershipLost, "not_leader", "node %d leads shard %d, and not node %d, which was asked. Nothing happened; ask that one, with the same id",
			leader, s.number, s.h.cfg.Node)
	}
	return fault.New(fault.OwnershipLost, "no_leader", "shard %d has no leader now. Nothing happened; ask again with the same id once one is elected, which takes a second as a rule", s.number)
}
