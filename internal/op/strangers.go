package op

import (
	"encoding/binary"
	"fmt"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// Strangers reports the rows that belong to no table of this program, or to no shard
// of the store. It is for the audit of the catalog's shard, after Run.
func Strangers(a *Audit) error {
	known := map[table.ID]bool{}
	for _, res := range a.Registry.Resources() {
		for _, t := range res.Tables {
			known[t.ID] = true
		}
	}
	for id := range 256 {
		first := []byte{byte(id)}
		end := codec.PrefixEnd(first)
		switch {
		case !known[table.ID(id)]:
			if err := stray(a, first, end, "table", "the row belongs to no table of this program"); err != nil {
				return err
			}
		case table.ID(id) == table.StoreInfo:
			if err := stray(a, append(first, 0), end, "identity", "a store has one identity"); err != nil {
				return err
			}
		default:
			for _, r := range [...][2][]byte{
				{first, append(codec.AppendUint16([]byte{byte(id)}, 0), 0)},
				{codec.AppendUint16([]byte{byte(id)}, a.Shards+1), end},
			} {
				if err := stray(a, r[0], r[1], "shard", "the row belongs to no shard of this store"); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// shownBytes is how much of a stray row's key is shown: more may be somebody's data.
const shownBytes = 23

// stray reports the rows of a range; those whose key ends with their shard are in
// place.
func stray(a *Audit, lower, upper []byte, invariant, text string) error {
	return a.R.Scan(lower, upper, false, func(key, value []byte) (bool, error) {
		if invariant == "shard" && len(key) == 3 && binary.BigEndian.Uint16(key[1:]) <= a.Shards {
			return true, nil
		}
		a.Rows++
		a.Bytes += int64(len(key) + len(value))
		a.Report(invariant, fmt.Sprintf("row %x", key[:min(len(key), shownBytes)]), "%s", text)
		return a.Left == 0, nil
	})
}
