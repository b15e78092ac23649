package history

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Ledger is what clients sent to queues and sources and were answered. It is safe
// for concurrent use.
type Ledger struct {
	mu          sync.Mutex
	clock       int64
	messages    map[string]*message
	events      map[string]map[string]uint64 // position by id, by source; 0 while nobody knows
	checkpoints map[string][]*Look
	wrong       []string
}

// message is what is known of one message.
type message struct {
	known     bool // its enqueue was acknowledged
	delivered int
	done      int // how often its processing was acknowledged as the first
	in        bool
}

// NewLedger makes an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{messages: map[string]*message{}, events: map[string]map[string]uint64{}, checkpoints: map[string][]*Look{}}
}

func (l *Ledger) err(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// Enqueue notes a message that is about to be sent; Enqueued that it was acknowledged.
func (l *Ledger) Enqueue(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages[id] = &message{}
}

// Enqueued notes that the enqueue of a message was acknowledged.
func (l *Ledger) Enqueued(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages[id].known = true
}

// Delivered notes that a message was handed out.
func (l *Ledger) Delivered(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.messages[id]; m == nil {
		l.err("message %s was delivered, and nobody sent it", id)
	} else {
		m.delivered++
	}
}

// Done notes that the processing of a message was acknowledged; again says that the
// store knew it already.
func (l *Ledger) Done(id string, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.messages[id]
	switch {
	case m == nil:
		l.err("message %s was processed, and nobody sent it", id)
	case again:
		m.in = true
	default:
		if m.done++; m.done > 1 {
			l.err("message %s was processed for the first time %d times", id, m.done)
		}
	}
}

// Append notes an event that is about to be stored.
func (l *Ledger) Append(source, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events[source] == nil {
		l.events[source] = map[string]uint64{}
	}
	l.events[source][id] = 0
}

// Appended notes that an event was acknowledged at its position.
func (l *Ledger) Appended(source, id string, position uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[source][id] = position
}

// Look is one look at the checkpoint of a group.
type Look struct {
	of           *Ledger
	begun, ended int64
	checkpoint   uint64
}

// Look begins a look at the checkpoint of a group.
func (l *Ledger) Look(group string) *Look {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	k := &Look{of: l, begun: l.clock, ended: never}
	l.checkpoints[group] = append(l.checkpoints[group], k)
	return k
}

// Saw ends it with what was seen. One that never ends has seen nothing.
func (k *Look) Saw(checkpoint uint64) {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	k.of.clock++
	k.ended, k.checkpoint = k.of.clock, checkpoint
}

// Found is what a store holds when every client is done and every queue is drained.
type Found struct {
	// Effects counts the effects of each message that had any.
	Effects map[string]int
	// Left are the messages that are not finished.
	Left []string
	// Events are the ids of each source in their order, by position from 1.
	Events map[string][]Event
}

// Event is one event as it is read at the end.
type Event struct {
	Position uint64
	ID       string
}

// Count is how many messages and events were acknowledged, and of how many nobody
// knows.
func (l *Ledger) Count() (known, unknown int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := func(yes bool) {
		if yes {
			known++
		} else {
			unknown++
		}
	}
	for _, m := range l.messages {
		count(m.known)
	}
	for _, source := range l.events {
		for _, at := range source {
			count(at != 0)
		}
	}
	return known, unknown
}

// Check compares what the store holds with the ledger: every acknowledged message
// has had its effect once, and so has one that was processed though nobody knows of
// its enqueue; every acknowledged event is at its position, positions have no gap,
// and nothing is there that nobody sent; no checkpoint went back.
func (l *Ledger) Check(f Found) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.wrong)
	defer func() { l.wrong = l.wrong[:before] }()
	l.checkMessages(f)
	for _, source := range slices.Sorted(maps.Keys(l.events)) {
		l.checkEvents(source, l.events[source], f.Events[source])
	}
	for _, group := range slices.Sorted(maps.Keys(l.checkpoints)) {
		l.checkLooks(group, l.checkpoints[group])
	}
	return slices.Clone(l.wrong)
}

func (l *Ledger) checkMessages(f Found) {
	for _, id := range slices.Sorted(maps.Keys(l.messages)) {
		m, n := l.messages[id], f.Effects[id]
		happened := m.known || m.delivered > 0 || m.done > 0 || m.in
		switch {
		case n > 1:
			l.err("message %s has had its effect %d times", id, n)
		case n == 0 && happened:
			l.err("message %s is lost: acknowledged %v, delivered %d times, processed %d times, and it has had no effect", id, m.known, m.delivered, m.done)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.Effects)) {
		if l.messages[id] == nil {
			l.err("there is an effect of message %s, which nobody sent", id)
		}
	}
	for _, id := range f.Left {
		l.err("message %s is not finished though the queue was drained", id)
	}
}

func (l *Ledger) checkEvents(source string, sent map[string]uint64, found []Event) {
	seen := map[string]uint64{}
	for i, e := range found {
		if e.Position != uint64(i)+1 {
			l.err("%s: the event after position %d is at %d", source, i, e.Position)
			return
		}
		at, ours := sent[e.ID]
		switch {
		case !ours:
			l.err("%s: event %s at %d was sent by nobody", source, e.ID, e.Position)
		case seen[e.ID] != 0:
			l.err("%s: event %s is at %d and at %d", source, e.ID, seen[e.ID], e.Position)
		case at != 0 && at != e.Position:
			l.err("%s: event %s was acknowledged at %d and is at %d", source, e.ID, at, e.Position)
		}
		seen[e.ID] = e.Position
	}
	for _, id := range slices.Sorted(maps.Keys(sent)) {
		if sent[id] != 0 && seen[id] == 0 {
			l.err("%s: event %s was acknowledged at %d and is missing", source, id, sent[id])
		}
	}
}

// checkLooks wants of two looks of which one ended before the other began that the
// second saw no less.
func (l *Ledger) checkLooks(group string, looks []*Look) {
	ended := slices.DeleteFunc(slices.Clone(looks), func(k *Look) bool { return k.ended == never })
	byEnd := slices.SortedFunc(slices.Values(ended), func(a, b *Look) int { return int(a.ended - b.ended) })
	next, most := 0, uint64(0)
	for _, k := range ended { // in the order of their beginnings
		for ; next < len(byEnd) && byEnd[next].ended < k.begun; next++ {
			most = max(most, byEnd[next].checkpoint)
		}
		if k.checkpoint < most {
			l.err("the checkpoint of group %s was %d and then %d", group, most, k.checkpoint)
		}
	}
}
