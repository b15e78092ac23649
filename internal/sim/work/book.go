package work

import (
	"fmt"
	"sync"

	"github.com/keyload/keyload/api"
)

// Book is kept of everything that callers sent and were answered, over all lives
// of a store. It is safe for concurrent use; its zero value is not.
type Book struct {
	mu      sync.Mutex
	calls   map[string]*entry
	order   []*entry
	lines   int
	answers map[string]int // commands that were carried out, by operation
	wrong   []string
	holds   state
}

// entry is one command.
type entry struct {
	call     Call
	sent     int     // line in which it was sent
	answer   *Answer // nil until it was answered
	answered int     // line
}

// state is what a store must hold, by the commands that were carried out.
type state struct {
	traces    map[string]int64  // effects, by the document that counts them
	docs      map[string]string // JSON by id; "" for one that was deleted
	events    map[string]bool   // ids of the shared stream
	published map[string]bool   // ids of the shared topic
	enqueued  map[string]bool   // ids of the shared queue

	finished map[string]finish // messages of the shared queue
	followed map[uint64]finish // positions of the shared group
	inputs   map[string]bool

	resources  map[string]*api.Resource // nil for one that was deleted
	principals map[string]api.Principal
	keys       map[string]bool // whether revoked
	groups     map[string]*api.GroupState
	tails      map[int]uint64 // of the callers' own topics
	messages   map[string]api.MessageState

	dispatch   api.Dispatch // the last that is known
	dispatched uint64       // how often it was changed
}

// finish is when a delivery was finished for good, and how.
type finish struct {
	line int // in which it was answered
	how  string
}

// NewBook makes an empty book.
func NewBook() *Book {
	return &Book{calls: map[string]*entry{}, answers: map[string]int{}, holds: state{
		traces: map[string]int64{}, docs: map[string]string{}, events: map[string]bool{}, published: map[string]bool{}, enqueued: map[string]bool{},
		finished: map[string]finish{}, followed: map[uint64]finish{}, inputs: map[string]bool{},
		resources: map[string]*api.Resource{}, principals: map[string]api.Principal{}, keys: map[string]bool{},
		groups: map[string]*api.GroupState{}, tails: map[int]uint64{}, messages: map[string]api.MessageState{},
	}}
}

// Write adds a line of the journal.
func (b *Book) Write(l Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines++
	switch {
	case l.Sent != nil:
		e := &entry{call: *l.Sent, sent: b.lines}
		b.calls[e.call.ID] = e
		b.order = append(b.order, e)
	case l.Answered != nil:
		b.settle(b.calls[l.Answered.ID], l.Answered)
	default:
		b.err("%s", l.Wrong)
	}
}

// Frozen runs fn while nothing can be written; what is answered by then must
// survive. It returns a copy of the book as it is at that moment.
func (b *Book) Frozen(fn func()) *Book {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn()
	copied := NewBook()
	for _, e := range b.order {
		c := *e
		c.answer = nil
		copied.calls[c.call.ID], copied.order = &c, append(copied.order, &c)
	}
	for _, e := range b.byAnswer() {
		copied.lines = e.answered
		copied.settle(copied.calls[e.call.ID], e.answer)
	}
	copied.lines, copied.wrong = b.lines, append([]string(nil), b.wrong...)
	return copied
}

// byAnswer are the answered commands in the order of their answers.
func (b *Book) byAnswer() []*entry {
	at := map[int]*entry{}
	for _, e := range b.order {
		if e.answer != nil {
			at[e.answered] = e
		}
	}
	var out []*entry
	for line := range b.lines + 1 {
		if e := at[line]; e != nil {
			out = append(out, e)
		}
	}
	return out
}

func (b *Book) err(format string, args ...any) {
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

// Wrong is what is known to be wrong.
func (b *Book) Wrong() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.wrong...)
}

// Answered is how many commands were answered, and CarriedOut how many of each
// operation were not refused.
func (b *Book) Answered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, e := range b.order {
		if e.answer != nil {
			n++
		}
	}
	return n
}

// CarriedOut is how many commands of an operation were answered and not refused.
func (b *Book) CarriedOut(operation string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answers[operation]
}

// settle takes the first answer of a command, and with it what the store must hold
// from now on.
func (b *Book) settle(e *entry, a *Answer) {
	if e == nil {
		b.err("an answer to %s, which nobody sent", a.ID)
		return
	}
	e.answer, e.answered = a, b.lines
	if a.Code != "" {
		return
	}
	b.answers[e.call.Operation]++
	req, err := e.call.request()
	if err != nil {
		b.err("%s: %v", e.call.Operation, err)
		return
	}
	resp, err := a.response(&e.call)
	if err != nil {
		b.err("%s: %v", e.call.Operation, err)
		return
	}
	b.note(e, req, resp)
}

// Sent is how many commands were sent.
func (b *Book) Sent() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.order)
}
