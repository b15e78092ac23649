package check

import (
	"errors"
	"fmt"

	"github.com/keyload/keyload/api"
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
	var unknown *table.Damage
	switch {
	case errors.As(err, &unknown): // a finding of the audit; where the shard stands is not known
		head = machine.Head{Time: int64(api.MaxTime)}
	case err != nil:
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
		if err := op.Strangers(a); err != nil {
			return nil, damaged(err)
		}
	}
	return a, nil
}
