package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/frame"
	"github.com/keyload/keyload/internal/wire"
)

var (
	errUnready = errors.New("it does not answer calls yet")
	errBusy    = errors.New("it evaluates too many calls of this node already")
)

// service is one connection for calls, at the side that answers them.
type service struct {
	m *Mesh
	l *link

	mu    sync.Mutex
	calls map[uint32]context.CancelFunc // in evaluation
	bytes int                           // of their bodies
	all   sync.WaitGroup
}

// serveCalls answers calls until the connection ends, and waits for those that are
// in evaluation then; their contexts end.
func serveCalls(m *Mesh, l *link) error {
	// The bound is on what waits to be written; a peer that does not read its answers
	// makes the handlers wait.
	if !l.start(newOutbox(m.o.Bounds.CallQueue, m.o.Bounds.CallsServed), m.o.Times, m.spawn) {
		return errClosed
	}
	s := &service{m: m, l: l, calls: map[uint32]context.CancelFunc{}}
	var err error
	for err == nil {
		err = s.next()
	}
	l.close(err)
	l.out.close()
	s.all.Wait()
	return err
}

func (s *service) next() error {
	h, err := s.l.next()
	if err != nil {
		return err
	}
	switch h.Kind {
	case frame.Cancel:
		s.mu.Lock()
		if cancel := s.calls[h.ID]; cancel != nil {
			cancel()
		}
		s.mu.Unlock()
		return s.l.in.Skip(h.Size)
	case frame.Call:
		if h.Size >= callHead && h.Size <= s.m.o.Bounds.CallBytes+callHead {
			return s.call(h)
		}
	}
	return unexpected(h)
}

// call reads one call and answers it in a goroutine of its own.
func (s *service) call(h frame.Header) error {
	var head [callHead]byte
	if err := s.l.in.Read(head[:]); err != nil {
		return err
	}
	size := h.Size - callHead
	ctx, cancel := s.deadline(binary.BigEndian.Uint32(head[1:]))
	handler := s.m.receiver.Load().handler
	refused, err := s.admit(h.ID, size, cancel)
	if err == nil && refused == nil && handler == nil {
		s.finish(h.ID, size)
		refused = errUnready
	}
	if err != nil || refused != nil {
		cancel()
		if err == nil {
			err = s.l.in.Skip(size)
		}
		if err != nil {
			return err
		}
		return s.l.out.put(s.l.ctx, &parcel{kind: kindRefused, id: h.ID, body: textOf(refused)})
	}
	body := make([]byte, size)
	if err := s.l.in.Read(body); err != nil {
		s.finish(h.ID, size)
		return err
	}
	s.all.Go(func() {
		answer, err := handler(ctx, s.l.name.Node, head[0], body)
		s.finish(h.ID, size)
		_ = s.l.out.put(s.l.ctx, s.reply(h.ID, answer, err)) // fails with the connection only
	})
	return nil
}

func (s *service) deadline(millis uint32) (context.Context, context.CancelFunc) {
	if millis == 0 {
		return context.WithCancel(s.l.ctx)
	}
	return context.WithTimeout(s.l.ctx, time.Duration(millis)*time.Millisecond)
}

// admit makes room for a call, or says why there is none; err ends the connection.
func (s *service) admit(id uint32, size int, cancel context.CancelFunc) (refused, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[id] != nil {
		return nil, fmt.Errorf("%w: the id of a call is in use", errProtocol)
	}
	if len(s.calls) >= s.m.o.Bounds.CallsServed || len(s.calls) > 0 && s.bytes+size > s.m.o.Bounds.CallsBytes {
		return errBusy, nil
	}
	s.calls[id] = cancel
	s.bytes += size
	return nil, nil
}

// finish comes before the answer: who has read that may use the id again.
func (s *service) finish(id uint32, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[id]()
	delete(s.calls, id)
	s.bytes -= size
}

// reply is the frame for what a handler returned.
func (s *service) reply(id uint32, answer []byte, err error) *parcel {
	if err == nil && len(answer) > s.m.o.Bounds.CallBytes {
		err = fmt.Errorf("the answer has %d bytes, more than the %d that can be sent", len(answer), s.m.o.Bounds.CallBytes)
	}
	if err == nil {
		return &parcel{kind: frame.Result, id: id, body: answer}
	}
	if f := fault.From(err); f != nil {
		if b, encodeErr := wire.EncodeCBOR(f); encodeErr == nil {
			return &parcel{kind: frame.Fault, id: id, body: b}
		}
	}
	return &parcel{kind: kindFailed, id: id, body: textOf(err)}
}
