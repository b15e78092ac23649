package demo

import (
	"encoding/json"
	"io"
	"sync"
)

// The kinds of lines a child writes.
const (
	lineOpened    = "opened"    // the store is open and its resources are there
	lineFed       = "fed"       // the batch of delivery Index is committed, or was before
	lineProcessed = "processed" // the effects of Message and its acknowledgement are committed
	lineRefused   = "refused"   // a worker that came back after its lease changed nothing
	lineDone      = "done"      // everything is fed and the queue is empty
	lineFound     = "found"     // what was read back
	lineFailed    = "failed"    // Text says why the child gives up
)

// line is one line of JSON from a child to its parent.
type line struct {
	Kind     string `json:"kind"`
	Index    int    `json:"index,omitempty"`
	Replayed bool   `json:"replayed,omitempty"`
	Message  string `json:"message,omitempty"`
	Text     string `json:"text,omitempty"`
	Found    *found `json:"found,omitempty"`
}

// lineWriter writes whole lines from any goroutine. What was written survives
// the child: it is in the pipe.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) write(x line) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.w.Write(append(b, '\n'))
	return err
}
