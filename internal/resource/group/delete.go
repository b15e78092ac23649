package group

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

// A group that is deleted is gone with its definition and its head: its number is
// never given again, so nobody finds the rows it leaves. Of those there may be a
// million, with a copy of an event each; due steps remove them, and a marker says
// where they go on.

// removal is how far the rows of a deleted group are removed.
type removal struct {
	Armed int64  `cbor:"1,keyasint"`
	Next  []byte `cbor:"2,keyasint,omitempty"` // key of the first row that is left; none has been looked for when nil
}

// removals are the markers of deleted groups that may have rows left.
var removals = table.Table[ref, removal]{
	ID: table.GroupRemoval, Name: "groupRemoval",
	Key:      func(dst []byte, f ref) []byte { return f.append(dst) },
	ParseKey: readRef, Encode: table.EncodeCBOR[removal], Decode: table.DecodeCBOR[removal],
}

// errNotDeleted says that the rows of a group that is there would be removed.
var errNotDeleted = errors.New("the group is not deleted")

// leftRows are the tables in which a deleted group may have rows left, in the
// order in which these are removed.
var leftRows = [...]table.ID{
	table.GroupDead, table.GroupRow, table.GroupRunEnd, table.GroupReady, table.GroupWait, table.GroupLease, table.GroupKeyed,
}

// under is the start of the keys of a group in one table.
func under(id table.ID, f ref) []byte { return f.append([]byte{byte(id)}) }

// applyDelete removes a group and its pin. What it costs does not depend on how
// many rows the group has.
func applyDelete(c *op.Ctx, req *api.SubscriptionsDeleteRequest) (*api.SubscriptionsDeleteResponse, error) {
	g, err := open(c, req.Group)
	if err != nil {
		return nil, err
	}
	h := &g.head
	if *req.Confirm != h.Checkpoint {
		return nil, fault.New(fault.RevisionConflict, "checkpoint", "group %q stands at checkpoint %d, and confirm is %d; look again before deleting it", g.name.Group, h.Checkpoint, *req.Confirm).
			With("checkpoint", "%d", h.Checkpoint)
	}
	// From here on it succeeds.
	table.Arm(c.Tx, g.ref.Owner.Shard, table.DueGroup, g.name.append(nil), &h.Armed, 0)
	definitions.Delete(c.Tx, g.name)
	heads.Delete(c.Tx, g.ref)
	for n := firstSkip(h); n <= h.Skip; n++ {
		skips.Delete(c.Tx, rowKey{g.ref, n})
	}
	armRemoval(c, g.ref, &removal{})
	c.Wake(wakeKey(g.ref), everyone)
	return &api.SubscriptionsDeleteResponse{DeadLetters: h.deadLetters()}, source.Repin(c, g.name.Source)
}

// armRemoval writes the marker and lets a due step go on at once.
func armRemoval(c *op.Ctx, f ref, m *removal) {
	table.Arm(c.Tx, f.Owner.Shard, table.DueRemoval, f.append(nil), &m.Armed, c.Now)
	removals.Put(c.Tx, f, m)
}

// applyRemoval is one step of removing the rows of a deleted group: at most budget
// of them, the marker being the last.
func applyRemoval(c *op.Ctx, key []byte, budget int) error {
	r := codec.NewKeyReader(key)
	f := readRef(&r)
	if err := r.End(); err != nil {
		return &table.Damage{Table: table.DueRows.Name, Key: key, Cause: err}
	}
	m, ok, err := removals.Get(c.Tx, f)
	if err != nil || !ok { // the marker goes when the source is deleted
		return err
	}
	if there, err := heads.Has(c.Tx, f); err != nil || there {
		return cmp.Or(err, error(&table.Damage{Table: removals.Name, Key: removals.Bytes(f), Cause: errNotDeleted}))
	}
	m.Armed = 0
	done, err := m.goOn(c.Tx, f, max(budget, 1))
	switch {
	case err != nil:
		return err
	case done:
		removals.Delete(c.Tx, f)
	default:
		armRemoval(c, f, &m)
	}
	return nil
}

// goOn removes rows from where the last step stopped, and says whether the budget
// is left for the marker.
func (m *removal) goOn(tx *kv.Tx, f ref, budget int) (done bool, err error) {
	last := []byte(nil)
	for _, id := range leftRows {
		last = under(id, f)
		if m.Next != nil && !bytes.HasPrefix(m.Next, last) {
			continue // an earlier step was through with it
		}
		n, next, err := table.RemoveSome(tx, last, m.Next, budget)
		if m.Next = next; err != nil || next != nil {
			return false, err
		}
		budget -= n
	}
	if m.Next != nil {
		return false, &table.Damage{Table: removals.Name, Key: removals.Bytes(f), Cause: errors.New("the removal of its rows goes on at a row of another group")}
	}
	if budget == 0 {
		m.Next = last
	}
	return budget > 0, nil
}
