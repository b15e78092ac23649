package frame

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"time"
)

// ErrClosed is returned by Send after Close.
var ErrClosed = errors.New("frame: the writer is closed")

const (
	// writeTimeout bounds one write: a peer that reads nothing for so long is
	// gone.
	writeTimeout = 30 * time.Second
	// maxPending is how many bytes may wait for the connection before Send
	// waits too.
	maxPending = 16 << 20
)

// Writer writes frames of one connection. Frames that arrive while a write is
// under way are joined into the next one. It is safe for concurrent use.
type Writer struct {
	conn   net.Conn
	failed func(error)

	mu      sync.Mutex
	room    sync.Cond // pending became short, or err was set
	pending []byte
	after   []func() // to be called when pending is written
	spare   []byte
	writing bool // somebody writes; whoever appends need not
	handed  bool // the goroutine is to go on with the writing
	closing bool
	err     error

	wake chan struct{} // the goroutine has something to write, or shall end
	done chan struct{}
}

// NewWriter starts the writer's goroutine. failed is called once, after the
// first write that fails; it must not call Close.
func NewWriter(conn net.Conn, failed func(error)) *Writer {
	w := &Writer{conn: conn, failed: failed, wake: make(chan struct{}, 1), done: make(chan struct{})}
	w.room.L = &w.mu
	go w.run()
	return w
}

// Send queues one frame whose body is head followed by body; both are copied.
// It waits only while too many bytes are queued. An error means that nothing of
// the frame was written; no error says nothing about the peer.
func (w *Writer) Send(kind Kind, id uint32, head, body []byte) error {
	return w.SendThen(kind, id, head, body, nil)
}

// SendThen is Send, and calls written once the frame has left this process or never
// will; it must be quick. After an error it has been called too.
func (w *Writer) SendThen(kind Kind, id uint32, head, body []byte, written func()) error {
	w.mu.Lock()
	for w.err == nil && !w.closing && len(w.pending) > maxPending {
		w.room.Wait()
	}
	if w.err != nil || w.closing {
		err := w.err
		w.mu.Unlock()
		if err == nil {
			err = ErrClosed
		}
		if written != nil {
			written()
		}
		return err
	}
	if written != nil {
		w.after = append(w.after, written)
	}
	w.pending = Header{Kind: kind, ID: id}.Append(w.pending, head, body)
	if w.writing {
		w.mu.Unlock()
		return nil
	}
	w.writing = true
	w.mu.Unlock()
	// The first to find the connection idle writes itself, which saves a switch
	// to the goroutine. Whoever can run now gets the chance to join.
	runtime.Gosched()
	w.write(true)
	return nil
}

// write takes everything that waits and writes it. It says whether more waits;
// with handOver the goroutine gets the rest to write.
func (w *Writer) write(handOver bool) (more bool) {
	w.mu.Lock()
	out, after := w.pending, w.after
	w.pending, w.spare, w.after = w.spare[:0], nil, nil
	w.mu.Unlock()
	defer func() {
		for _, written := range after {
			written()
		}
	}()
	_ = w.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := w.conn.Write(out)
	if err != nil {
		w.fail(err)
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if cap(out) <= 4*maxKept {
		w.spare = out[:0]
	}
	w.room.Broadcast()
	w.writing = len(w.pending) > 0
	w.handed = w.writing && handOver
	if w.handed || w.closing {
		w.signal()
	}
	return w.writing
}

func (w *Writer) fail(err error) {
	w.mu.Lock()
	w.err, w.writing = err, false
	after := w.after
	w.pending, w.after = nil, nil
	w.room.Broadcast()
	w.signal()
	w.mu.Unlock()
	for _, never := range after {
		never()
	}
	w.failed(err)
}

func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run writes what Send left behind, until Close.
func (w *Writer) run() {
	defer close(w.done)
	for range w.wake {
		w.mu.Lock()
		mine := w.handed
		w.handed = false
		w.mu.Unlock()
		for mine && w.write(false) {
		}
		w.mu.Lock()
		end := w.closing && !w.writing
		w.mu.Unlock()
		if end {
			return
		}
	}
}

// Close refuses further frames, writes what is queued, and waits for the
// goroutine to end. Close the connection first to give up what is queued.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closing = true
	w.room.Broadcast()
	w.mu.Unlock()
	w.signal()
	<-w.done
}
