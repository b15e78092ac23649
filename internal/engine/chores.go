package engine

import (
	"context"

	"github.com/keyload/keyload/internal/machine"
)

// Chores is what the leader does without being asked.
type Chores struct{ *Engine }

// Tick lets a shard handle what is due.
func (e Chores) Tick(ctx context.Context, shard uint16) (machine.Ticked, error) {
	if err := e.takesWrites(shard); err != nil {
		return machine.Ticked{}, err
	}
	out, err := e.log.Propose(ctx, shard, machine.Tick(), true, nil)
	return out.Tick, err
}

// NextDue is the next instant (milliseconds) at which something of a shard is
// due, 0 for none, and a channel that gets a value when it may have moved
// earlier.
func (e Chores) NextDue(shard uint16) (int64, <-chan struct{}) { return e.log.NextDue(shard) }

// Millis is the node's clock.
func (e Chores) Millis() int64 { return e.clock.millis() }
