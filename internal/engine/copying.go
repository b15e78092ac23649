package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/system"
)

// Member says whether the store is that of a node of a cluster.
func Member(e *Engine) bool { return e.cluster != nil }

// Newest returns once the state of this node has everything that any node had
// acknowledged when it was called; on a store that runs alone at once. Errors are
// *fault.Error: OwnershipLost where no majority confirms it in time, RecoveryRequired
// where a shard has stopped on this node, Cancelled.
func Newest(ctx context.Context, e *Engine) error {
	if e.cluster == nil {
		return nil
	}
	barrier := func(shard uint16) error {
		return e.read(ctx, shard, func(*kv.Snapshot) error { return nil })
	}
	errs := make([]error, e.identity.Shards)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = barrier(uint16(i) + 1) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return notNewest(e, err)
		}
	}
	// The catalog comes last: a shard may have no change of it that it does not have.
	if err := barrier(system.CatalogShard); err != nil {
		return notNewest(e, err)
	}
	return nil
}

func notNewest(e *Engine, err error) error {
	f := *e.public(err, "")
	f.Detail = "this node cannot make sure that it has everything that the cluster has acknowledged: " + f.Detail
	return &f
}

// FitTogether says whether the shards of a copy, made at one moment, can begin a
// history together. Those of a member may not, because each follows a leader of its
// own: one is being replaced by a snapshot, or has a change of the catalog already
// that the catalog's own shard has not.
func FitTogether(r kv.Reader, shards uint16, member bool) (bool, error) {
	newest, err := changes.Revision(r, system.CatalogShard)
	if err != nil {
		return false, err
	}
	replicated := 0
	for shard := range shards + 1 {
		_, applied, errApplied := machine.StoredApplied(r, shard)
		has, errHas := changes.Revision(r, shard)
		if err := errors.Join(errApplied, errHas); err != nil {
			return false, err
		}
		if has > newest {
			return false, nil
		}
		if applied {
			replicated++
		}
	}
	return replicated == int(shards)+1 || replicated == 0 && !member, nil
}

// Unsteady is the error of a copy whose shards never fitted together.
func Unsteady() error {
	return fault.New(fault.ResourceExhausted, "catalog_changes",
		"this node follows the changes of the catalog, or is being brought up to date, and its shards never stood together; try again, or ask another node").
		WithRetry(fault.RetryAfterChange)
}
