package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/wire"
)

// changesPerCommand bounds one installation.
const changesPerCommand = 64

// Propagate brings every shard to the catalog's revision and returns when all
// have it. It can be repeated at any time.
func (e *Engine) Propagate(ctx context.Context) error {
	select {
	case <-e.propagate:
		defer func() { e.propagate <- struct{}{} }()
	case <-ctx.Done():
		return fault.New(fault.UnknownWriteOutcome, "caller_left",
			"the change is stored, and not known to have reached every shard; repeat it with the same command id")
	}
	newest := e.revision(system.CatalogShard)
	var wg sync.WaitGroup
	errs := make([]error, e.identity.Shards)
	for i := range errs {
		wg.Go(func() { errs[i] = e.bring(ctx, uint16(i)+1, newest) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// bring installs what one shard lacks.
func (e *Engine) bring(ctx context.Context, shard uint16, newest uint64) error {
	for {
		has := e.revision(shard)
		if has >= newest {
			return nil
		}
		req := &system.InstallRequest{CommandID: uuid.Must(uuid.NewV7()).String()}
		err := e.read(ctx, system.CatalogShard, func(s *kv.Snapshot) (err error) {
			req.Changes, err = changes.Since(s, system.CatalogShard, has, changesPerCommand)
			return err
		})
		if err != nil {
			return err
		}
		if _, err := e.internal(ctx, shard, system.Install.Operation, req.CommandID, req); err != nil {
			return err
		}
	}
}

// internal proposes a command of the store's own.
func (e *Engine) internal(ctx context.Context, shard uint16, o *api.Operation, id string, req any) (any, error) {
	fingerprint, encoded, err := wire.Fingerprint(o.Number, req)
	if err != nil {
		return nil, err
	}
	cmd := machine.NewCommand(o, machine.Identity{ID: uuid.MustParse(id), Principal: access.System}, fingerprint, encoded, req)
	out, err := e.log.Propose(ctx, shard, cmd)
	if err == nil && out.Err != nil {
		err = out.Err
	}
	return out.Response, err
}

// revision is the catalog revision a shard has, applied entries included.
func (e *Engine) revision(shard uint16) uint64 {
	s := e.store.NewSnapshot()
	defer s.Close()
	r, err := changes.Revision(s, shard)
	if err != nil {
		e.logger.Error("catalog revision", "shard", shard, "error", err.Error())
	}
	return r
}

// deleteResource goes the steps of package directory's delete.go.
func (e *Engine) deleteResource(ctx context.Context, c *call, req *api.ResourcesDeleteRequest) (any, error) {
	known := false
	err := e.read(ctx, c.shard, func(s *kv.Snapshot) (err error) {
		known, err = machine.HasReceipt(s, c.shard, &c.command)
		return err
	})
	if err != nil {
		return nil, err
	}
	if known {
		return e.write(ctx, c)
	}
	r, err := e.freeze(ctx, req, true)
	if err != nil {
		return nil, err
	}
	// The look goes on after a caller left: a frozen resource must thaw.
	steady := context.WithoutCancel(ctx)
	holds, err := e.holds(steady, r)
	if err == nil {
		req.HoldsRows = holds
		if c.command.Request, err = wire.EncodeLog(req); err == nil {
			var resp any
			if resp, err = e.write(steady, c); err == nil {
				return resp, nil
			}
		}
	}
	if _, terr := e.freeze(steady, req, false); terr != nil && fault.CodeOf(terr) != fault.NotFound {
		e.logger.Error("a resource stays frozen until the store is opened again", "resource", req.Name, "error", terr.Error())
	}
	return nil, err
}

func (e *Engine) freeze(ctx context.Context, req *api.ResourcesDeleteRequest, frozen bool) (*api.Resource, error) {
	f := &directory.FreezeRequest{
		CommandID: uuid.Must(uuid.NewV7()).String(),
		Tenant:    req.Tenant, Database: req.Database, Name: req.Name, Frozen: frozen,
	}
	resp, err := e.internal(ctx, system.CatalogShard, directory.Freeze.Operation, f.CommandID, f)
	if err != nil {
		return nil, err
	}
	return &resp.(*directory.FreezeResponse).Resource, e.Propagate(ctx)
}

// holds says whether any partition has a row of the resource.
func (e *Engine) holds(ctx context.Context, r *api.Resource) (bool, error) {
	owner, ok := e.registry.Purger(r.Kind)
	if !ok {
		return false, nil
	}
	found := false
	for shard := uint16(1); shard <= e.identity.Shards && !found; shard++ {
		err := e.read(ctx, shard, func(s *kv.Snapshot) error {
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

// thaw clears what a crash between the steps of a deletion left frozen, and
// brings every shard to the catalog's revision.
func (e *Engine) thaw(ctx context.Context) error {
	var frozen []api.Resource
	s := e.store.NewSnapshot()
	err := directory.Each(s, system.CatalogShard, func(r *api.Resource) (bool, error) {
		if r.Deleting {
			frozen = append(frozen, *r)
		}
		return true, nil
	})
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	for _, r := range frozen {
		req := &api.ResourcesDeleteRequest{Tenant: r.Tenant, Database: r.Database, Name: r.Name}
		if _, err := e.freeze(ctx, req, false); err != nil {
			return err
		}
	}
	return e.Propagate(ctx)
}

// Tick lets a shard handle what is due.
func (e *Engine) Tick(ctx context.Context, shard uint16) (machine.Ticked, error) {
	if err := e.trustClock(shard); err != nil {
		return machine.Ticked{}, err
	}
	out, err := e.log.Propose(ctx, shard, machine.Tick())
	return out.Tick, err
}

// NextDue is the next instant (milliseconds) at which something of a shard is
// due, 0 for none, and a channel that gets a value when it may have moved
// earlier.
func (e *Engine) NextDue(shard uint16) (int64, <-chan struct{}) { return e.log.NextDue(shard) }

// Millis is the node's clock.
func (e *Engine) Millis() int64 { return e.clock.millis() }
