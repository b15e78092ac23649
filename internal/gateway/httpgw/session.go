package httpgw

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/frame"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/wire"
)

const (
	defaultSessionCalls = 1_024
	// sessionBytes is how many bytes of requests one session may have in
	// evaluation; the next one is read when there is room.
	sessionBytes = 64 << 20
	// skipBytes is the largest request that is refused by itself. Whoever sends
	// more loses the connection.
	skipBytes = 64 << 20
	// idleTime ends a session whose client is silent: a live one pings.
	idleTime = 90 * time.Second
)

// session is one connection with many calls in flight. One goroutine reads; the
// calls are evaluated by others.
type session struct {
	g    *Gateway
	key  string
	conn net.Conn
	in   *frame.Reader
	out  *frame.Writer

	// Of the reading goroutine: the key is checked again after every read of the
	// connection, so that a key that is revoked stops working on an open session.
	checked bool
	caller  Caller
	refused *fault.Error

	answers answers // that are not sent yet

	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	jobs   chan job
	idle   atomic.Int32 // goroutines that wait for a job

	mu       sync.Mutex
	room     sync.Cond        // serving or bytes fell
	calls    map[uint32]*call // in evaluation
	serving  int              // goroutines, those that still write their answer included
	bytes    int              // of requests in evaluation
	draining bool             // takes no further calls
	parted   bool             // and has said goodbye
	ended    bool             // drained: nothing is read any more
}

// call is one call in evaluation.
type call struct {
	id     uint32
	size   int
	held   int // bytes of its body that the server counts
	tenant string
	ctx    context.Context
	cancel context.CancelFunc
}

var (
	// errProtocol is what a peer does that does not speak the protocol.
	errProtocol = errors.New("the session protocol was broken")
	errDrained  = errors.New("the session is drained")
)

// Read reads from the connection and notes that the key must be checked again.
func (s *session) Read(b []byte) (int, error) {
	_ = s.conn.SetReadDeadline(time.Now().Add(idleTime))
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	if ended { // from now on interrupt would come too early
		return 0, errDrained
	}
	n, err := s.conn.Read(b)
	s.checked = false
	return n, err
}

// run reads frames until the connection ends.
func (s *session) run() {
	defer s.end()
	for {
		h, err := s.in.Next()
		if err == nil {
			err = s.frame(h)
		}
		if err != nil {
			s.leave(err)
			return
		}
	}
}

func (s *session) frame(h frame.Header) error {
	switch h.Kind {
	case frame.Call:
		return s.call(h)
	case frame.Cancel:
		s.mu.Lock()
		c := s.calls[h.ID]
		s.mu.Unlock()
		if c != nil {
			c.cancel()
		}
		return s.in.Skip(h.Size)
	case frame.Ping:
		if err := s.in.Skip(h.Size); err != nil {
			return err
		}
		return s.out.Send(frame.Pong, 0, nil, nil)
	case frame.Pong:
		return s.in.Skip(h.Size)
	}
	return fmt.Errorf("%w: frame of kind %d", errProtocol, h.Kind)
}

// call reads one request and evaluates it in a goroutine of its own.
func (s *session) call(h frame.Header) error {
	if h.Size < frame.OperationBytes {
		return fmt.Errorf("%w: a call without an operation", errProtocol)
	}
	var number [frame.OperationBytes]byte
	if err := s.in.Read(number[:]); err != nil {
		return err
	}
	size := h.Size - frame.OperationBytes
	if size > limits.BodyBytes {
		if err := s.in.Skip(size); err != nil {
			return err
		}
		return s.fault(h.ID, errBodyTooLarge())
	}
	c, f, err := s.admit(h.ID, size)
	if err != nil {
		return err
	}
	rt := s.g.byNumber[binary.BigEndian.Uint16(number[:])]
	if f == nil {
		f = s.hold(c)
	}
	if f != nil {
		return s.refuse(c, f)
	}
	body := frame.NewBuffer(size)
	err = s.in.Read(body.B)
	if f == nil && err == nil {
		f = s.check(rt)
	}
	if f == nil && err == nil {
		s.hand(job{c, rt, s.caller, body})
		return nil
	}
	body.Release()
	s.finish(c)
	s.done()
	if err != nil {
		return err
	}
	return s.fault(h.ID, f)
}

// hold makes room for the body of a call on the whole server. Whose it is, is known
// from the first call on.
func (s *session) hold(c *call) *fault.Error {
	if s.caller == nil {
		caller, err := s.g.door.Authenticate(s.ctx, s.key)
		if err != nil {
			return toFault(err, nil, nil)
		}
		s.caller = caller
	}
	c.tenant = s.caller.Tenant()
	f := s.g.bodies.take(c.tenant, c.size, c.size)
	if f == nil {
		c.held = c.size
	}
	return f
}

// refuse answers a call whose body is not read.
func (s *session) refuse(c *call, f *fault.Error) error {
	err := s.in.Skip(c.size)
	s.finish(c)
	s.done()
	if err != nil {
		return err
	}
	return s.fault(c.id, f)
}

// check refuses an operation that does not exist, and authenticates once for
// all frames that arrived together.
func (s *session) check(rt *route) *fault.Error {
	if rt == nil {
		return fault.New(fault.NotFound, "unknown_operation", "this server has no operation with this number")
	}
	if !s.checked {
		caller, err := s.g.door.Authenticate(s.ctx, s.key)
		s.caller, s.refused, s.checked = caller, nil, true
		if err != nil {
			s.refused = toFault(err, nil, nil)
		}
	}
	return s.refused
}

// admit takes room for a call, and waits for it where the peer sends faster
// than it reads. A refused call has room too, until it is answered.
func (s *session) admit(id uint32, size int) (*call, *fault.Error, error) {
	c := &call{id: id, size: size}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.serving >= 2*s.g.sessionCalls || s.bytes > 0 && s.bytes+size > sessionBytes {
		s.room.Wait()
	}
	if s.calls[id] != nil {
		c.cancel()
		return nil, nil, fmt.Errorf("%w: call id %d is in use", errProtocol, id)
	}
	var f *fault.Error
	switch {
	case s.draining:
		f = errDraining()
	case len(s.calls) >= s.g.sessionCalls:
		f = fault.New(fault.ResourceExhausted, "session_calls",
			"the session has %d calls in flight; wait for an answer, or open another session", s.g.sessionCalls).
			With("limit", "%d", s.g.sessionCalls).WithRetry(fault.RetrySameID)
	}
	s.calls[id] = c
	s.serving++
	s.bytes += size
	return c, f, nil
}

// finish frees the call id. It comes before the answer: who has read that may
// send the next call at once.
func (s *session) finish(c *call) {
	c.cancel()
	s.g.bodies.give(c.tenant, c.held)
	s.mu.Lock()
	delete(s.calls, c.id)
	s.bytes -= c.size
	s.room.Broadcast()
	s.mu.Unlock()
}

// done frees the place of a goroutine; the last one of a session that drains
// ends the reading.
func (s *session) done() {
	s.mu.Lock()
	s.serving--
	s.endIfDrained()
	s.room.Broadcast()
	s.mu.Unlock()
}

// endIfDrained makes the reading goroutine end. The lock is held.
func (s *session) endIfDrained() {
	if s.parted && s.serving == 0 {
		s.ended = true
		_ = s.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

func (s *session) fault(id uint32, f *fault.Error) error {
	b, err := wire.EncodeCBOR(f)
	if err != nil {
		return err
	}
	return s.out.Send(frame.Fault, id, nil, b)
}

// drain takes no further calls and ends the session when those in flight are
// answered.
func (s *session) drain() {
	s.mu.Lock()
	s.draining = true // before the goodbye: no call that comes after it is answered
	s.mu.Unlock()
	s.goodbye(errDraining())
	s.mu.Lock()
	s.parted = true
	s.endIfDrained()
	s.mu.Unlock()
}

// goodbye tells the client why no call sent from now on is answered.
func (s *session) goodbye(f *fault.Error) {
	if b, err := wire.EncodeCBOR(f); err == nil {
		_ = s.out.Send(frame.Goodbye, 0, nil, b) // a client that is gone needs no reason
	}
}

// leave says why the session ends, where the client can still be told.
func (s *session) leave(err error) {
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	switch {
	case ended, errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.goodbye(fault.New(fault.OwnershipLost, "session_idle", "the session was silent for %d seconds", int(idleTime.Seconds())))
	default:
		s.goodbye(fault.New(fault.Validation, "session_protocol", "the session ends: a frame was not understood"))
	}
}

// end cancels what is in flight, so that nothing is claimed for a client that
// is gone, and waits for it. A drained session has nothing in flight.
func (s *session) end() {
	s.cancel()
	s.out.Close()
	_ = s.conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.serving > 0 {
		s.room.Wait()
	}
}
