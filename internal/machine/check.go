package machine

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/lineage"
	"github.com/keyload/keyload/internal/table"
)

// check verifies that receipts whose id has no time are in prune order, that
// pruning is armed, and that every due row has a handler.
func check(a *op.Audit) error {
	prefix := codec.AppendUint16(nil, a.Space.Shard)
	head, err := StoredHead(a.R, a.Space.Shard)
	if err != nil {
		return err
	}
	if err := lineage.Check(a, head.Position); err != nil {
		return err
	}
	stored, orphans := int64(0), int64(0)
	err = receipts.Scan(a.R, table.Range{Prefix: prefix}, func(k receiptKey, v *receipt) (bool, error) {
		stored++
		if k.Hour == noHour {
			orphans++
		}
		if v.Position == 0 || v.Position > head.Position {
			a.Report("receipt", "receipt", "a receipt names position %d; the shard is at %d", v.Position, head.Position)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	a.Count("receipts", stored)
	if stored > 0 && head.Prune == 0 {
		a.Report("due", "receipts", "receipts are stored and their pruning is not armed")
	}
	err = timeless.Scan(a.R, table.Range{Prefix: prefix}, func(timelessKey, *table.None) (bool, error) {
		orphans--
		return true, nil
	})
	if err != nil {
		return err
	}
	if orphans != 0 {
		a.Report("index", "receipts", "receipts without a time and their prune order differ by %d", orphans)
	}
	return table.DueRows.Scan(a.R, table.Range{Prefix: prefix}, func(k table.DueKey, _ *table.None) (bool, error) {
		a.Count("dueRows", 1)
		if k.Kind == table.DueReceipts {
			if k.When != head.Prune {
				a.Report("due", "receipts", "the due row says %d, the shard %d", k.When, head.Prune)
			}
		} else if _, ok := a.Registry.Due(k.Kind); !ok {
			a.Report("due", "due", "a row of kind %d has no handler", k.Kind)
		}
		return true, nil
	})
}
