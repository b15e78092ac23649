package partitions

import (
	"fmt"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Resource is what this package brings to the registry.
func Resource() op.Resource {
	return op.Resource{Name: "partitions", Tables: Tables(), Before: before, Check: check}
}

// before lists the partitions for those that keep rows in them. One whose name
// cannot be read is none; the check tells it.
func before(a *op.Audit) error {
	a.Partitions = map[[16]byte]bool{}
	prefix := codec.AppendUint16([]byte{byte(rows.ID)}, a.Space.Shard)
	return a.R.Scan(prefix, codec.PrefixEnd(prefix), false, func(key, value []byte) (bool, error) {
		if k, _, err := rows.Row(key, value); err == nil {
			a.Partitions[k.Partition] = true
		}
		return true, nil
	})
}

// check verifies that every partition is called what its key stands for and
// belongs to the shard.
func check(a *op.Audit) error {
	return op.Each(a, &rows, func(k table.Space, v *record) error {
		a.Count("partitions", 1)
		where := fmt.Sprintf("partition %x", k.Partition[:8])
		if Hash(v.Ref) != k.Partition {
			a.Report("partition", where, "the name is of another partition")
		}
		if a.Shards > 0 && (a.Space.Shard == 0 || ShardOf(k.Partition, a.Shards) != a.Space.Shard) {
			a.Report("partition", where, "the partition belongs to another shard")
		}
		return nil
	})
}
