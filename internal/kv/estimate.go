package kv

import "github.com/cockroachdb/pebble/v2"

// RowsEstimate is about how many rows the store holds, for showing how far long
// work is: what its files count, with rows that were replaced since; rows that are in
// the log only are not among them. 0 when it cannot be told.
func RowsEstimate(s *Store) int64 {
	levels, err := s.db.SSTables(pebble.WithProperties())
	if err != nil {
		return 0
	}
	rows := int64(0)
	for _, level := range levels {
		for _, t := range level {
			if p := t.Properties; p != nil {
				rows += int64(p.NumEntries) - 2*int64(p.NumDeletions) // a deletion is an entry, and hides another
			}
		}
	}
	return max(rows, 0)
}
