package system

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/dispatch"
)

// check replays the changes of the catalog: the definitions, numbers and policies
// of the shard must be what those that it has lead to. A shard that lags behind the
// catalog is compared with the catalog as it was then.
func check(a *op.Audit) error {
	if err := identity(a); err != nil {
		return err
	}
	for _, d := range append(directory.Derived(a), access.Derived(a), dispatch.Derived(a)) {
		a.Derives(d)
	}
	x := replay{a: a, here: newState(), newest: newState()}
	if err := changes.Check(a, CatalogShard, x.change); err != nil {
		return err
	}
	a.Count("catalogChanges", x.count)
	if err := x.newest.ruled(a); err != nil {
		return err
	}
	//keyload:sorted what is implied is summed up, in any order
	for _, c := range x.here.resources {
		directory.Implied(a, c)
	}
	//keyload:sorted what is implied is summed up, in any order
	for _, p := range x.here.principals {
		access.Implied(a, p)
	}
	if x.here.dispatch != nil {
		dispatch.Implied(a, x.here.dispatch)
	}
	return nil
}

// state is the last change of each thing in the catalog.
type state struct {
	resources  map[uint32]*directory.Changed
	principals map[[2]string]*api.Principal
	dispatch   *api.Dispatch // nil where it was never changed
}

func newState() state {
	return state{resources: map[uint32]*directory.Changed{}, principals: map[[2]string]*api.Principal{}}
}

// replay follows the changes: as the shard has them, and all of them.
type replay struct {
	a            *op.Audit
	count        int64
	here, newest state
}

func (x *replay) change(c *changes.Change, has bool) error {
	x.count++
	where, why := fmt.Sprintf("change %d", c.Revision), ""
	switch c.Kind {
	case changes.Resource, changes.Forgotten:
		now, err := directory.ReadChanged(c.Revision, c.Kind == changes.Forgotten, c.Record)
		if err != nil {
			return err
		}
		why = now.Follows(x.newest.resources[now.ID])
		x.newest.resources[now.ID] = now
		if has {
			x.here.resources[now.ID] = now
		}
	case changes.Principal:
		now, err := access.ReadChanged(c.Record)
		if err != nil {
			return err
		}
		k := [2]string{now.Tenant, now.ID}
		why = access.Follows(x.newest.principals[k], now)
		x.newest.principals[k] = now
		if has {
			x.here.principals[k] = now
		}
	case changes.Dispatch:
		now, err := dispatch.ReadChanged(c.Record)
		if err != nil {
			return err
		}
		if before := x.newest.dispatch; before != nil && before.Revision+1 != now.Revision || before == nil && now.Revision != 1 {
			why = "its revision does not follow the one before it"
		}
		x.newest.dispatch = now
		if has {
			x.here.dispatch = now
		}
	default:
		why = fmt.Sprintf("it is of kind %d, which this program does not know", c.Kind)
	}
	if why != "" {
		x.a.Report("catalog", where, "%s", why)
		x.a.Distrust()
	}
	return nil
}

// ruled makes sure, in a data shard, that the catalog's own rows say what the
// changes lead to. Where they do not, which the check of the catalog's shard
// reports, nothing is made anew from the changes.
func (s *state) ruled(a *op.Audit) error {
	if a.Space.Shard == CatalogShard {
		return nil
	}
	all := true
	//keyload:sorted asks whether all agree
	for _, c := range s.resources {
		same, err := directory.Ruled(a.R, CatalogShard, c)
		if err != nil {
			return err
		}
		all = all && same
	}
	//keyload:sorted asks whether all agree
	for _, p := range s.principals {
		same, err := access.Ruled(a.R, CatalogShard, p)
		if err != nil {
			return err
		}
		all = all && same
	}
	if s.dispatch != nil {
		same, err := dispatch.Ruled(a.R, CatalogShard, s.dispatch)
		if err != nil {
			return err
		}
		all = all && same
	}
	if !all {
		a.Distrust()
	}
	return nil
}

// keyBytes is the length of a token key.
const keyBytes = 32

// identity verifies the one row that belongs to no shard, with the catalog's.
func identity(a *op.Audit) error {
	if a.Space.Shard != CatalogShard {
		return nil
	}
	id, ok, err := ReadIdentity(a.R)
	if err != nil || !ok {
		return err
	}
	if id.Format < 1 || id.Shards == 0 || id.Shards > MaxShards || len(id.TokenKeys) == 0 {
		a.Report("identity", "identity", "format %d, %d shards, %d token keys", id.Format, id.Shards, len(id.TokenKeys))
	}
	for _, k := range id.TokenKeys {
		if len(k) != keyBytes {
			a.Report("identity", "identity", "a token key has %d bytes, not %d", len(k), keyBytes)
		}
	}
	return nil
}
