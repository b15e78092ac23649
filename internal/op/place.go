package op

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// place is what was found of the owner of the row read last. Rows of one owner
// are together, so each is looked at once a table.
type place struct {
	table   table.ID
	owner   [table.OwnerBytes]byte
	known   bool
	removed bool
}

// ownerOf reads the owner that a key begins with, after the table; false where it is
// too short for one.
func ownerOf(key []byte) (o table.Owner, ok bool) {
	if len(key) < 1+table.OwnerBytes {
		return o, false
	}
	kr := codec.NewKeyReader(key[1:])
	return table.ReadOwner(&kr), true
}

// owned says that the keys of the resource's tables begin with an owner.
func (r *Resource) owned() bool { return r.Owned || len(r.Kinds) > 0 }

// visit verifies the owner of a row, and says that its rows are being removed.
func visit(a *Audit, id table.ID, key []byte, first bool) (removed bool, err error) {
	i, ok := a.home[id]
	if !ok || !a.resources[i].owned() || len(key) < 1+table.OwnerBytes {
		return false, nil
	}
	own := key[1 : 1+table.OwnerBytes]
	if !a.place.known || a.place.table != id || !bytes.Equal(own, a.place.owner[:]) {
		kr := codec.NewKeyReader(own)
		o := table.ReadOwner(&kr)
		if removed, err = look(a, &a.resources[i], o, a.Place(key), first); err != nil {
			return false, err
		}
		a.place = place{table: id, known: true, removed: removed}
		copy(a.place.owner[:], own)
	}
	if a.place.removed && first {
		a.Counts["rowsBeingRemoved"]++
	}
	return a.place.removed, nil
}

func look(a *Audit, r *Resource, o table.Owner, where string, report bool) (removed bool, err error) {
	tell := func(text string) {
		if report {
			a.Report("owner", where, "%s", text)
		}
	}
	shards := o.Partition == [16]byte{} // the row is the shard's own, about a resource
	if !shards && !a.Partitions[o.Partition] {
		tell("rows of a partition whose name this shard does not have")
	}
	if r.Owned && o.Resource == 0 {
		return false, nil
	}
	s, err := a.Standing(o.Resource)
	if err != nil {
		return false, a.Survive(err)
	}
	switch {
	case !s.Known:
		tell("rows of a resource that there never was")
	case r.Owned || shards && s.Gone:
	case !slices.Contains(r.Kinds, s.Kind):
		tell(fmt.Sprintf("rows that a %s cannot have", s.Kind))
	case s.Removing && bytes.Compare(o.Partition[:], s.From[:]) >= 0:
		return true, nil
	case s.Gone:
		tell("rows of a deleted resource, whose removal has passed them")
	}
	return false, nil
}

// Place names the owner of a row for a person, given the row's whole key; or the
// table, where it has no owner.
func (a *Audit) Place(key []byte) string {
	if len(key) == 0 {
		return "nowhere"
	}
	if table.ID(key[0]) == table.Due {
		return duePlace(a, key)
	}
	i, ok := a.home[table.ID(key[0])]
	if !ok || !a.resources[i].owned() || len(key) < 1+table.OwnerBytes {
		return fmt.Sprintf("table %d", key[0])
	}
	kr := codec.NewKeyReader(key[1:])
	return a.OwnerName(table.ReadOwner(&kr))
}

// OwnerName names an owner for a person.
func (a *Audit) OwnerName(o table.Owner) string {
	name := fmt.Sprintf("resource %d", o.Resource)
	if s, err := a.Standing(o.Resource); err == nil && s.Known {
		name = fmt.Sprintf("%s %q", s.Kind, s.Name)
	}
	if o.Partition == [16]byte{} {
		return name
	}
	return fmt.Sprintf("%s in partition %x", name, o.Partition[:8])
}

// duePlace names the owner of a due row, and who handles it.
func duePlace(a *Audit, key []byte) string {
	k, _, err := table.DueRows.Row(key, nil)
	i := a.handles(k.Kind)
	if err != nil || i < 0 {
		return "due rows"
	}
	where := fmt.Sprintf("due rows of kind %d of %s", k.Kind, a.resources[i].Name)
	if a.resources[i].owned() && len(k.Owner) >= table.OwnerBytes {
		kr := codec.NewKeyReader([]byte(k.Owner))
		where += ", " + a.OwnerName(table.ReadOwner(&kr))
	}
	return where
}
