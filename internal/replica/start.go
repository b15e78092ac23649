package replica

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/replica/journal"
)

// open makes every shard, after the two stores were found to belong together.
func (h *host) open() error {
	var seed [8]byte
	rand.Read(seed[:])
	h.process = binary.BigEndian.Uint64(seed[:])
	j, err := journal.Open(h.cfg.Journal, h.cfg.Shards)
	if err != nil {
		return err
	}
	if err := h.identify(j); err != nil {
		return err
	}
	h.loop = &loop{h: h, journal: j, retention: usual, done: make(chan struct{})}
	if err := h.sweepSpool(j); err != nil {
		return err
	}
	for i := range h.cfg.Shards + 1 {
		if err := h.openShard(j, i); err != nil {
			for _, s := range h.shards {
				s.apply.m.Close()
			}
			return fmt.Errorf("shard %d: %w", i, err)
		}
	}
	return nil
}

func (h *host) openShard(j *journal.Journal, number uint16) error {
	at, err := h.recover(j, number)
	if err != nil {
		return err
	}
	mc := h.cfg.Machine
	mc.Shard = number
	m, err := machine.New(h.cfg.Store, mc)
	if err != nil {
		return err
	}
	s := &shard{number: number, h: h, dueChanged: make(chan struct{}, 1)}
	s.stands.Store(&standing{})
	s.reads = &reads{s: s}
	s.proposals = newProposals(s)
	s.apply = newApplier(s, m, at)
	g := &group{l: h.loop, s: s, log: j.Shard(number), applied: position{at.Index, at.Term}}
	g.roster = roster{g, confOf(&at), at.Index, map[uint64]uint64{}}
	g.changes, g.moves, g.rounds = memberChanges{g, map[flightID]*change{}}, moves{g: g}, rounds{g: g, open: map[uint64]*round{}}
	g.sender, g.installer = sender{g, map[uint64]*hold{}}, installer{g: g}
	s.group = g
	if err := s.group.start(); err != nil {
		m.Close()
		return err
	}
	h.shards = append(h.shards, s)
	h.loop.groups = append(h.loop.groups, s.group)
	return nil
}

// recover reads how far the state of a shard is, and holds it against the journal.
func (h *host) recover(j *journal.Journal, number uint16) (at machine.Applied, err error) {
	if err := h.repeatInstall(j, number); err != nil {
		return at, err
	}
	snap := h.cfg.Store.NewSnapshot()
	defer snap.Close()
	at, has, err := machine.StoredApplied(snap, number)
	if err != nil {
		return at, err
	}
	log := j.Shard(number)
	first, firstTerm := log.Truncated()
	last, _ := log.LastIndex()
	state := log.HardState()
	switch {
	case !has && first == 0 && last == 0:
		return at, nil // it waits to be contacted
	case !has:
		return at, apart("the journal goes on after entry %d, and the state of the shard is gone", first)
	case at.Node != h.cfg.Node:
		return at, apart("the state is that of node %d, and this is node %d", at.Node, h.cfg.Node)
	case first == 0 && last == 0:
		return at, apart("the state holds entry %d, and the journal is gone", at.Index)
	case at.Index > last:
		return at, apart("the state holds entry %d, and the journal ends at %d", at.Index, last)
	case at.Index < first:
		return at, apart("the state holds entry %d, and the journal begins after %d", at.Index, first)
	}
	term, err := log.Term(at.Index)
	if err != nil {
		return at, err
	}
	if at.Index == first {
		term = firstTerm
	}
	if term != at.Term || state.GetTerm() < term {
		return at, apart("the state holds entry %d of term %d, and the journal has one of term %d there", at.Index, at.Term, term)
	}
	return at, nil
}

// apart is the error of two stores that do not belong together.
func apart(format string, args ...any) error {
	return fault.New(fault.RecoveryRequired, "stores_apart",
		"the store and the journal of this node do not belong together: %s. Nothing was changed. Bring the missing one back, or remove both and let the node join again under a new id",
		fmt.Sprintf(format, args...))
}

// start makes the raft group of a shard.
func (g *group) start() error {
	last, err := g.log.LastIndex()
	if err != nil {
		return err
	}
	commit := g.log.HardState().GetCommit()
	if commit < g.applied.index || commit > last { // it may be lost with the power, or ahead of what was
		commit = g.applied.index
	}
	g.node, err = raft.NewRawNode(&raft.Config{
		ID: g.l.h.cfg.Node, ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks,
		Storage: &storage{g.log, g, commit}, Applied: g.applied.index, AsyncStorageWrites: true,
		MaxSizePerMsg: messageBytes, MaxCommittedSizePerReady: applyingBytes, MaxUncommittedEntriesSize: uncommittedBytes,
		MaxInflightMsgs: inflightMessages, MaxInflightBytes: inflightBytes,
		CheckQuorum: true, PreVote: true, ReadOnlyOption: raft.ReadOnlySafe, DisableProposalForwarding: true, StepDownOnRemoval: true,
		Logger: quiet{g.l.h.cfg.Logger, g.s.number},
	})
	if err == nil && len(g.roster.members.GetVoters()) == 1 && g.roster.members.GetVoters()[0] == g.l.h.cfg.Node {
		err = g.node.Campaign() // nobody else can
	}
	return err
}

// storage is what raft reads: the journal, with what the state adds.
type storage struct {
	*journal.Shard
	g      *group
	commit uint64
}

var _ raft.Storage = (*storage)(nil)

func (s *storage) InitialState() (*pb.HardState, *pb.ConfState, error) {
	h := s.HardState()
	if h == nil {
		return nil, s.g.roster.members, nil
	}
	return &pb.HardState{Term: new(h.GetTerm()), Vote: new(h.GetVote()), Commit: new(s.commit)}, s.g.roster.members, nil
}

// Snapshot names the state as the loop knows it; what is streamed is read when the
// stream begins and can be newer. Before the last change of members is in the state,
// a snapshot might not name its receiver.
func (s *storage) Snapshot() (*pb.Snapshot, error) {
	g := s.g
	if g.applied.index < g.roster.changed || g.applied.index == 0 {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return snapshotOf(g.applied, g.roster.members), nil
}

func snapshotOf(at position, members *pb.ConfState) *pb.Snapshot {
	return &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(at.index), Term: new(at.term), ConfState: members}}
}

func confOf(at *machine.Applied) *pb.ConfState {
	return &pb.ConfState{Voters: at.Voters, Learners: at.Learners, AutoLeave: new(false)}
}

// membersOf are the members of a configuration; changes one by one are never joint.
func membersOf(cs *pb.ConfState) (voters, learners []uint64) { return cs.GetVoters(), cs.GetLearners() }

// found makes the state of a store that is not replicated the first of a log, whose
// only voter is this node. A journal that says so is written before and after: what a
// power loss left of it is done again.
func (h *host) found(j *journal.Journal) error {
	begin := j.Begin()
	begin.SetIdentity(journal.Identity{Incarnation: h.cfg.Machine.Incarnation, Node: h.cfg.Node, Founding: true})
	if err := begin.Commit(); err != nil {
		return err
	}
	tx := h.cfg.Store.NewTx()
	defer tx.Close()
	tx.Begin()
	end := j.Begin()
	for i := range h.cfg.Shards + 1 {
		head, err := machine.StoredHead(tx, i)
		if err != nil {
			return err
		}
		if head.Epoch >= math.MaxUint64/2 {
			return fault.New(fault.Corruption, "epoch", "shard %d is in epoch %d, which no log reaches", i, head.Epoch)
		}
		term := max(head.Epoch, 1) // epochs go on rising
		machine.PutApplied(tx, i, &machine.Applied{Index: 1, Term: term, Node: h.cfg.Node, Voters: []uint64{h.cfg.Node}})
		end.Reset(i, 1, term)
		end.SetState(i, &pb.HardState{Term: new(term), Vote: new(uint64), Commit: new(uint64(1))})
	}
	pending, err := tx.Commit()
	if err == nil {
		err = pending.Wait()
	}
	if err == nil {
		err = kv.Sync(h.cfg.Store)
	}
	if err != nil {
		return err
	}
	end.SetIdentity(journal.Identity{Incarnation: h.cfg.Machine.Incarnation, Node: h.cfg.Node})
	return end.Commit()
}

// identify makes a new journal this node's, and refuses one of another node or store.
func (h *host) identify(j *journal.Journal) error {
	if h.cfg.Node == 0 {
		return fault.New(fault.Validation, "node_id", "a node of a cluster has an id above 0")
	}
	id, ok := j.Identity()
	if ok && (id.Incarnation != h.cfg.Machine.Incarnation || id.Node != h.cfg.Node) {
		return apart("the journal is that of node %d, in a history of its own", id.Node)
	}
	if ok && !id.Founding {
		return nil
	}
	if !ok {
		replicated, err := h.replicated()
		if err != nil {
			return err
		}
		if replicated {
			return apart("the state is one of a replicated log, and the journal is gone")
		}
	}
	if h.cfg.Found {
		return h.found(j)
	}
	if ok {
		return apart("this node was about to begin a cluster, and is now started to join one")
	}
	turn := j.Begin()
	turn.SetIdentity(journal.Identity{Incarnation: h.cfg.Machine.Incarnation, Node: h.cfg.Node})
	return turn.Commit()
}

// replicated says whether any shard of the state belongs to a replicated log.
func (h *host) replicated() (bool, error) {
	snap := h.cfg.Store.NewSnapshot()
	defer snap.Close()
	for i := range h.cfg.Shards + 1 {
		if _, ok, err := machine.StoredApplied(snap, i); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
