package source

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/table"
)

// twin is a topic as a naive program would keep it: every event ever, in a
// slice, a map of ids, a map of pins. Due work is done whenever the clock moves.
type twin struct {
	all    []api.StoredEvent // by position − 1
	sizes  []int64           // likewise, in stored bytes
	bytes  uint64            // of all
	cut    uint64
	ids    map[string]twinID
	pins   map[string]uint64
	policy api.SourcePolicy

	rowsAt    int64  // when the rows of what was cut are removed; 0 is never
	removed   uint64 // how far they are
	keepUntil int64  // of the ids of what is removed next
	ageAt     int64  // when ages are looked at; 0 is never
}

// topicKey is bed.orders of every bed.
var topicKey = Key{Owner: table.Owner{Space: bedSpace, Resource: 3}, Generation: 1}

type twinID struct {
	content  string
	position uint64
	until    int64 // forgotten from then on; 0 while its row is there
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
	sizes, bytes := m.measure(now, list)
	cut, code := m.makeRoom(sizes)
	if code != "" {
		return code
	}
	if len(m.all) == int(m.cut) && m.policy.MaxAgeSeconds > 0 {
		m.arm(&m.ageAt, now+m.policy.MaxAgeSeconds*1000)
	}
	m.cutThrough(now, cut, now+1000)
	for i := range list {
		e := &list[i]
		position := uint64(len(m.all) + 1)
		m.all = append(m.all, api.StoredEvent{
			Position: position, EventID: e.EventID, Type: e.Type, Payload: e.Payload, Headers: e.Headers,
			SchemaVersion: e.SchemaVersion, PublishedAt: api.Time(now),
		})
		m.ids[e.EventID] = twinID{content: contentOf(e), position: position}
	}
	m.sizes, m.bytes = append(m.sizes, sizes...), m.bytes+bytes
	return ""
}

// measure says how large the rows of events will be.
func (m *twin) measure(now int64, list []api.Event) (sizes []int64, total uint64) {
	for i := range list {
		n := len(events.Bytes(eventKey{topicKey, 1})) + len(encodeEvent(&list[i], m.bytes+total, now))
		sizes, total = append(sizes, int64(n)), total+uint64(n)
	}
	return sizes, total
}

// makeRoom tries one cut after the other until everything fits.
func (m *twin) makeRoom(sizes []int64) (cut uint64, code fault.Code) {
	for cut = m.cut; ; cut++ {
		n, bytes := int64(len(sizes)), int64(0)
		for _, s := range append(m.sizes[cut:len(m.sizes):len(m.sizes)], sizes...) {
			bytes += s
		}
		n += int64(len(m.all)) - int64(cut)
		switch {
		case n <= m.policy.MaxEvents && bytes <= m.policy.MaxBytes:
			if cut > m.cut && cut > m.lowest() {
				return 0, fault.ResourceExhausted
			}
			return cut, ""
		case m.policy.OnFull == api.OnFullReject || cut == uint64(len(m.all)):
			return 0, fault.ResourceExhausted
		}
	}
}

func (m *twin) lowest() uint64 {
	low := uint64(len(m.all))
	for _, at := range m.pins {
		low = min(low, at)
	}
	return low
}

func (m *twin) arm(at *int64, when int64) {
	if *at == 0 || when < *at {
		*at = when
	}
}

func (m *twin) cutThrough(now int64, through uint64, rowsAt int64) {
	if through <= m.cut {
		return
	}
	m.cut = through
	m.keepUntil = max(m.keepUntil, now+m.policy.EventIDRetentionSeconds*1000)
	m.arm(&m.rowsAt, rowsAt)
}

func (m *twin) purge(now int64, through uint64) fault.Code {
	switch {
	case through > uint64(len(m.all)):
		return fault.Validation
	case through > m.cut && through > m.lowest():
		return fault.ResourceExhausted
	}
	m.cutThrough(now, through, now)
	return ""
}

// settle does what is due: ages first, then rows, then ids.
func (m *twin) settle(now int64) {
	if m.ageAt != 0 && m.ageAt <= now {
		m.age(now)
	}
	if m.rowsAt != 0 && m.rowsAt <= now {
		m.rowsAt = 0
		for ; m.removed < m.cut; m.removed++ {
			id := m.ids[m.all[m.removed].EventID]
			id.until = m.keepUntil
			m.ids[m.all[m.removed].EventID] = id
		}
	}
	for id, v := range m.ids {
		if v.until != 0 && v.until <= now {
			delete(m.ids, id)
		}
	}
}

func (m *twin) age(now int64) {
	m.ageAt = 0
	life := m.policy.MaxAgeSeconds * 1000
	for i := m.cut; life > 0 && i < uint64(len(m.all)); i++ {
		switch end := int64(m.all[i].PublishedAt) + life; {
		case end > now:
			m.ageAt = end
			return
		case i >= m.lowest():
			m.ageAt = now + 60_000
			return
		}
		m.cutThrough(now, i+1, now)
	}
}

// change takes another policy; one that makes events older is looked at.
func (m *twin) change(p api.SourcePolicy) {
	was := m.policy.MaxAgeSeconds
	m.policy = p
	if p.MaxAgeSeconds != 0 && (was == 0 || p.MaxAgeSeconds < was) && int(m.cut) < len(m.all) {
		m.arm(&m.ageAt, int64(m.all[m.cut].PublishedAt)+p.MaxAgeSeconds*1000)
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
