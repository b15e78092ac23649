package engine

import (
	"context"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/wire"
)

// deletion goes the steps of package directory's delete.go.
type deletion struct {
	*call
	req *api.ResourcesDeleteRequest
}

func (c deletion) run(ctx context.Context) (any, error) {
	s := spread{c.Engine}
	known := false
	err := c.read(ctx, c.shard, func(s *kv.Snapshot) (err error) {
		known, err = machine.HasReceipt(s, c.shard, &c.command)
		return err
	})
	if err != nil {
		return nil, err
	}
	if known {
		return c.write(ctx)
	}
	if err := c.look(ctx); err != nil {
		return nil, err
	}
	// From the freeze on nothing ends early because a caller left: what is frozen
	// must be deleted or thaw.
	ctx = context.WithoutCancel(ctx)
	resp, err := c.frozen(ctx, s)
	if err == nil || fault.CodeOf(err) == fault.NotFound {
		return resp, err
	}
	if _, terr := s.freeze(ctx, c.req, false); terr != nil && fault.CodeOf(terr) != fault.NotFound {
		c.logger.Error("a resource stays frozen until the store is opened again", "resource", c.req.Name, "error", terr.Error())
	}
	return nil, err
}

// look refuses what can be refused without stopping anybody's work.
func (c deletion) look(ctx context.Context) error {
	var r *api.Resource
	err := c.read(ctx, c.shard, func(s *kv.Snapshot) (err error) {
		r, err = directory.Lookup(s, c.shard, c.req.Tenant, c.req.Database, c.req.Name)
		return err
	})
	if err != nil || r == nil {
		return err // the state machine answers NotFound
	}
	if err := directory.Deletable(r, c.req); err != nil || c.req.Purge {
		return err
	}
	holds, err := c.holds(ctx, r)
	if err == nil && holds {
		err = directory.NotEmpty(r)
	}
	return err
}

// frozen looks again, now that nothing can be written, and deletes.
func (c deletion) frozen(ctx context.Context, s spread) (any, error) {
	f, err := s.freeze(ctx, c.req, true)
	if err != nil {
		return nil, err
	}
	if c.req.HoldsRows, err = c.holds(ctx, &f.Resource); err != nil {
		return nil, err
	}
	c.req.Fence = f.Fence
	if c.command.Request, err = wire.EncodeLog(c.req); err != nil {
		return nil, err
	}
	return c.write(ctx)
}

// holds says whether any partition has a row of the resource.
func (c deletion) holds(ctx context.Context, r *api.Resource) (bool, error) {
	found := false
	for shard := uint16(1); shard <= c.identity.Shards && !found; shard++ {
		err := c.read(ctx, shard, func(s *kv.Snapshot) error {
			return partitions.Each(s, shard, [16]byte{}, func(space table.Space, _ api.PartitionRef) (bool, error) {
				var err error
				found, err = c.registry.Holds(s, r.Kind, table.Owner{Space: space, Resource: r.ID})
				return !found && err == nil, err
			})
		})
		if err != nil {
			return false, err
		}
	}
	return found, nil
}
