package httpgw

import (
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/keyload/keyload/internal/frame"
)

// maxIdle is how many goroutines of a session wait for the next call. They are
// kept because decoding needs a deep stack, which a new goroutine would have to
// grow again and again.
const maxIdle = 64

// job is one call with what its evaluation needs.
type job struct {
	call   *call
	route  *route
	caller Caller
	body   *frame.Buffer
}

// hand gives a call to a goroutine that waits, or to a new one.
func (s *session) hand(j job) {
	select {
	case s.jobs <- j:
	default:
		go s.work(j)
	}
}

// work serves calls until there are enough goroutines that wait.
func (s *session) work(j job) {
	for {
		s.serve(j.call, j.route, j.caller, j.body)
		if s.idle.Add(1) > maxIdle {
			s.idle.Add(-1)
			return
		}
		select {
		case j = <-s.jobs:
			s.idle.Add(-1)
		case <-s.ctx.Done():
			return
		}
	}
}

// serve evaluates one call of a session and answers it.
func (s *session) serve(c *call, rt *route, caller Caller, body *frame.Buffer) {
	defer s.done()
	defer s.survive(rt)
	began := time.Now()
	req := reflect.New(rt.op.Request).Interface()
	f := s.g.bodies.decode(cborType, body.B, req)
	body.Release()
	held, handed := &room{g: s.g, own: &s.answers}, false
	defer func() {
		if !handed {
			held.empty()
		}
	}()
	held.of(caller.Tenant(), rt.op)
	var resp any
	if f == nil {
		resp, f = s.g.do(c.ctx, caller, rt, req, held)
	}
	var answer []byte
	if f == nil {
		answer, f = encode(cborType, resp)
	}
	if f == nil {
		f = held.settle(len(answer))
	}
	resp = nil // only what is counted is held until the client reads
	s.finish(c)
	rt.stats[surfaceSession].observe(time.Since(began), f)
	var err error
	if f != nil {
		held.empty()
		err = s.fault(c.id, f)
	} else {
		handed = true
		err = s.out.SendThen(frame.Result, c.id, nil, answer, held.empty)
	}
	if err != nil { // the client is gone: what else waits shall not claim anything
		s.cancel()
	}
}

// survive keeps a fault of the program in one call from ending the process, as
// net/http does. The connection ends, so the client learns that the outcome is
// unknown.
func (s *session) survive(rt *route) {
	if p := recover(); p != nil {
		s.g.log.Error("panic in a session", "operation", rt.op.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		_ = s.conn.Close()
	}
}
