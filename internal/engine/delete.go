package engine

import (
	"context"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
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
	r, err := s.freeze(ctx, c.req, true)
	if err != nil {
		return nil, err
	}
	// The look goes on after a caller left: a frozen resource must thaw.
	steady := context.WithoutCancel(ctx)
	holds, err := c.holds(steady, r)
	if err == nil {
		c.req.HoldsRows = holds
		if c.command.Request, err = wire.EncodeLog(c.req); err == nil {
			var resp any
			if resp, err = c.write(steady); err == nil {
				return resp, nil
			}
		}
	}
	if _, terr := s.freeze(steady, c.req, false); terr != nil && fault.CodeOf(terr) != fault.NotFound {
		c.logger.Error("a resource stays frozen until the store is opened again", "resource", c.req.Name, "error", terr.Error())
	}
	return nil, err
}

// holds says whether any partition has a row of the resource.
func (c deletion) holds(ctx context.Context, r *api.Resource) (bool, error) {
	owner, ok := c.registry.Purger(r.Kind)
	if !ok {
		return false, nil
	}
	found := false
	for shard := uint16(1); shard <= c.identity.Shards && !found; shard++ {
		err := c.read(ctx, shard, func(s *kv.Snapshot) error {
			return partitions.Each(s, shard, [16]byte{}, func(space table.Space, _ api.PartitionRef) (bool, error) {
				var err error
				found, err = op.Holds(s, owner, table.Owner{Space: space, Resource: r.ID})
				return !found && err == nil, err
			})
		})
		if err != nil {
			return false, err
		}
	}
	return found, nil
}
