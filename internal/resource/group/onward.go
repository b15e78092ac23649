package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

// met is one new position that the search read and the filter matched.
type met struct {
	position uint64
	event    source.Record
}

// onward issues new positions up to the source's tail while the window, the
// leases and the request have room. Positions the filter does not match are
// finished in passing.
func (p *picker) onward(tail uint64) error {
	g := p.g
	h := &g.head
	if p.events <= 0 || h.Matched >= g.policy.MaxWindow || h.Issued >= tail {
		return nil
	}
	found, through, err := p.scan(h.Issued+1, min(tail, h.Issued+limits.ScanSource))
	if err != nil {
		return err
	}
	last := h.Issued
	for _, m := range found {
		stop, err := p.issue(m)
		if err != nil {
			return err
		}
		if stop {
			through = m.position - 1
			break
		}
		passUpTo(g, last, m.position)
		last = m.position
	}
	passUpTo(g, last, through+1)
	h.Issued = max(h.Issued, through)
	p.more = p.more || (p.scanned >= limits.ScanSource && h.Issued < tail)
	return nil
}

// passUpTo finishes what lies between two positions.
func passUpTo(g *group, last, next uint64) {
	if last+1 < next {
		g.pass(last+1, next-1)
	}
}

// scan reads positions and returns those the filter matches, and the last one
// read. It stops where the request can take no more; with ordering keys it cannot
// know that yet and stops at the bytes of the request.
func (p *picker) scan(from, to uint64) (found []met, through uint64, err error) {
	g := p.g
	through = from - 1
	perKey := g.policy.Ordered == api.OrderPerKey
	room := min(p.events, g.policy.MaxWindow-g.head.Matched)
	bytes := p.bytes
	err = source.Each(&g.c.Scope, g.name.Source, from, to, func(position uint64, e *source.Record) (bool, error) {
		p.scanned++
		if !matches(&g.def.Wanted.Filter, e) {
			through = position
			return true, nil
		}
		found = append(found, met{position, *e})
		through = position
		size := e.ContentBytes()
		full := size > bytes
		bytes -= min(bytes, size)
		return !full && (perKey || int64(len(found)) < room), nil
	})
	return found, through, err
}

// issue claims one new position, or notes that it waits for an older one of its
// key. stop says that it does not fit and stays unissued.
func (p *picker) issue(m met) (stop bool, err error) {
	g := p.g
	h := &g.head
	if h.Matched >= g.policy.MaxWindow || p.events <= 0 {
		return true, nil
	}
	e := &entry{IssuedAt: g.c.Now, Key: keyOf(g, &m.event)}
	older := false
	if e.Key != "" {
		if _, older, err = oldest(g, e.Key); err != nil {
			return false, err
		}
	}
	if !older && !p.fits(m.position, m.event.ContentBytes()) {
		return true, nil
	}
	if e.Key != "" {
		keyed.Insert(g.c.Tx, orderKey{g.ref, e.Key, m.position}, &table.None{})
	}
	h.Matched++
	if older {
		e.State = blocked
		h.Counts[blocked]++
		rows.Insert(g.c.Tx, rowKey{g.ref, m.position}, &row{entry: *e})
		return false, nil
	}
	p.take(claim1{place: place{true, m.position}, entry: e, event: m.event, isNew: true})
	return false, nil
}
