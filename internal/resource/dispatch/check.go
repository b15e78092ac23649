package dispatch

import (
	"bytes"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// check verifies that a state is one that admin.dispatch or a restore makes. Whether
// it is what the catalog says is checked by package system.
func check(a *op.Audit) error {
	return op.Each(a, &records, func(_ uint16, d *api.Dispatch) error {
		if d.Revision == 0 || !d.Paused && (d.RefuseIntake || d.Restored) {
			a.Report("dispatch", "dispatch", "revision %d: paused %v, intake refused %v, restored %v", d.Revision, d.Paused, d.RefuseIntake, d.Restored)
		}
		return nil
	})
}

// Implied says which state follows from the last change of the catalog that the
// shard has.
func Implied(a *op.Audit, d *api.Dispatch) { op.Imply(a, &records, a.Space.Shard, d) }

// ReadChanged reads the record of a change of kind changes.Dispatch.
func ReadChanged(record []byte) (*api.Dispatch, error) {
	d := new(api.Dispatch)
	return d, table.DecodeCBOR(record, d)
}

// Ruled says that the catalog's own state is what its changes lead to.
func Ruled(r kv.Reader, catalogShard uint16, d *api.Dispatch) (bool, error) {
	rules, ok, err := records.Get(r, catalogShard)
	return ok && bytes.Equal(table.EncodeCBOR(nil, &rules), table.EncodeCBOR(nil, d)), err
}

// Derived is the table that follows from the changes of the catalog. In the shard
// of the catalog the state is evidence of its own, and is kept.
func Derived(a *op.Audit) op.Derived {
	d := op.Derived{Table: records.Info(), Invariant: "catalog", Verified: true}
	if a.Space.Shard == 0 {
		d.Weigh = func(_, _, _ []byte) op.Weight { return op.Keep }
	}
	return d
}
