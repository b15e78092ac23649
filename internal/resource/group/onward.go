package group

import (
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
// finished in passing. It reads as many as there is room for, and reads on when
// some of them had to wait for an older one of their key.
func (p *picker) onward(tail uint64) error {
	h := &p.g.head
	for want := int64(1); p.roomFor(tail) && p.scanned < limits.ScanSource; want *= 2 {
		stopped, err := p.stretch(tail, max(want, p.room()))
		if err != nil || stopped {
			return err
		}
	}
	p.more = p.more || (p.scanned >= limits.ScanSource && p.roomFor(tail) && h.Issued < tail)
	return nil
}

// room is how many new positions may be claimed.
func (p *picker) room() int64 { return min(p.events, p.g.policy.MaxWindow-p.g.head.Matched) }

// roomFor says that there is a new position and room to claim one.
func (p *picker) roomFor(tail uint64) bool { return p.room() > 0 && p.g.head.Issued < tail }

// stretch reads until the filter has matched so many positions and issues them.
// stopped says that one did not fit.
func (p *picker) stretch(tail uint64, want int64) (stopped bool, err error) {
	g := p.g
	h := &g.head
	found, through, err := p.scan(h.Issued+1, min(tail, h.Issued+uint64(limits.ScanSource-p.scanned)), want)
	if err != nil {
		return false, err
	}
	last := h.Issued
	for _, m := range found {
		if stopped, err = p.issue(m); err != nil {
			return false, err
		}
		if stopped {
			through = m.position - 1
			break
		}
		passUpTo(g, last, m.position)
		last = m.position
	}
	passUpTo(g, last, through+1)
	h.Issued = max(h.Issued, through)
	return stopped, nil
}

// passUpTo finishes what lies between two positions.
func passUpTo(g *group, last, next uint64) {
	if last+1 < next {
		g.pass(last+1, next-1)
	}
}

// scan reads positions until the filter has matched so many, or more bytes than
// the request has left, and returns those and the last one read.
func (p *picker) scan(from, to uint64, want int64) (found []met, through uint64, err error) {
	g := p.g
	through = from - 1
	bytes := p.bytes
	err = source.Each(&g.c.Scope, g.name.Source, from, to, func(position uint64, e *source.Record) (bool, error) {
		p.scanned++
		through = position
		if !matches(&g.def.Wanted.Filter, e) {
			return true, nil
		}
		found = append(found, met{position, *e})
		size := e.ContentBytes()
		full := size > bytes
		bytes -= min(bytes, size)
		return !full && int64(len(found)) < want, nil
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
