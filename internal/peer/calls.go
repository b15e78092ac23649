package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/frame"
	"github.com/keyload/keyload/internal/wire"
)

// callHead is the size of what stands before the body of a call: its kind, and the
// milliseconds until its deadline, 0 for none.
const callHead = 1 + 4

// Call asks a node and waits for its answer. Errors hold a *fault.Error: what the
// handler there returned; else they are ErrNotSent when it certainly got nothing, or
// ErrLost when it may have got the call. Nothing is ever sent twice.
func (m *Mesh) Call(ctx context.Context, to uint64, kind byte, body []byte) ([]byte, error) {
	if len(body) > m.o.Bounds.CallBytes {
		return nil, notSent("a call of %d bytes; at most %d", len(body), m.o.Bounds.CallBytes)
	}
	n, _, _, err := m.find(to)
	if err != nil {
		return nil, notSent("node %d: %w", to, err)
	}
	s, err := m.session(ctx, n)
	if err != nil {
		return nil, notSent("node %d: %w", to, err)
	}
	return s.call(ctx, kind, body)
}

// CallAt is Call to whichever node of the cluster is at an address; it says which
// one that is. The connection is for this call only.
func (m *Mesh) CallAt(ctx context.Context, address string, kind byte, body []byte) (node uint64, answer []byte, err error) {
	if len(body) > m.o.Bounds.CallBytes {
		return 0, nil, notSent("a call of %d bytes; at most %d", len(body), m.o.Bounds.CallBytes)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.ctx, func() { cancel(errClosed) })()
	l, err := m.dial(ctx, address, 0, forCalls)
	if err != nil {
		return 0, nil, notSent("%w", err)
	}
	s, err := newSession(m, l)
	if err != nil {
		return 0, nil, notSent("%w", err)
	}
	answer, err = s.call(ctx, kind, body)
	l.close(nil)
	<-s.done
	return l.name.Node, answer, err
}

// caller is a place for one connection for calls.
type caller struct {
	mu      sync.Mutex
	session *session
	dialing chan struct{} // closed when the attempt is over; nil when there is none
	failed  error         // of the last attempt
	until   time.Time     // it holds
	wait    time.Duration
}

// look is the connection, if there is one. If not, an attempt to make it is under
// way: dialing is closed when that is over; or the last one has just failed.
func (c *caller) look(m *Mesh, n *node) (s *session, dialing <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil && c.session.usable() {
		return c.session, nil, nil
	}
	if c.failed != nil && time.Now().Before(c.until) {
		return nil, nil, c.failed
	}
	if c.dialing == nil {
		over := make(chan struct{})
		if !m.spawn(func() { c.connect(m, n, over) }) {
			return nil, nil, errClosed
		}
		c.dialing = over
	}
	return nil, c.dialing, nil
}

// result is what the last attempt has come to.
func (c *caller) result() (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.failed
}

// session is a connection for calls to a node: the next one in turn, or another one
// while that is being made.
func (m *Mesh) session(ctx context.Context, n *node) (*session, error) {
	turn := int(n.turn.Add(1))
	mine := n.callers[turn%len(n.callers)]
	s, dialing, err := mine.look(m, n)
	if s != nil {
		return s, nil
	}
	for i := range n.callers[1:] {
		if s, _, _ := n.callers[(turn+1+i)%len(n.callers)].look(m, n); s != nil {
			return s, nil
		}
	}
	if err != nil {
		return nil, err
	}
	select {
	case <-dialing:
		return mine.result()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// connect makes the connection. An attempt that failed is not repeated
// for a while: those who call would all wait for it.
func (c *caller) connect(m *Mesh, n *node, dialing chan struct{}) {
	var s *session
	_, address, route, err := m.find(n.id)
	if err == nil {
		var l *link
		if l, err = m.dial(route, address, n.id, forCalls); err == nil {
			s, err = newSession(m, l)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.failed = s, err
	if err != nil {
		c.wait = min(max(2*c.wait, m.o.Times.BackoffMin), m.o.Times.BackoffMax)
		c.until = time.Now().Add(c.wait)
	} else {
		c.wait = 0
	}
	c.dialing = nil
	close(dialing)
}

// session is one connection for calls, at the side that makes them.
type session struct {
	l     *link
	limit int // bytes of an answer
	done  chan struct{}

	mu    sync.Mutex
	calls map[uint32]*pending
	last  uint32
	ended bool
}

// pending is a call that waits for its answer.
type pending struct {
	parcel   *parcel
	answered chan struct{} // closed when the rest is set
	kind     frame.Kind    // 0: the connection ended
	body     []byte
}

func newSession(m *Mesh, l *link) (*session, error) {
	s := &session{l: l, limit: m.o.Bounds.CallBytes, done: make(chan struct{}), calls: map[uint32]*pending{}}
	if !l.start(newOutbox(m.o.Bounds.CallQueue, m.o.Bounds.CallsServed), m.o.Times, m.spawn) || !m.spawn(s.run) {
		l.close(errClosed)
		return nil, errClosed
	}
	return s, nil
}

func (s *session) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended && s.l.ctx.Err() == nil
}

// call sends one call and waits for its answer.
func (s *session) call(ctx context.Context, kind byte, body []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, notSent("%w", context.Cause(ctx))
	}
	id, p := s.register(kind, timeLeft(ctx), body)
	if p == nil {
		return nil, notSent("%s: %w", s.l.name, s.l.cause())
	}
	if err := s.l.out.put(ctx, p.parcel); err != nil {
		s.forget(id)
		return nil, notSent("%s: %w", s.l.name, err)
	}
	select {
	case <-p.answered:
	case <-ctx.Done():
		if s.forget(id) {
			return nil, s.abandon(ctx, id, p)
		}
		<-p.answered // it came just now
	}
	return s.answer(p)
}

// timeLeft is the time until the deadline in milliseconds; 0: there is none.
func timeLeft(ctx context.Context) uint32 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return uint32(min(max(time.Until(deadline).Milliseconds(), 1), 1<<32-1))
}

func (s *session) register(kind byte, millis uint32, body []byte) (uint32, *pending) {
	head := binary.BigEndian.AppendUint32([]byte{kind}, millis)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0, nil
	}
	for {
		s.last++
		if s.calls[s.last] == nil {
			break
		}
	}
	// Cloned, because a caller who leaves may use the body again while it is written.
	p := &pending{
		parcel:   &parcel{kind: frame.Call, id: s.last, head: head, body: bytes.Clone(body)},
		answered: make(chan struct{}),
	}
	s.calls[s.last] = p
	return s.last, p
}

// forget says whether the call was still waiting for its answer.
func (s *session) forget(id uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.calls[id]
	delete(s.calls, id)
	return was
}

// abandon is for a caller that left before the answer.
func (s *session) abandon(ctx context.Context, id uint32, p *pending) error {
	if s.l.out.withdraw(p.parcel) {
		return notSent("%w", context.Cause(ctx))
	}
	s.l.out.offer(&parcel{kind: frame.Cancel, id: id}) // without it the other side goes on for longer
	return lost("%w", context.Cause(ctx))
}

func (s *session) answer(p *pending) ([]byte, error) {
	switch p.kind {
	case frame.Result:
		return p.body, nil
	case frame.Fault:
		var f fault.Error
		if err := wire.ReadCBOR(p.body, &f); err != nil {
			return nil, lost("%s: an error that cannot be read", s.l.name)
		}
		return nil, &f
	case kindRefused:
		return nil, notSent("%s: %s", s.l.name, p.body)
	case kindFailed:
		return nil, lost("%s: %s", s.l.name, p.body)
	}
	if s.l.out.withdraw(p.parcel) {
		return nil, notSent("%s: %w", s.l.name, s.l.cause())
	}
	return nil, lost("%s: %w", s.l.name, s.l.cause())
}

// run reads answers until the connection ends; then nobody waits any more.
func (s *session) run() {
	defer close(s.done)
	s.l.close(s.receive())
	s.l.out.close()
	s.mu.Lock()
	s.ended = true
	orphans := s.calls
	s.calls = nil
	s.mu.Unlock()
	for _, p := range orphans {
		close(p.answered)
	}
}

func (s *session) receive() error {
	for {
		h, err := s.l.next()
		if err != nil {
			return firstOf(s.l.ctx, err)
		}
		if h.Size > s.limit {
			return unexpected(h)
		}
		switch h.Kind {
		case frame.Result, frame.Fault, kindRefused, kindFailed:
		default:
			return unexpected(h)
		}
		body, err := s.l.body(h)
		if err != nil {
			return err
		}
		s.mu.Lock()
		p := s.calls[h.ID]
		delete(s.calls, h.ID)
		s.mu.Unlock()
		if p != nil { // else its caller has left
			p.kind, p.body = h.Kind, body
			close(p.answered)
		}
	}
}
