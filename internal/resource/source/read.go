package source

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/table"
)

// Read asks for one page.
type Read struct {
	// After is where to begin when Cursor is empty. Forward: events after it, 0
	// from position 1. Backward: events before it, 0 from the tail.
	After    uint64
	Cursor   string
	Backward bool
	Limit    int64 // events, at least 1
	MaxBytes int64 // stored bytes; one event is returned whatever its size
}

// Page is what a read found.
type Page struct {
	Events   []api.StoredEvent
	Cursor   string
	Tail     uint64
	First    uint64
	Examined api.Examined
}

// ReadPage reads one page of a source. A page is charged for the stored bytes of
// its events before they are taken apart, and protected fields of JSON payloads
// are taken out. A source without events has empty pages. Errors: those of
// cursors; HistoryUnavailable when events between the starting point and the
// first retained one are gone; Validation for a starting point after the tail.
func ReadPage(v *op.View, r *api.Resource, k Key, q Read) (*Page, error) {
	h, err := Look(&v.Scope, k)
	if err != nil {
		return nil, err
	}
	after := q.After
	if q.Cursor != "" {
		if after, err = openCursor(v, k, q.Backward, q.Cursor); err != nil {
			return nil, err
		}
	} else if q.Backward && after == 0 {
		after = h.Tail + 1
	}
	if err := checkStart(&h, q.Backward, after); err != nil {
		return nil, err
	}
	p := &Page{Events: []api.StoredEvent{}, Tail: h.Tail, First: h.First()}
	from, to := after+1, h.Tail
	if q.Backward {
		from, to = h.First(), after-1
	}
	if err := p.fill(v, r, k, q, from, to); err != nil {
		return nil, err
	}
	if n := len(p.Events); n > 0 {
		after = p.Events[n-1].Position
	}
	p.Cursor = sealCursor(v, k, q.Backward, after)
	return p, nil
}

// checkStart refuses a starting point outside of what is retained. after is the
// last position not wanted, in the direction of the read.
func checkStart(h *Head, backward bool, after uint64) error {
	first, last := h.Cut, h.Tail
	if backward {
		first, last = h.First(), h.Tail+1
	}
	if after > last {
		e := fault.Invalid("/afterPosition", "is %d, after the last position %d", after, h.Tail)
		return e.With("tail", "%d", h.Tail)
	}
	if after < first {
		return fault.New(fault.HistoryUnavailable, "purged",
			"the events up to position %d are no longer retained; the first available position is %d", h.Cut, h.First()).
			With("firstAvailable", "%d", h.First()).With("afterPosition", "%d", h.Cut)
	}
	return nil
}

// fill adds events of [from, to] until a bound of the page is reached.
func (p *Page) fill(v *op.View, r *api.Resource, k Key, q Read, from, to uint64) error {
	return scanRows(&v.Scope, k, from, to, q.Backward, func(position uint64, key, value []byte) (bool, error) {
		size := int64(len(key) + len(value))
		p.Examined.Records++
		p.Examined.Bytes += size
		if p.Examined.Bytes > q.MaxBytes && len(p.Events) > 0 {
			return false, nil
		}
		var e Record
		if err := e.decode(append([]byte(nil), value...)); err != nil {
			return false, damaged(key, err)
		}
		out := e.Stored(position)
		if e.JSON {
			var err error
			if out.Payload, out.Redacted, err = access.Project(v.Principal, r, out.Payload); err != nil {
				return false, err
			}
		}
		p.Events = append(p.Events, out)
		return int64(len(p.Events)) < q.Limit, nil
	})
}

// At reads one event that is known to be there.
func At(s *op.Scope, k Key, position uint64) (Record, error) {
	e, ok, err := events.Get(s.R, eventKey{k, position})
	if err == nil && !ok {
		err = missing(k, position)
	}
	return e, err
}

// Each calls fn for the events of [from, to], which are known to be there, in
// order until fn says stop or fails. The record is valid after the call; fn must
// not write.
func Each(s *op.Scope, k Key, from, to uint64, fn func(position uint64, e *Record) (more bool, err error)) error {
	return scanRows(s, k, from, to, false, func(position uint64, key, value []byte) (bool, error) {
		var e Record
		if err := e.decode(append([]byte(nil), value...)); err != nil {
			return false, damaged(key, err)
		}
		return fn(position, &e)
	})
}

// scanRows calls fn for the rows of [from, to]. A gap is damage: positions are
// without gaps, so a reader is never shown less than there was.
func scanRows(s *op.Scope, k Key, from, to uint64, backward bool, fn func(position uint64, key, value []byte) (bool, error)) error {
	if from > to {
		return nil
	}
	prefix := k.Append([]byte{byte(events.ID)})
	n := len(prefix)
	lower := codec.AppendUint64(prefix[:n:n], from)
	upper := codec.AppendUint64(prefix[:n:n], to+1)
	want, last, step := from, to, uint64(1)
	if backward {
		want, last, step = to, from, ^uint64(0)
	}
	stopped := false
	err := s.R.Scan(lower, upper, backward, func(key, value []byte) (bool, error) {
		kr := codec.NewKeyReader(key[n:])
		if position := kr.Uint64(); kr.End() != nil || position != want {
			return false, missing(k, want)
		}
		position := want
		want += step
		more, err := fn(position, key, value)
		stopped = !more
		return more, err
	})
	if err == nil && !stopped && want != last+step {
		return missing(k, want)
	}
	return err
}

func missing(k Key, position uint64) error {
	return &table.Damage{Table: events.Name, Key: events.Bytes(eventKey{k, position}), Cause: errMissing}
}

func damaged(key []byte, err error) error {
	return &table.Damage{Table: events.Name, Key: append([]byte(nil), key...), Cause: err}
}
