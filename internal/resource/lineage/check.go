package lineage

import (
	"slices"

	"github.com/keyload/keyload/internal/op"
)

// Resource is what this package brings to the registry.
func Resource() op.Resource { return op.Resource{Name: "lineage", Tables: Tables(), Check: check} }

// check verifies that the histories of a shard ended one after another, and none
// beyond where the shard is.
func check(a *op.Audit) error {
	if err := same(a); err != nil {
		return err
	}
	return op.Each(a, &records, func(_ uint16, past *record) error {
		if len(past.Ended) == 0 || len(past.Ended) > maxEnded {
			a.Report("lineage", "lineage", "%d histories are remembered", len(past.Ended))
		}
		var before history
		for _, h := range past.Ended {
			if h.Last <= before.Last || h.At < before.At || h.Incarnation == [16]byte{} || h.Incarnation == a.Incarnation {
				a.Report("lineage", "lineage", "a history ends at position %d, after one that ends at %d, or is the present one", h.Last, before.Last)
			}
			a.Applied("lineage", "the end of a history", h.Last, 1)
			a.Past("lineage", "the end of a history", h.At)
			before = h
		}
		return nil
	})
}

// same verifies that a shard knows the histories that the catalog's shard knows: a
// restore ends one in every shard.
func same(a *op.Audit) error {
	if a.Shards == 0 {
		return nil
	}
	here, _, err := records.Get(a.R, a.Space.Shard)
	if err != nil {
		return err
	}
	catalog, _, err := records.Get(a.R, catalogShard)
	if err == nil && !slices.EqualFunc(here.Ended, catalog.Ended, func(x, y history) bool { return x.Incarnation == y.Incarnation }) {
		a.Report("lineage", "lineage", "%d histories ended here, %d in the shard of the catalog, or they are others", len(here.Ended), len(catalog.Ended))
	}
	return err
}

// catalogShard is the shard that is restored first.
const catalogShard = 0
