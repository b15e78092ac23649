package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Documents is the history of documents that clients read and write at the same
// time. It is safe for concurrent use; its zero value is empty.
type Documents struct {
	mu    sync.Mutex
	clock int64
	calls []*Call
}

// Call is one operation on a document, from when it was asked until it was answered.
type Call struct {
	of       *Documents
	client   int
	document string
	asked    question
	begun    int64
	ended    int64 // never, while nobody knows
	answered answer
	dropped  bool
}

// question is what was asked: a read, or to write a value.
type question struct {
	read     bool
	value    string
	expected *uint64 // revision the document must have; nil for any
}

// answer is what became of it. A revision of 0 is a document that does not exist.
type answer struct {
	unknown  bool
	refused  bool // the revision was another one
	revision uint64
	value    string
}

// never is later than every moment of a history.
const never = math.MaxInt64

// Read is the beginning of a read.
func (d *Documents) Read(client int, document string) *Call {
	return d.begin(client, document, question{read: true})
}

// Write is the beginning of a write of a value that nobody else writes; expected is
// the revision the document must have, 0 for none; nil writes over any.
func (d *Documents) Write(client int, document, value string, expected *uint64) *Call {
	return d.begin(client, document, question{value: value, expected: expected})
}

func (d *Documents) begin(client int, document string, q question) *Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock++
	c := &Call{of: d, client: client, document: document, asked: q, begun: d.clock, ended: never, answered: answer{unknown: true}}
	d.calls = append(d.calls, c)
	return c
}

func (c *Call) end(a answer) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.clock++
	c.ended, c.answered = c.of.clock, a
}

// Saw ends a read that found the document; revision 0 says that there is none.
func (c *Call) Saw(revision uint64, value string) { c.end(answer{revision: revision, value: value}) }

// Wrote ends a write that succeeded and gave the document its revision.
func (c *Call) Wrote(revision uint64) { c.end(answer{revision: revision}) }

// Refused ends a write that was refused because of the document's revision.
func (c *Call) Refused() { c.end(answer{refused: true}) }

// Dropped ends a call that certainly was not carried out: a read without an answer,
// a write that was never sent. A call that is not ended may have happened at any
// time after its beginning, or never.
func (c *Call) Dropped() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.dropped = true
}

// Count is how many calls were answered and how many writes may have happened.
func (d *Documents) Count() (answered, unknown int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.calls {
		switch {
		case c.dropped:
		case !c.answered.unknown:
			answered++
		case !c.asked.read:
			unknown++
		}
	}
	return answered, unknown
}

// Check finds the documents whose history no order explains in which every call
// takes effect at one moment between its beginning and its end. It tells each with
// its calls. A document that cannot be decided within the time is told too.
func (d *Documents) Check(within time.Duration) (wrong []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	byName := map[string][]porcupine.Operation{}
	for _, c := range d.calls {
		if c.dropped || c.asked.read && c.answered.unknown {
			continue
		}
		byName[c.document] = append(byName[c.document], porcupine.Operation{
			ClientId: c.client, Input: c.asked, Output: c.answered, Call: c.begun, Return: c.ended,
		})
	}
	for name, calls := range byName {
		switch porcupine.CheckOperationsTimeout(model(), calls, within) {
		case porcupine.Illegal:
			wrong = append(wrong, fmt.Sprintf("the history of document %s is not linearizable:\n%s", name, tell(calls)))
		case porcupine.Unknown:
			wrong = append(wrong, fmt.Sprintf("the history of document %s, %d calls, cannot be decided within %v", name, len(calls), within))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// document is the state of one document: what its next reader sees.
type document struct {
	revision uint64
	value    string
}

// model is a document as the contract promises it.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return document{} },
		Step: func(state, input, output any) (bool, any) {
			return step(state.(document), input.(question), output.(answer))
		},
		DescribeOperation: func(input, output any) string { return describe(input.(question), output.(answer)) },
	}
}

func step(s document, q question, a answer) (bool, document) {
	if q.read {
		return a.revision == s.revision && (s.revision == 0 || a.value == s.value), s
	}
	fits := q.expected == nil || *q.expected == s.revision
	after := document{s.revision + 1, q.value}
	switch {
	case a.unknown && !fits: // it may have been refused
		return true, s
	case a.unknown:
		return true, after
	case a.refused:
		return !fits, s
	}
	return fits && a.revision == after.revision, after
}

func describe(q question, a answer) string {
	asked := "read"
	if !q.read {
		asked = "write " + q.value
		if q.expected != nil {
			asked += fmt.Sprintf(" over revision %d", *q.expected)
		}
	}
	switch {
	case a.unknown:
		return asked + ": no answer"
	case a.refused:
		return asked + ": refused"
	case q.read && a.revision == 0:
		return asked + ": nothing there"
	case q.read:
		return fmt.Sprintf("%s: %s at revision %d", asked, a.value, a.revision)
	}
	return fmt.Sprintf("%s: revision %d", asked, a.revision)
}

// tell writes calls in the order of their beginnings.
func tell(calls []porcupine.Operation) string {
	slices.SortFunc(calls, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var out strings.Builder
	for _, c := range calls {
		until := "     …"
		if c.Return != never {
			until = fmt.Sprintf("%6d", c.Return)
		}
		fmt.Fprintf(&out, "  %6d to %s  client %d  %s\n", c.Call, until, c.ClientId, describe(c.Input.(question), c.Output.(answer)))
	}
	return out.String()
}
