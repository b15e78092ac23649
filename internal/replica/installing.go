package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/replica/journal"
	"github.com/keyload/keyload/internal/table"
)

const (
	// incomingStreams bounds the snapshots that a node receives at one time.
	incomingStreams = 2
	// loadBytes bounds a batch of rows of a snapshot.
	loadBytes = 4 << 20
)

// receiving are the snapshots that a node receives now.
type receiving struct {
	mu     sync.Mutex
	shards map[uint16]bool
	count  uint64
}

// enter takes a place for a shard, and names the file.
func (r *receiving) enter(shard uint16) (name string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shards[shard] || len(r.shards) >= incomingStreams {
		return "", false
	}
	if r.shards == nil {
		r.shards = map[uint16]bool{}
	}
	r.shards[shard] = true
	r.count++
	return fmt.Sprintf("snapshot-%d-%d", shard, r.count), true
}

func (r *receiving) leave(shard uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.shards, shard)
}

// spooled is a whole snapshot on disk.
type spooled struct {
	file   string
	header snapshotHeader
}

// installer brings received snapshots into a group.
type installer struct {
	g        *group
	received *spooled // what raft was told of last
	held     *saving  // what waits for the end of an installation
}

// bound ends a stream with its context.
type bound struct {
	ctx context.Context
	r   io.Reader
}

func (b bound) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.r.Read(p)
}

// ReceiveSnapshot keeps a snapshot on disk, and only then lets raft know of it: from
// there on a power loss ends with its installation.
func (l *Log) ReceiveSnapshot(ctx context.Context, from uint64, shard uint16, r io.Reader) error {
	h := l.host
	if int(shard) >= len(h.shards) {
		return errSnapshot
	}
	name, ok := h.receiving.enter(shard)
	if !ok {
		return fault.New(fault.ResourceExhausted, "snapshots", "this node receives as many snapshots as it may; send it again later")
	}
	defer h.receiving.leave(shard)
	sp := &spooled{file: name}
	err := h.cfg.Spool.Create(name, func(w io.Writer) error {
		s, err := openSnapshot(io.TeeReader(bound{ctx, r}, w))
		if err != nil {
			return err
		}
		sp.header = s.header
		m := s.header.message
		if s.header.incarnation != h.cfg.Machine.Incarnation || s.header.shard != shard || m.GetFrom() != from || m.GetTo() != h.cfg.Node || from == h.cfg.Node {
			return fmt.Errorf("%w: it is for another node, shard or store", errSnapshot)
		}
		return s.each(func(_, _ []byte) error { return nil })
	})
	if err != nil {
		return err
	}
	if !h.in.call(func(*loop) { h.shards[shard].group.installer.receive(sp) }) {
		return errors.Join(closing(), h.cfg.Spool.Remove(name))
	}
	return nil
}

// receive steps the message of a snapshot that is on disk.
func (in *installer) receive(sp *spooled) {
	g := in.g
	g.roster.heard[sp.header.message.GetFrom()] = g.l.ticks
	if g.idle() || in.received != nil { // raft may already have taken the one before it
		in.forget(sp)
		return
	}
	in.received = sp
	if err := g.node.Step(sp.header.message); err != nil {
		in.discard()
	}
}

// discard removes a snapshot that raft has not taken: it was no newer than the log.
func (in *installer) discard() {
	if in.received != nil && in.held == nil {
		in.forget(in.received)
		in.received = nil
	}
}

func (in *installer) forget(sp *spooled) {
	if err := in.g.l.h.cfg.Spool.Remove(sp.file); err != nil {
		in.g.l.h.cfg.Logger.Warn("the file of a snapshot stays", "file", sp.file, "error", err.Error())
	}
}

// begin writes the marker: from here on the state may be that of no entry,
// until the snapshot is in it. The group is held until then.
func (in *installer) begin(turn *journal.Turn, s *saving) {
	meta := s.m.GetSnapshot().GetMetadata()
	at := position{meta.GetIndex(), meta.GetTerm()}
	if in.received == nil || in.received.header.at() != at {
		panic(fmt.Sprintf("raft installs a snapshot at %d that nobody has received", at.index))
	}
	in.held = s
	turn.Install(in.g.s.number, journal.Install{Index: at.index, Term: at.term, File: in.received.file})
}

// install hands the snapshot to the apply goroutine, behind what it has to do.
func (s *saving) install() { s.g.s.apply.put(&work{install: s}) }

// install replaces the state of the shard.
func (a *applier) install(s *saving) error {
	sp := s.g.installer.received
	a.view.Lock()
	defer a.view.Unlock()
	at, err := a.s.h.load(a.s.number, sp.file)
	if err != nil {
		return err
	}
	mc := a.s.h.cfg.Machine
	mc.Shard = a.s.number
	m, err := machine.New(a.s.h.cfg.Store, mc) // the old one remembers rows that are gone
	if err != nil {
		return err
	}
	if err := a.m.Close(); err != nil {
		return errors.Join(err, m.Close())
	}
	a.adopt(m, at)
	a.s.h.in.call(func(l *loop) {
		if err := s.g.installer.end(s, &at); err != nil {
			l.broken = err
		}
	})
	return nil
}

// end lets the log begin after the snapshot, and the group go on.
func (in *installer) end(s *saving, at *machine.Applied) error {
	g := in.g
	turn := g.l.journal.Begin()
	turn.Reset(g.s.number, at.Index, at.Term)
	if err := turn.Commit(); err != nil {
		return err
	}
	turn = g.l.journal.Begin()
	turn.Append(g.s.number, s.m.GetEntries())
	if err := turn.Commit(); err != nil {
		return err
	}
	in.forget(in.received)
	in.received, in.held = nil, nil
	g.applied, g.roster.members, g.roster.changed = position{at.Index, at.Term}, confOf(at), at.Index
	if g.dead == nil {
		s.respond()
	}
	return nil
}

// load replaces the rows of a shard by those of a snapshot, and returns once they are
// on disk. After an error, or a power loss, the shard's rows are those of nothing.
func (h *host) load(shard uint16, file string) (at machine.Applied, err error) {
	f, err := h.cfg.Spool.Open(file)
	if err != nil {
		return at, err
	}
	defer f.Close() // it is only read
	s, err := openSnapshot(f)
	if err != nil {
		return at, err
	}
	batch := kv.NewBatch(h.cfg.Store)
	eachRange(shard, func(lower, upper []byte) error { batch.DeleteRange(lower, upper); return nil })
	err = s.each(func(key, value []byte) error {
		if key[0] == byte(table.Applied) { // the sender's own
			return nil
		}
		batch.Set(key, value)
		if batch.Bytes() < loadBytes {
			return nil
		}
		err := batch.Commit(false)
		batch = kv.NewBatch(h.cfg.Store)
		return err
	})
	if err != nil {
		return at, errors.Join(err, batch.Drop())
	}
	if err := batch.Commit(false); err != nil {
		return at, err
	}
	meta := s.header.message.GetSnapshot().GetMetadata()
	at = machine.Applied{Index: meta.GetIndex(), Term: meta.GetTerm(), Node: h.cfg.Node}
	at.Voters, at.Learners = membersOf(meta.GetConfState())
	tx := h.cfg.Store.NewTx()
	tx.Begin()
	machine.PutApplied(tx, shard, &at)
	pending, err := tx.Commit()
	if err == nil {
		err = pending.Wait()
	}
	if err = errors.Join(err, tx.Close()); err == nil {
		err = kv.Sync(h.cfg.Store)
	}
	return at, err
}

// repeatInstall ends an installation that the last run of the program did not.
func (h *host) repeatInstall(j *journal.Journal, shard uint16) error {
	in, ok := j.Shard(shard).Install()
	if !ok {
		return nil
	}
	at, err := h.load(shard, in.File)
	if err != nil {
		return fmt.Errorf("a snapshot that was being installed cannot be read again: %w", err)
	}
	if at.Index != in.Index || at.Term != in.Term {
		return apart("the snapshot that was being installed is another one")
	}
	turn := j.Begin()
	turn.Reset(shard, at.Index, at.Term)
	if state := j.Shard(shard).HardState(); state.GetCommit() != at.Index {
		turn.SetState(shard, &pb.HardState{Term: new(max(state.GetTerm(), at.Term)), Vote: new(state.GetVote()), Commit: new(at.Index)})
	}
	if err := turn.Commit(); err != nil {
		return err
	}
	return h.cfg.Spool.Remove(in.File)
}

// sweepSpool removes files that nobody will install.
func (h *host) sweepSpool(j *journal.Journal) error {
	names, err := h.cfg.Spool.Names()
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for i := range h.cfg.Shards + 1 {
		if in, ok := j.Shard(i).Install(); ok {
			needed[in.File] = true
		}
	}
	for _, name := range names {
		if needed[name] {
			continue
		}
		if err := h.cfg.Spool.Remove(name); err != nil {
			return err
		}
	}
	return nil
}
