package changes

import (
	"fmt"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Check verifies that the changes of the catalog are without gaps and end at the
// catalog's revision, that the shard has no more of them, and calls fn for all of
// them in order; has says whether the shard has the change. An error of fn says that
// the change cannot be read.
func Check(a *op.Audit, catalogShard uint16, fn func(c *Change, has bool) error) error {
	h, _, err := heads.Get(a.R, a.Space.Shard)
	if err != nil {
		return err
	}
	newest, _, err := heads.Get(a.R, catalogShard)
	if err != nil {
		return err
	}
	if h.Revision > newest.Revision {
		a.Report("catalog", "catalog", "the shard has change %d, the catalog %d only", h.Revision, newest.Revision)
		a.Distrust()
	}
	if err := own(a, catalogShard); err != nil {
		return err
	}
	last := uint64(0)
	err = history.Scan(a.R, table.Range{Prefix: codec.AppendUint16(nil, catalogShard)}, func(k historyKey, c *Change) (bool, error) {
		if last++; c.Revision != k.Revision || k.Revision != last {
			a.Report("catalog", fmt.Sprintf("change %d", k.Revision), "it says that it is change %d, and %d was due", c.Revision, last)
			a.Distrust()
		}
		if err := fn(c, k.Revision <= h.Revision); err != nil {
			return false, &table.Damage{Table: history.Name, Key: history.Bytes(k), Cause: err}
		}
		return true, nil
	})
	if err == nil && last != newest.Revision {
		a.Report("catalog", "catalog", "%d changes are there, the catalog is at %d", last, newest.Revision)
		a.Distrust()
	}
	return err
}

// own reads the shard's own rows: the catalog's alone has changes.
func own(a *op.Audit, catalogShard uint16) error {
	if err := op.Each(a, &heads, func(uint16, *head) error { return nil }); err != nil {
		return err
	}
	return op.Each(a, &history, func(k historyKey, _ *Change) error {
		if k.Shard != catalogShard {
			a.Report("catalog", fmt.Sprintf("change %d", k.Revision), "a change stands in another shard than the catalog's")
		}
		return nil
	})
}
