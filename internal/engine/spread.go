package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	has, err := revisionOf(e.store, shard) // or what this node's copy has of it: what it lacks is passed over there
	if err != nil {
		return err
	}
	for has < newest {
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
		resp, err := e.internal(ctx, shard, system.Install.Operation, req.CommandID, req)
		if err != nil {
			return err
		}
		now := resp.(*system.InstallResponse).Revision
		if now <= has {
			return fault.New(fault.Corruption, "catalog_history", "shard %d stays at change %d of the catalog when it is given the next", shard, has)
		}
		has = now
	}
	return nil
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

// internal proposes a command of the store's own, on whichever node leads the shard.
func (e spread) internal(ctx context.Context, shard uint16, o *api.Operation, id string, req any) (any, error) {
	encoded, err := wire.EncodeLog(req)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(leaderWait); ; {
		resp, err := e.ownOnce(ctx, shard, o, id, req, encoded)
		if err == nil || e.cluster == nil || !untouched(err) || time.Now().After(deadline) {
			return resp, err
		}
		if err := e.cluster.wait(ctx, lookAgain); err != nil {
			return nil, err
		}
	}
}

func (e spread) ownOnce(ctx context.Context, shard uint16, o *api.Operation, id string, req any, encoded []byte) (any, error) {
	node := uint64(0)
	if e.cluster != nil {
		var err error
		if node, err = e.cluster.leader(ctx, shard, false); err != nil {
			return nil, err
		}
	}
	if node == 0 {
		return e.propose(ctx, shard, o, id, req, encoded)
	}
	return e.ask(ctx, node, shard, o, id, encoded)
}

// propose proposes a command of the store's own in a shard that is led here.
func (e spread) propose(ctx context.Context, shard uint16, o *api.Operation, id string, req any, encoded []byte) (any, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return nil, fmt.Errorf("engine: command id of %s: %w", o.Name, err)
	}
	cmd := machine.NewCommand(o, machine.Identity{ID: parsed, Principal: access.System}, wire.FingerprintEncoded(o.Number, encoded), encoded, req)
	out, err := e.log.Propose(ctx, shard, cmd, true, nil)
	if err == nil && out.Err != nil {
		err = out.Err
	}
	return out.Response, err
}

// ask has another node propose one.
func (e spread) ask(ctx context.Context, node uint64, shard uint16, o *api.Operation, id string, encoded []byte) (any, error) {
	body, err := wire.EncodeLog(forwarded{Op: o.Number, Principal: access.System, Request: encoded, Shard: shard, ID: id})
	if err != nil {
		return nil, err
	}
	b, err := e.cluster.peers.Call(ctx, node, callInternal, body)
	if err != nil {
		return nil, err
	}
	h, _ := e.registry.Numbered(o.Number)
	resp := h.NewResponse()
	return resp, wire.DecodeLog(b, resp)
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
