package source

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// twin is a topic as a naive program would keep it: every event ever, in a
// slice, and a map of ids. Due work is done whenever the clock moves.
type twin struct {
	all    []api.StoredEvent // by position − 1
	cut    uint64
	ids    map[string]twinID
	max    int64
	retain int64 // milliseconds
}

type twinID struct {
	content  string
	position uint64
	until    int64 // forgotten from then on; 0 while retained
}

func contentOf(e *api.Event) string {
	return fmt.Sprintf("%s|%s|%s|%v|%d", e.Type, e.Payload, e.PayloadBase64, e.Headers, e.SchemaVersion)
}

func (m *twin) publish(now int64, list []api.Event) fault.Code {
	fresh := map[string]string{}
	for i := range list {
		e := &list[i]
		content, again := fresh[e.EventID]
		if has, known := m.ids[e.EventID]; known && !again {
			content, again = has.content, true
		}
		if again && content == contentOf(e) {
			return fault.DuplicateEventID
		} else if again {
			return fault.Conflict
		}
		fresh[e.EventID] = contentOf(e)
	}
	if int64(len(m.all)+len(list))-int64(m.cut) > m.max {
		return fault.ResourceExhausted
	}
	for i := range list {
		e := &list[i]
		position := uint64(len(m.all) + 1)
		m.all = append(m.all, api.StoredEvent{
			Position: position, EventID: e.EventID, Type: e.Type, Payload: e.Payload, Headers: e.Headers,
			SchemaVersion: e.SchemaVersion, PublishedAt: api.Time(now),
		})
		m.ids[e.EventID] = twinID{content: contentOf(e), position: position}
	}
	return ""
}

func (m *twin) purge(now int64, through uint64) fault.Code {
	if through > uint64(len(m.all)) {
		return fault.Validation
	}
	for p := m.cut + 1; p <= through; p++ {
		id := m.ids[m.all[p-1].EventID]
		id.until = now + m.retain
		m.ids[m.all[p-1].EventID] = id
	}
	m.cut = max(m.cut, through)
	return ""
}

func (m *twin) forget(now int64) {
	for id, v := range m.ids {
		if v.until != 0 && v.until <= now {
			delete(m.ids, id)
		}
	}
}

func (m *twin) read(after uint64, limit int) ([]api.StoredEvent, fault.Code) {
	switch {
	case after > uint64(len(m.all)):
		return nil, fault.Validation
	case after < m.cut:
		return nil, fault.HistoryUnavailable
	}
	out := m.all[after:]
	return out[:min(limit, len(out))], ""
}

func TestASourceBehavesAsANaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(5, 60).Draw(t, "maxEvents")
		b := newBed(t, api.SourcePolicy{MaxEvents: limit, EventIDRetentionSeconds: 10})
		m := &twin{ids: map[string]twinID{}, max: limit, retain: 10_000}
		cursor, at := "", uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) api.Event {
					e := event(fmt.Sprint("e", rapid.IntRange(0, 40).Draw(t, "id")), fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "payload")))
					if rapid.IntRange(0, 5).Draw(t, "headers") == 0 {
						e.Headers = map[string]string{"k": "v", "l": "w"}
					}
					return e
				}), 1, 6).Draw(t, "events")
				a, err := b.publish(list...)
				if want := m.publish(b.now, list); fault.CodeOf(err) != want {
					t.Fatalf("publish: %v, want %q", err, want)
				} else if err == nil && a.Last != uint64(len(m.all)) {
					t.Fatalf("published through %d, want %d", a.Last, len(m.all))
				}
			},
			"purge": func(t *rapid.T) {
				through := rapid.Uint64Range(1, uint64(len(m.all)+2)).Draw(t, "through")
				cut, err := b.purge(through)
				if want := m.purge(b.now, through); fault.CodeOf(err) != want {
					t.Fatalf("purge: %v, want %q", err, want)
				} else if err == nil && cut != m.cut {
					t.Fatalf("cut at %d, want %d", cut, m.cut)
				}
			},
			"time": func(t *rapid.T) {
				b.settle(rapid.IntRange(1, 7).Draw(t, "budget before")) // what was due before is done
				b.now += rapid.Int64Range(0, 12_000).Draw(t, "ms")
				b.settle(rapid.IntRange(1, 7).Draw(t, "budget"))
				m.forget(b.now)
			},
			"tick": func(t *rapid.T) { b.tick(rapid.IntRange(1, 7).Draw(t, "budget")) },
			"read": func(t *rapid.T) {
				after := rapid.Uint64Range(0, uint64(len(m.all)+2)).Draw(t, "after")
				compare(t, b, m, Read{After: after}, after, rapid.IntRange(1, 9).Draw(t, "limit"))
			},
			"next page": func(t *rapid.T) {
				p := compare(t, b, m, Read{Cursor: cursor}, at, rapid.IntRange(1, 9).Draw(t, "limit"))
				if p == nil { // behind a purge: begin again
					cursor, at = "", 0
					return
				}
				cursor = p.Cursor
				at += uint64(len(p.Events))
			},
			"restart": func(*rapid.T) { b.restart() },
			"": func(*rapid.T) {
				b.check()
				if h := b.head(b.orders()); h.Tail != uint64(len(m.all)) || h.Cut != m.cut {
					t.Fatalf("tail %d, cut %d; want %d, %d", h.Tail, h.Cut, len(m.all), m.cut)
				}
			},
		})
	})
}

// compare reads a page from both; nil when both refuse.
func compare(t *rapid.T, b *bed, m *twin, q Read, after uint64, limit int) *Page {
	want, code := m.read(after, limit)
	q.Limit = int64(limit)
	p, err := b.read(q)
	if fault.CodeOf(err) != code {
		t.Fatalf("read after %d: %v, want %q", after, err, code)
	}
	if err != nil {
		return nil
	}
	if fmt.Sprint(p.Events) != fmt.Sprint(want) || p.Tail != uint64(len(m.all)) || p.First != m.cut+1 {
		t.Fatalf("read after %d: %v (first %d, tail %d)\nwant %v (first %d, tail %d)", after, p.Events, p.First, p.Tail, want, m.cut+1, len(m.all))
	}
	return p
}
