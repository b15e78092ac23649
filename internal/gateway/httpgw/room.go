package httpgw

import (
	"context"
	"reflect"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/limits"
)

const (
	// leastAnswer is what a query counts for that does not say how many bytes it wants,
	// until it has them: so a session whose client reads nothing stops asking.
	leastAnswer = 4 << 10
	// anything is room for what is held whatever the bounds say.
	anything = 1 << 40
)

// room is that of one call's answer, first in its session, where it has one, and then
// on the server. It is not used by two at once.
type room struct {
	g      *Gateway
	own    *answers // of the session; nil without one
	tenant string
	want   int  // what an attempt takes
	sized  bool // the request says how many bytes it wants, at most
	query  bool
	wait   bool // for the server's room too, as long as it takes
	held   int
}

// of says whose answer, to which request, will be held.
func (r *room) of(tenant string, rt *route, req any) {
	r.tenant, r.sized, r.query, r.want = tenant, rt.sized >= 0, rt.op.Kind == api.Query, 0
	switch {
	case r.sized:
		asked := reflect.ValueOf(req).Elem().Field(rt.sized).Int()
		// One record is answered though it has more bytes than were asked for.
		r.want = int(min(max(asked, limits.PayloadBytes), limits.PageBytes))
	case r.query:
		r.want = leastAnswer
	}
}

// Take makes room before an attempt of the call.
func (r *room) Take(ctx context.Context) error {
	if r.want == 0 {
		return nil
	}
	if r.own != nil && r.own.take(ctx, "", r.want) != nil {
		return errGone()
	}
	if !r.sized {
		r.g.answers.give(r.tenant, -r.want)
		r.held = r.want
		return nil
	}
	waits, cancel := ctx, context.CancelFunc(func() {})
	if !r.wait {
		waits, cancel = context.WithTimeout(ctx, limits.AnswersWaitMillis*time.Millisecond)
	}
	defer cancel()
	if r.g.answers.take(waits, r.tenant, r.want) == nil {
		r.held = r.want
		return nil
	}
	if r.own != nil {
		r.own.give("", r.want)
	}
	if ctx.Err() != nil {
		return errGone()
	}
	return busyAnswers("; nothing was read or claimed")
}

func errGone() error {
	return fault.New(fault.Cancelled, "cancelled", "the caller stopped waiting; nothing was read or claimed")
}

func busyAnswers(happened string) *fault.Error {
	return engine.Busy("answers", "the server holds as many bytes of answers that were not read yet as it may, or half of that for one tenant%s", happened)
}

// Give gives back what is held.
func (r *room) Give() {
	if r.own != nil && r.held > 0 {
		r.own.give("", r.held)
	}
	if r.held > 0 {
		r.g.answers.give(r.tenant, r.held)
	}
	r.held = 0
}

// settle holds an answer for what it is. A query whose answer found no room is
// refused: it changed nothing. What a command answers is small, or had room.
func (r *room) settle(bytes int) *fault.Error {
	n := bytes - r.held
	reserve := 0
	if bytes <= limits.SmallBodyBytes {
		reserve = limits.AnswersReserveBytes
	}
	if n <= 0 || r.sized || !r.query {
		reserve = anything
	}
	if r.own != nil && !r.own.more("", n, reserve) {
		return busyAnswers("; the query changed nothing")
	}
	if !r.g.answers.more(r.tenant, n, reserve) {
		if r.own != nil {
			r.own.give("", n)
		}
		return busyAnswers("; the query changed nothing")
	}
	r.held = bytes
	return nil
}
