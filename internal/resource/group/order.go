package group

import (
	"slices"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

func sortCodes(codes []uint64) { slices.Sort(codes) }

// keyOf is the ordering key of an event; empty when it has none or the group
// keeps no order. A key is at most an identifier long: longer header values are
// told apart by their first bytes only, which can but delay.
func keyOf(g *group, e *source.Record) string {
	if g.policy.Ordered != api.OrderPerKey {
		return ""
	}
	if g.policy.OrderingHeader == "" {
		return string(e.CorrelationID)
	}
	key := ""
	e.EachHeader(func(name, value []byte) bool {
		if string(name) == g.policy.OrderingHeader {
			key = string(value[:min(len(value), maxKeyBytes)])
			return false
		}
		return true
	})
	return key
}

// maxKeyBytes is the longest ordering key.
const maxKeyBytes = 256

// oldest is the lowest unfinished position of an ordering key in the window.
func oldest(g *group, key string) (position uint64, ok bool, err error) {
	from := appendOrder(nil, orderKey{g.ref, key, g.head.Checkpoint + 1})
	err = keyed.Scan(g.c.Tx, table.Range{Prefix: from[:len(from)-8], From: from}, func(k orderKey, _ *table.None) (bool, error) {
		position, ok = k.Position, true
		return false, nil
	})
	return position, ok, err
}

// unblock takes a finished position out of the order of its key and lets the
// next one of the key be claimed.
func unblock(g *group, position uint64, key string) error {
	if key == "" {
		return nil
	}
	keyed.Delete(g.c.Tx, orderKey{g.ref, key, position})
	next, ok, err := oldest(g, key)
	if err != nil || !ok {
		return err
	}
	e, err := g.find(next)
	if err != nil {
		return err
	}
	if e == nil {
		return windowDamage(rowKey{g.ref, next})
	}
	if e.State == blocked {
		return g.move(place{true, next}, e, ready, nil)
	}
	return nil
}
