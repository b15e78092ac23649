package demo

import (
	"encoding/json"
	"io"
	"sync"
)

// The kinds of lines a child writes.
const (
	lineOpened    = "opened"    // the store is open and its resources are there; Windows is what was left behind
	lineFed       = "fed"       // the batch of delivery Index is committed, or was before
	lineProcessed = "processed" // the effects of ID and its acknowledgement are committed
	lineRefused   = "refused"   // a worker that came back after its lease changed nothing
	lineRenewed   = "renewed"   // a worker prolonged its lease
	lineWindows   = "windows"   // Windows is where the groups stand
	lineDone      = "done"      // everything is fed and nothing is left in the queue and the groups
	lineFound     = "found"     // what was read back
	lineFailed    = "failed"    // Text says why the child gives up
)

// line is one line of JSON from a child to its parent.
type line struct {
	Kind     string            `json:"kind"`
	Index    int               `json:"index,omitempty"`
	Replayed bool              `json:"replayed,omitempty"`
	Group    string            `json:"group,omitempty"` // empty for the queue
	ID       string            `json:"id,omitempty"`    // of the message or event
	Windows  map[string]window `json:"windows,omitempty"`
	Text     string            `json:"text,omitempty"`
	Found    *found            `json:"found,omitempty"`
}

// lineWriter writes whole lines from any goroutine. What was written survives
// the child: it is in the pipe.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
	// hold, if set, is called before a line is written and may keep who writes it
	// waiting.
	hold func(line)
}

func (l *lineWriter) write(x line) error {
	if l.hold != nil {
		l.hold(x)
	}
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.w.Write(append(b, '\n'))
	return err
}
