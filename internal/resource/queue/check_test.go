package queue

import (
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
)

// silent is a judge that counts what is reported to it.
type silent struct{ found int }

func (s *silent) Helper()                   {}
func (s *silent) Fatalf(f string, a ...any) { panic(f) }
func (s *silent) Errorf(string, ...any)     { s.found++ }

func TestTheCheckFindsEverySingleMissingRow(t *testing.T) {
	b := newBed(t, api.QueuePolicy{DeadLetter: api.DeadLetterPolicy{MaxMessages: 2}})
	everyState(b, 2)
	m := msg("expires")
	m.ExpiresAt = api.Time(b.now + 100_000)
	b.enqueue(m)
	later := msg("later")
	later.NotBefore = api.Time(b.now + 3_600_000)
	b.enqueue(later)
	b.nack(b.receive(2).Deliveries[0], 0) // a lease row of which one is left
	b.check()
	rows := b.rows()
	keys := []string{}
	for k := range rows {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		b.write(func(c *op.Ctx) error { c.Tx.Delete([]byte(k)); return nil })
		count := &silent{}
		t0 := b.t
		b.t = count
		b.check()
		b.t = t0
		if count.found == 0 {
			t.Errorf("the check does not miss the row of table %d at %x", k[0], k[1:])
		}
		b.write(func(c *op.Ctx) error { c.Tx.Put([]byte(k), []byte(rows[k])); return nil })
	}
	b.check()
}
