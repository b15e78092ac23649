package solo

import (
	"context"
	"errors"
	"fmt"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
)

// Config says what a log runs on.
type Config struct {
	Store *kv.Store
	// Machine is the configuration of every shard's machine; Shard is filled in.
	Machine machine.Config
	// Shards is how many data shards there are; the catalog's is shard 0.
	Shards uint16
	// Now is the leader's clock in milliseconds; Seed its randomness.
	Now  func() int64
	Seed func() uint64
	// Hint gets what entries hint at, after they are durable.
	Hint func(op.Hint)
}

// Log is the log of one node.
type Log struct{ shards []*shard }

// Open starts every shard where it was left.
func Open(cfg Config) (*Log, error) {
	l := &Log{}
	for i := uint16(0); i <= cfg.Shards; i++ {
		mc := cfg.Machine
		mc.Shard = i
		m, err := machine.New(cfg.Store, mc)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("shard %d: %w", i, err)
		}
		l.shards = append(l.shards, start(cfg, i, m))
	}
	return l, nil
}

// Propose evaluates a command in a shard and returns once its entry is durable. An
// urgent one comes before those that wait and are not; commands of one kind keep
// their order. An error says that the outcome is unknown: the shard stopped, or the
// caller's context ended after the command was handed over. left, if not nil, is
// called once, when the log holds the command no more; that may be after the return.
func (l *Log) Propose(ctx context.Context, shard uint16, cmd machine.Command, urgent bool, left func()) (machine.Outcome, error) {
	if left == nil {
		left = func() {}
	}
	return l.shards[shard].propose(ctx, cmd, urgent, left)
}

// Failure is why a shard takes no more writes; nil while it does.
func (l *Log) Failure(shard uint16) error {
	if err := l.shards[shard].failure(); err != nil {
		return stopped(shard, err)
	}
	return nil
}

// Read runs fn on a snapshot and returns once everything it can have seen of the
// shard is durable. When a shard has stopped and the store shows more than is
// durable, fn runs again, on the last state that is. Reads thus go on.
func (l *Log) Read(ctx context.Context, shard uint16, fn func(*kv.Snapshot) error) error {
	return l.shards[shard].read(ctx, fn)
}

// Reached says whether the shard has applied a position. A read that begins
// after that sees it, and Read waits until it is durable.
func (l *Log) Reached(shard uint16, position uint64) bool {
	return l.shards[shard].applied.Load() >= position
}

// NextDue is the next instant at which something of the shard is due; 0 for
// none. Changed gets a value when it may have moved earlier.
func (l *Log) NextDue(shard uint16) (when int64, changed <-chan struct{}) {
	s := l.shards[shard]
	return s.nextDue.Load(), s.dueChanged
}

// Status is where a shard stands.
type Status struct {
	Position, Durable uint64
	Digest            uint64
	Time              int64
	Epoch             uint64
	Err               error
	// Entries, Rows and Bytes are what was handed to the store since Open, Work
	// what evaluation cost.
	Entries, Rows, Bytes uint64
	Work                 kv.Work
}

// Status tells where a shard stands.
func (l *Log) Status(shard uint16) Status { return l.shards[shard].status() }

// Shards is how many shards there are, the catalog's included.
func (l *Log) Shards() uint16 { return uint16(len(l.shards)) }

// Err is the first failure of any shard.
func (l *Log) Err() error {
	for _, s := range l.shards {
		if err := s.failure(); err != nil {
			return err
		}
	}
	return nil
}

// Close answers what is in flight and stops every shard.
func (l *Log) Close() error {
	var first error
	for _, s := range l.shards {
		s.stop()
	}
	for _, s := range l.shards {
		<-s.done
		if err := errors.Join(s.forget(), s.m.Close()); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// stopped is the error of a shard that takes no more commands.
func stopped(shard uint16, cause error) error {
	return fault.New(fault.RecoveryRequired, "shard_stopped",
		"shard %d has stopped and takes no writes: %v. Reads go on; put the cause right and start the store again", shard, cause)
}
