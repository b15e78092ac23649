package queue

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
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

// Whatever is wrong with a lane, an audit that may hold few rows says that something
// is, and which rows are wrong only within its bound.
func TestAnAuditThatMayHoldFewRowsTellsTheSumsAlone(t *testing.T) {
	b := newBed(t, api.QueuePolicy{DeadLetter: api.DeadLetterPolicy{MaxMessages: 2}})
	everyState(b, 2)
	if f := b.audit(1).Findings; len(f) > 0 {
		t.Errorf("a sound lane: %+v", f)
	}
	rows := b.rows()
	for _, c := range []struct {
		table   table.ID
		held    int64  // how many rows it takes to say which are wrong
		exact   string // what is said then
		derived bool
	}{
		{finisheds.ID, 6 + 5, "table finished: 1 rows are missing", true},
		{bodies.ID, 10 + 9 + 2 + 2, "and has no body", false},
	} {
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			if key[0] != byte(c.table) {
				continue
			}
			b.write(func(x *op.Ctx) error { x.Tx.Delete([]byte(key)); return nil })
			for hold, exact := range map[int64]bool{1: false, c.held - 1: false, c.held: true, c.held + 1: true, 0: true} {
				text, derived := "", false
				for _, f := range b.audit(hold).Findings {
					text, derived = text+f.Text+"\n", derived || f.Derived
				}
				if strings.Contains(text, c.exact) != exact || strings.Contains(text, "a check of the stopped store") == exact || derived != c.derived {
					t.Errorf("without a row of table %d, holding %d, derived %v: it says\n%s", c.table, hold, derived, text)
				}
			}
			b.write(func(x *op.Ctx) error { x.Tx.Put([]byte(key), []byte(rows[key])); return nil })
			break
		}
	}
	b.check()
}
