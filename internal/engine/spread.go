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
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/wire"
)

// changesPerCommand bounds one installation.
const changesPerCommand = 64

// spread brings changes of the catalog to every shard.
type spread struct{ *Engine }

// run brings every shard to the catalog's revision and returns when all have
// it. It can be repeated at any time.
func (e spread) run(ctx context.Context) error {
	select {
	case <-e.propagate:
		defer func() { e.propagate <- struct{}{} }()
	case <-ctx.Done():
		return fault.New(fault.UnknownWriteOutcome, "caller_left",
			"the change is stored, and not known to have reached every shard; repeat it with the same command id")
	}
	newest, err := revisionOf(e.store, system.CatalogShard)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, e.identity.Shards)
	for i := range errs {
		wg.Go(func() { errs[i] = e.bring(ctx, uint16(i)+1, newest) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// bring installs what one shard lacks.
func (e spread) bring(ctx context.Context, shard uint16, newest uint64) error {
	for {
		has, err := revisionOf(e.store, shard)
		if err != nil || has >= newest {
			return err
		}
		req := &system.InstallRequest{CommandID: e.commandID()}
		err = e.read(ctx, system.CatalogShard, func(s *kv.Snapshot) (err error) {
			req.Changes, err = changes.Since(s, system.CatalogShard, has, changesPerCommand)
			return err
		})
		if err != nil {
			return err
		}
		if len(req.Changes) == 0 {
			return fault.New(fault.Corruption, "catalog_history", "the catalog is at change %d and has no change after %d", newest, has)
		}
		if _, err := e.internal(ctx, shard, system.Install.Operation, req.CommandID, req); err != nil {
			return err
		}
	}
}

// commandID is a new version 7 id of the time that the store's clock tells, which
// is the one that logged time follows.
func (e spread) commandID() string {
	id := uuid.Must(uuid.NewV7())
	millis := uint64(e.clock.millis())
	for i := range 6 {
		id[i] = byte(millis >> (40 - 8*i))
	}
	return id.String()
}

// internal proposes a command of the store's own.
func (e spread) internal(ctx context.Context, shard uint16, o *api.Operation, id string, req any) (any, error) {
	fingerprint, encoded, err := wire.Fingerprint(o.Number, req)
	if err != nil {
		return nil, err
	}
	cmd := machine.NewCommand(o, machine.Identity{ID: uuid.MustParse(id), Principal: access.System}, fingerprint, encoded, req)
	out, err := e.log.Propose(ctx, shard, cmd, true, nil)
	if err == nil && out.Err != nil {
		err = out.Err
	}
	return out.Response, err
}

// freeze stops or allows writing to a resource, in every shard.
func (e spread) freeze(ctx context.Context, req *api.ResourcesDeleteRequest, frozen bool) (*directory.FreezeResponse, error) {
	f := &directory.FreezeRequest{
		CommandID: e.commandID(),
		Tenant:    req.Tenant, Database: req.Database, Name: req.Name, Frozen: frozen,
	}
	resp, err := e.internal(ctx, system.CatalogShard, directory.Freeze.Operation, f.CommandID, f)
	if err != nil {
		return nil, err
	}
	return resp.(*directory.FreezeResponse), e.run(ctx)
}

// thaw clears what a crash between the steps of a deletion left frozen, and
// brings every shard to the catalog's revision.
func (e spread) thaw(ctx context.Context) error {
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
	return e.run(ctx)
}
