package group

import (
	"bytes"
	"slices"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// shardRange is every row of a table in a shard.
func shardRange(shard uint16) table.Range { return table.Range{Prefix: codec.AppendUint16(nil, shard)} }

// removals: a deleted group has nothing that makes a group, its removal is due, and
// it goes on among rows of the group.
func (x *auditor) removals() error {
	return removals.Scan(x.R, shardRange(x.Space.Shard), func(f ref, m *removal) (bool, error) {
		x.removing[f] = true
		if x.groups[f] != nil {
			x.Report("removal", x.where(f), "the group is there, and its rows are being removed")
		}
		within := func(id table.ID) bool { return bytes.HasPrefix(m.Next, under(id, f)) }
		if m.Next != nil && !slices.ContainsFunc(leftRows[:], within) {
			x.Report("removal", x.where(f), "the removal of its rows goes on at a row of another group")
		}
		has, err := table.DueRows.Has(x.R, table.DueKey{Shard: f.Owner.Shard, When: m.Armed, Kind: table.DueRemoval, Owner: string(f.append(nil))})
		if err == nil && !has {
			x.Report("due", x.where(f), "the removal of its rows is armed for %d and has no due row", m.Armed)
		}
		return true, err
	})
}

// strays: heads and skips belong to a group; they are no rows that a deleted one
// leaves.
func (x *auditor) strays() error {
	err := heads.Scan(x.R, shardRange(x.Space.Shard), func(f ref, _ *head) (bool, error) {
		if x.groups[f] == nil {
			x.stray(f, heads.Name)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return skips.Scan(x.R, shardRange(x.Space.Shard), func(k rowKey, _ *skip) (bool, error) {
		if x.groups[k.Ref] == nil {
			x.stray(k.Ref, skips.Name)
		}
		return true, nil
	})
}
