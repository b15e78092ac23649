package backup

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
)

// subject is what a backup is made of.
type subject struct {
	store   *kv.Store
	version string
	member  bool // of a cluster
	// durable is what the store is, and what every copy of it must hold from then on.
	durable func(ctx context.Context) (*Manifest, error)
}

// durable is what the store is, and what is durable in it by now: of a cluster,
// everything that was acknowledged.
func (m *Maker) durable(ctx context.Context) (*Manifest, error) {
	if err := engine.Newest(ctx, m.engine); err != nil {
		return nil, notBegun(err)
	}
	found := &Manifest{Incarnation: uuid.UUID(m.engine.Identity().Incarnation).String()}
	for i, s := range m.engine.Status().Shards {
		found.Shards = append(found.Shards, Shard{Shard: i, Position: s.DurablePosition})
	}
	return found, nil
}

// cuts is how often a member is copied until its shards fit together.
const cuts = 10

// cut copies the store, and says what was durable before. Close the copy.
func cut(ctx context.Context, of *subject) (*kv.Checkpoint, *Manifest, error) {
	for range cuts {
		found, err := of.durable(ctx)
		if err != nil {
			return nil, nil, err
		}
		c, err := of.store.Checkpoint(ctx)
		if err != nil || !of.member {
			return c, found, err
		}
		fit, err := fits(c, uint16(len(found.Shards)-1))
		if fit && err == nil {
			return c, found, nil
		}
		if err = errors.Join(err, c.Close()); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, notBegun(engine.Unsteady())
}

// fits says whether the shards of a copy of a member fit together.
func fits(c *kv.Checkpoint, shards uint16) (fit bool, err error) {
	s, err := c.Store()
	if err != nil {
		return false, err
	}
	snap := s.NewSnapshot()
	fit, err = engine.FitTogether(snap, shards, true)
	return fit, errors.Join(err, snap.Close(), s.Close())
}

// notBegun says of an error of the store what it meant for the backup.
func notBegun(err error) error {
	f := *fault.From(err)
	f.Detail = "no backup was begun: " + f.Detail
	return &f
}
