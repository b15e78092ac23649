package solo

import (
	"context"
	"errors"
	"fmt"

	"github.com/keyload/keyload/internal/commitlog"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
)

// Log is the log of one node.
type Log struct{ shards []*shard }

var _ commitlog.Log = (*Log)(nil)

// Open starts every shard where it was left.
func Open(cfg commitlog.Config) (*Log, error) {
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

// Read runs fn on a snapshot and returns once everything it can have seen of the
// shard is durable. When a shard has stopped and the store shows more than is
// durable, fn runs again, on the last state that is. Reads thus go on.
func (l *Log) Read(ctx context.Context, shard uint16, fn func(*kv.Snapshot) error) error {
	return l.shards[shard].read(ctx, fn)
}

// NextDue is the next instant at which something of the shard is due; 0 for
// none. Changed gets a value when it may have moved earlier.
func (l *Log) NextDue(shard uint16) (when int64, changed <-chan struct{}) {
	s := l.shards[shard]
	return s.nextDue.Load(), s.dueChanged
}

// Status tells where a shard stands.
func (l *Log) Status(shard uint16) commitlog.Status { return l.shards[shard].status() }

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
