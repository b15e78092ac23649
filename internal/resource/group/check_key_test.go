package group

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// A position whose failure is taken for a key waits for others, or they for it. The
// index follows from the position, so only the event tells of it.
func TestTheCheckFindsAnOrderingKeyThatIsNotTheEvents(t *testing.T) {
	for policy, header := range map[string]string{"the correlation id": "", "a header": "account"} {
		b := newBed(t, api.GroupPolicy{Ordered: api.OrderPerKey, OrderingHeader: header})
		e := keyedEvent("x")
		e.Headers = map[string]string{"account": "7", "b": "c"}
		b.publish(e)
		b.nack(b.one(), 60_000)
		b.check()
		for key, sound := range map[string]bool{"x": true, "7": true, "c": true, "": true, "account": false, "y": false} {
			was := b.rekey(key)
			if found, _ := b.audit(); (len(found) == 0) != sound || !sound && (found[0].Derived || found[0].Invariant != "order") {
				t.Errorf("by %s, with the key %q: %+v", policy, key, found)
			}
			b.rekey(was)
		}
		b.check()
	}
}

// rekey gives the first position another key, in the index too.
func (b *bed) rekey(key string) (was string) {
	b.write(func(c *op.Ctx) error {
		var k rowKey
		var r row
		err := rows.Scan(c.Tx, table.Range{}, func(at rowKey, is *row) (bool, error) {
			k, r = at, *is
			return false, nil
		})
		was = r.Key
		keyed.Delete(c.Tx, orderKey{k.Ref, was, k.Position})
		if r.Key = key; key != "" {
			keyed.Put(c.Tx, orderKey{k.Ref, key, k.Position}, &table.None{})
		}
		rows.Put(c.Tx, k, &r)
		return err
	})
	return was
}
