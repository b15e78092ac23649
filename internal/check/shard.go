package check

import (
	"fmt"

	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
)

// audit checks one shard; that of the catalog also looks for rows that belong to no
// shard. hold is op.Audit.Hold.
func audit(s *kv.Snapshot, registry *op.Registry, id system.Identity, shard uint16, hold int64, step func(rows int64) error) (*op.Audit, error) {
	head, err := machine.StoredHead(s, shard)
	if err != nil {
		return nil, damaged(err)
	}
	a := op.NewAudit(op.Scope{
		R: s, Now: head.Time, Space: table.Space{Shard: shard}, Incarnation: id.Incarnation, Registry: registry,
	}, registry.Resources())
	a.Shards, a.Position, a.Epoch, a.Hold, a.Step = id.Shards, head.Position, head.Epoch, hold, step
	if err := a.Run(); err != nil {
		return nil, damaged(fmt.Errorf("shard %d: %w", shard, err))
	}
	if head == (machine.Head{}) && a.Rows > 0 {
		a.Report("head", "shard", "the shard has %d rows and has applied nothing", a.Rows)
	}
	if shard == system.CatalogShard {
		a.Rows++ // of the identity, which belongs to no shard
		err = op.Strangers(a)
	}
	return a, damaged(err)
}
