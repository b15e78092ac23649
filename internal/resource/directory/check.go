package directory

import (
	"bytes"
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// before tells those that check rows of resources how each resource stands.
func before(a *op.Audit) error {
	a.Standing = standing(a)
	return nil
}

// check verifies that names and numbers agree, and that every removal of a deleted
// resource's rows is due. Whether a copy of the catalog is what the catalog says is
// checked by package system.
func check(a *op.Audit) error {
	named := map[uint32]Name{}
	err := op.Each(a, &byName, func(k Name, r *api.Resource) error {
		a.Count("resources", 1)
		where := place(k)
		if r.Tenant != k.Tenant || r.Database != k.Database || r.Name != k.Name {
			a.Report("reference", where, "the definition is of another resource")
		}
		if other, taken := named[r.ID]; taken {
			a.Report("reference", where, "has the number %d, as has %s", r.ID, place(other))
		}
		named[r.ID] = k
		n, ok, err := byID.Get(a.R, numberKey{k.Shard, r.ID})
		if err == nil && (!ok || n.Gone || n.Kind != r.Kind || nameOfNumber(k.Shard, &n) != k) {
			a.Report("reference", where, "the number %d does not lead to it", r.ID)
		}
		return err
	})
	if err != nil {
		return err
	}
	err = op.Each(a, &byID, func(k numberKey, n *number) error {
		if name, ok := named[k.ID]; ok == n.Gone || ok && name != nameOfNumber(k.Shard, n) {
			a.Report("reference", fmt.Sprintf("resource number %d", k.ID), "it leads to %s, which has another number or is not there", place(nameOfNumber(k.Shard, n)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return removals(a)
}

func place(k Name) string { return fmt.Sprintf("resource %q of %s/%s", k.Name, k.Tenant, k.Database) }

func nameOfNumber(shard uint16, n *number) Name { return Name{shard, n.Tenant, n.Database, n.Name} }

// removals verifies what is left of deleted resources.
func removals(a *op.Audit) error {
	return op.Each(a, &deletions, func(k numberKey, d *deletion) error {
		where := fmt.Sprintf("removal of resource number %d", k.ID)
		n, ok, err := byID.Get(a.R, k)
		if err != nil {
			return err
		}
		if !ok || !n.Gone || n.Kind != d.Kind {
			a.Report("removal", where, "rows are being removed of a %s that is not deleted", d.Kind)
			return nil // and nothing makes it due
		}
		if d.Armed == 0 || d.Armed > a.Now || k.Shard == 0 {
			a.Report("removal", where, "it is not armed for an instant that has come, or in the shard of the catalog, which has nothing to remove")
		}
		a.ImplyDue(table.DueDeletion, codec.AppendUint32(nil, k.ID), d.Armed)
		return nil
	})
}

// standing looks numbers up once each.
func standing(a *op.Audit) func(uint32) (op.Standing, error) {
	known := map[uint32]op.Standing{}
	return func(id uint32) (op.Standing, error) {
		if s, ok := known[id]; ok {
			return s, nil
		}
		k := numberKey{a.Space.Shard, id}
		n, ok, err := byID.Get(a.R, k)
		if err != nil {
			return op.Standing{}, err
		}
		s := op.Standing{Known: ok, Kind: n.Kind, Name: n.Name, Gone: n.Gone}
		if s.Gone {
			d, removing, err := deletions.Get(a.R, k)
			if err != nil {
				return op.Standing{}, err
			}
			s.Removing, s.From = removing, d.Next
		}
		known[id] = s
		return s, nil
	}
}

// Implied says which rows of the definitions follow from a change of the catalog
// that is the last one of its resource in this shard: the one of the name, unless
// it was deleted, and the one of the number.
func Implied(a *op.Audit, c *Changed) {
	shard := a.Space.Shard
	n := number{Tenant: c.Name.Tenant, Database: c.Name.Database, Name: c.Name.Name, Kind: c.kind, Gone: c.resource == nil}
	if c.resource != nil {
		op.Imply(a, &byName, Name{shard, n.Tenant, n.Database, n.Name}, c.resource)
		if c.resource.Deleting && shard == 0 { // only the catalog decides on deletions
			n.Fence = c.revision
		}
	}
	op.Imply(a, &byID, numberKey{shard, c.ID}, &n)
}

// Changed is what a change of the catalog did to one resource.
type Changed struct {
	ID   uint32
	Name Name // without a shard

	kind     api.ResourceKind
	resource *api.Resource // nil when it was deleted
	revision uint64
}

// ReadChanged reads the record of a change of kind changes.Resource, or of
// changes.Forgotten where deleted says so.
func ReadChanged(revision uint64, deleted bool, record []byte) (*Changed, error) {
	if deleted {
		var f forgotten
		err := table.DecodeCBOR(record, &f)
		return &Changed{ID: f.ID, Name: Name{0, f.Tenant, f.Database, f.Name}, kind: f.Kind, revision: revision}, err
	}
	var r api.Resource
	err := table.DecodeCBOR(record, &r)
	return &Changed{ID: r.ID, Name: Name{0, r.Tenant, r.Database, r.Name}, kind: r.Kind, resource: &r, revision: revision}, err
}

// Follows says why a change cannot come after the one before it of the same number,
// nil at first; "" where it can.
func (c *Changed) Follows(before *Changed) string {
	switch {
	case before == nil && c.resource == nil:
		return "it deletes what never was"
	case before == nil && c.resource.Version != 1:
		return "it begins with another version than 1"
	case before == nil:
		return ""
	case before.resource == nil:
		return "its resource was deleted before"
	case c.kind != before.kind || c.Name != before.Name:
		return "it changes what is fixed"
	case c.resource == nil && !before.resource.Deleting:
		return "it deletes what was not frozen"
	case c.resource == nil:
		return ""
	case c.resource.Domain != before.resource.Domain || c.resource.CreatedAt != before.resource.CreatedAt:
		return "it changes what is fixed"
	}
	was, is := before.resource.Version, c.resource.Version
	if was != is && was+1 != is || c.resource.UpdatedAt < before.resource.UpdatedAt {
		return fmt.Sprintf("version %d follows %d, or it is older", is, was)
	}
	return ""
}

// Ruled says that the catalog's own definition is what its changes lead to.
func Ruled(r kv.Reader, catalogShard uint16, c *Changed) (bool, error) {
	rules, ok, err := byName.Get(r, Name{catalogShard, c.Name.Tenant, c.Name.Database, c.Name.Name})
	switch {
	case err != nil:
		return false, err
	case c.resource == nil: // another of the same name may be there by now
		return !ok || rules.ID != c.ID, nil
	}
	return ok && bytes.Equal(table.EncodeCBOR(nil, &rules), table.EncodeCBOR(nil, c.resource)), nil
}

// Derived are the tables that follow from the changes of the catalog. In the shard
// of the catalog the definitions are evidence of their own, and are kept.
func Derived(a *op.Audit) []op.Derived {
	d := op.Derived{Table: byName.Info(), Invariant: "catalog", Verified: true}
	if a.Space.Shard == 0 {
		d.Weigh = func(_, _, _ []byte) op.Weight { return op.Keep }
	}
	return []op.Derived{d, {Table: byID.Info(), Invariant: "catalog", Verified: true}}
}
