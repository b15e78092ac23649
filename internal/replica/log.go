package replica

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyload/keyload/internal/commitlog"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
)

// Config says what a replicated log runs on. The state store (Config.Store) is
// opened with NoSync: the journal repeats what a power loss takes of it.
type Config struct {
	commitlog.Config
	// Node is the id of this node, never 0 and never one that another node or an
	// earlier disk of this one had.
	Node uint64
	// Journal is a store of its own, opened without NoSync, for the logs of all shards.
	Journal *kv.Store
	// Spool is where snapshots wait to be installed.
	Spool     *kv.Files
	Transport Transport
	// Found makes this node the only voter of every shard of a store that is not
	// replicated yet, whatever it holds. A node without it that holds nothing waits to
	// be contacted by those whose learner it has become.
	Found bool
	// Tick is the unit of raft's time; 0 is 50 ms. A leader that is silent for ten to
	// twenty of them is replaced.
	Tick   time.Duration
	Logger *slog.Logger // nil discards
	// SnapshotBytes bounds how much each outgoing snapshot sends in a second; 0 is
	// 64 MiB.
	SnapshotBytes int
}

// Log is the replicated log of a node.
type Log struct {
	host   *host
	shards []*shard
}

var (
	_ commitlog.Log = (*Log)(nil)
	_ Receiver      = (*Log)(nil)
)

// host is what everything of a node shares.
type host struct {
	cfg    Config
	in     inbox
	life   context.Context // ends when the log is closed
	end    context.CancelFunc
	loop   *loop
	shards []*shard

	process   uint64        // random, of the ids of entries and reads
	counted   atomic.Uint64 // of those ids
	streams   sync.WaitGroup
	receiving receiving
}

// Open starts every shard where it was left. It refuses stores that do not belong
// together: RecoveryRequired, Corruption.
func Open(cfg Config) (*Log, error) {
	if cfg.Tick == 0 {
		cfg.Tick = 50 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.SnapshotBytes == 0 {
		cfg.SnapshotBytes = 64 << 20
	}
	h := &host{cfg: cfg}
	h.in.wake = make(chan struct{}, 1)
	h.life, h.end = context.WithCancel(context.Background())
	if err := h.open(); err != nil {
		h.end()
		return nil, err
	}
	for _, s := range h.shards {
		go s.apply.run()
		go s.proposals.run()
	}
	go h.loop.run()
	return &Log{h, h.shards}, nil
}

// Propose evaluates a command in a shard that this node leads, and returns once its
// entry is committed and applied here. Errors: OwnershipLost where this node does not
// lead, or lost the lead and the entry with it: nothing happened. UnknownWriteOutcome
// where it may have, or still may. left is called once, when the log holds the command
// no more.
func (l *Log) Propose(ctx context.Context, shard uint16, cmd machine.Command, urgent bool, left func()) (machine.Outcome, error) {
	if left == nil {
		left = func() {}
	}
	return l.shards[shard].proposals.propose(ctx, cmd, urgent, left)
}

// Read runs fn once on a snapshot that shows everything any node had acknowledged of
// the shard when Read began. OwnershipLost: no leader confirmed that in time.
func (l *Log) Read(ctx context.Context, shard uint16, fn func(*kv.Snapshot) error) error {
	s := l.shards[shard]
	index, err := s.reads.barrier(ctx)
	if err != nil {
		return err
	}
	if err := s.apply.wait(ctx, index); err != nil {
		return err
	}
	snap, err := s.apply.snapshot()
	if err != nil {
		return err
	}
	return errors.Join(fn(snap), snap.Close())
}

// NextDue is the next instant at which something of the shard is due, 0 for none and
// on every node but the leader. Changed also gets a value when the lead arrives.
func (l *Log) NextDue(shard uint16) (when int64, changed <-chan struct{}) {
	s := l.shards[shard]
	if !s.standing().here {
		return 0, s.dueChanged
	}
	return s.apply.nextDue.Load(), s.dueChanged
}

// Status tells where a shard stands on this node.
func (l *Log) Status(shard uint16) commitlog.Status {
	s := l.shards[shard]
	st := s.apply.status()
	now := s.standing()
	st.Leader, st.Term, st.Here = now.leader, now.term, now.here
	return st
}

// Close answers what is in flight and stops every shard. The transport must no longer
// hand anything in.
func (l *Log) Close() error {
	h := l.host
	h.end()
	<-h.loop.done
	var err error
	for _, s := range l.shards {
		s.proposals.close()
		s.apply.stop()
		err = errors.Join(err, s.apply.m.Close())
	}
	h.streams.Wait()
	return err
}
