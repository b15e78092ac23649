package client

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/keyload/keyload/internal/frame"
)

const (
	quietTime = 20 * time.Second
	// settleTime is what a command whose context ended gets to learn what became
	// of it: a claimed message would else be held by nobody until its lease ends.
	settleTime = 250 * time.Millisecond
)

// session is one connection that carries many calls. One goroutine reads.
type session struct {
	conn net.Conn
	body io.ReadWriteCloser // reads what came with the answer to the upgrade too
	in   *frame.Reader
	out  *frame.Writer
	room chan struct{} // a slot per call in flight
	// quiet is as in patience.
	quiet time.Duration
	done  chan struct{} // closed when the session's goroutines have ended

	mu      sync.Mutex
	calls   map[uint32]*pending
	free    []*pending // for reuse; a pool of all sessions would carry channels into other synctest bubbles
	next    uint32
	err     error
	leaving bool // the server answers no further calls
}

// pending is one call in flight.
type pending struct {
	answered chan struct{} // holds one value when the rest is set
	kind     frame.Kind    // Result or Fault; 0 when the connection was lost
	body     *frame.Buffer
}

func newSession(conn net.Conn, body io.ReadWriteCloser, calls int, quiet time.Duration) *session {
	s := &session{
		conn: conn, body: body, quiet: quiet, room: make(chan struct{}, calls), done: make(chan struct{}), calls: map[uint32]*pending{},
	}
	s.in = frame.NewReader(s, maxAnswer)
	s.out = frame.NewWriter(conn, s.fail)
	go s.run()
	return s
}

func (s *session) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil && !s.leaving
}

func (s *session) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// call sends one request and waits for its answer.
func (s *session) call(ctx context.Context, r request, resp any) error {
	select {
	case s.room <- struct{}{}:
	case <-ctx.Done():
		return notSent(ctx)
	case <-s.done:
		return unreachable("the connection was lost")
	}
	defer func() { <-s.room }()
	id, p := s.register()
	if p == nil {
		return unreachable("the connection was lost")
	}
	var number [frame.OperationBytes]byte
	binary.BigEndian.PutUint16(number[:], r.op.Number)
	if err := s.out.Send(frame.Call, id, number[:], r.body); err != nil {
		if s.forget(id, p) {
			s.recycle(p)
		}
		return unreachable("the connection was lost")
	}
	select {
	case <-p.answered:
	case <-ctx.Done():
		if !s.abandon(id, p, r) {
			return gone(r)
		}
	}
	return s.answer(p, r, resp)
}

// abandon tells the server that the caller went away. It says whether the
// answer came nevertheless.
func (s *session) abandon(id uint32, p *pending, r request) bool {
	_ = s.out.Send(frame.Cancel, id, nil, nil) // if it fails the connection is lost, which cancels too
	if r.id != "" {
		t := time.NewTimer(settleTime)
		defer t.Stop()
		select {
		case <-p.answered:
			return true
		case <-t.C:
		}
	}
	return s.forget(id, p)
}

// answer reads what came and gives the pending call back.
func (s *session) answer(p *pending, r request, resp any) error {
	kind, body := p.kind, p.body
	s.recycle(p)
	switch kind {
	case frame.Result:
		defer body.Release()
		return decodeResult(r.op, body.B, resp)
	case frame.Fault:
		defer body.Release()
		return decodeFault(body.B)
	}
	return lost(r, "connection_lost", "the connection was lost before the answer came")
}

// register gives a call its id; nil when the session takes no calls any more.
func (s *session) register() (uint32, *pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.leaving {
		return 0, nil
	}
	for {
		s.next++
		if s.calls[s.next] == nil { // after 2^32 calls a slow one may still hold its id
			break
		}
	}
	var p *pending
	if n := len(s.free); n > 0 {
		p, s.free = s.free[n-1], s.free[:n-1]
	} else {
		p = &pending{answered: make(chan struct{}, 1)}
	}
	s.calls[s.next] = p
	return s.next, p
}

// recycle keeps a call that is over for the next one.
func (s *session) recycle(p *pending) {
	p.kind, p.body = 0, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, p)
}

// forget takes a call out that nobody waits for any more. It says whether the
// answer had come, and then waits for it: p is the reader's until then.
func (s *session) forget(id uint32, p *pending) (answered bool) {
	s.mu.Lock()
	mine := s.calls[id] == p
	if mine {
		delete(s.calls, id)
	}
	s.mu.Unlock()
	if !mine {
		<-p.answered
		return true
	}
	s.recycle(p)
	return false
}

// take finds the call of an answer; nil when its caller went away.
func (s *session) take(id uint32) *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.calls[id]
	delete(s.calls, id)
	return p
}

// Read reads from the connection. Silence is answered with a ping, and lasting
// silence ends the session.
func (s *session) Read(b []byte) (int, error) {
	for asked := false; ; asked = true {
		_ = s.conn.SetReadDeadline(time.Now().Add(s.quiet))
		n, err := s.body.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || asked {
			return n, err
		}
		if err := s.out.Send(frame.Ping, 0, nil, nil); err != nil {
			return 0, err
		}
	}
}

// run reads answers until the connection ends; then every call in flight is
// lost.
func (s *session) run() {
	defer close(s.done)
	err := s.receive()
	s.fail(err)
	s.out.Close()
	s.mu.Lock()
	orphans := s.calls
	s.calls = map[uint32]*pending{}
	s.mu.Unlock()
	for _, p := range orphans {
		p.answered <- struct{}{}
	}
}

func (s *session) receive() error {
	for {
		h, err := s.in.Next()
		if err != nil {
			return err
		}
		switch h.Kind {
		case frame.Result, frame.Fault:
			err = s.deliver(h)
		case frame.Goodbye:
			s.mu.Lock()
			s.leaving = true
			s.mu.Unlock()
			err = s.in.Skip(h.Size)
		case frame.Ping:
			if err = s.in.Skip(h.Size); err == nil {
				err = s.out.Send(frame.Pong, 0, nil, nil)
			}
		default: // a Pong, or something newer that may be ignored
			err = s.in.Skip(h.Size)
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) deliver(h frame.Header) error {
	p := s.take(h.ID)
	if p == nil {
		return s.in.Skip(h.Size)
	}
	body := frame.NewBuffer(h.Size)
	if err := s.in.Read(body.B); err != nil {
		body.Release()
		p.answered <- struct{}{} // kind 0: lost
		return err
	}
	p.kind, p.body = h.Kind, body
	p.answered <- struct{}{}
	return nil
}

// fail ends the session; the reading goroutine does the rest.
func (s *session) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	_ = s.conn.Close()
}
