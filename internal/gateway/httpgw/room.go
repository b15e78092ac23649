package httpgw

import (
	"context"
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
	query  bool
	wait   bool // for the server's room too, as long as it takes
	sized  bool // an attempt said how many bytes it wants, at most
	held   int
}

// of says whose answer, to which operation, will be held.
func (r *room) of(tenant string, o *api.Operation) {
	r.tenant, r.query, r.sized = tenant, o.Kind == api.Query, false
}

// Take implements engine.Room.
func (r *room) Take(ctx context.Context, asked int64) (int, error) {
	if asked == 0 {
		return r.takeLeast(ctx)
	}
	r.sized = true
	// One record is answered though it has more bytes than were asked for.
	want := int(min(max(asked, limits.PayloadBytes), limits.PageBytes))
	// Who holds some and waits for more must not wait for others that do.
	if r.own != nil && takeWithin(ctx, r.held == 0, r.own, "", want) != nil {
		return 0, refused(ctx)
	}
	if takeWithin(ctx, r.wait, &r.g.answers, r.tenant, want) == nil {
		r.held += want
		return want, nil
	}
	if r.own != nil {
		r.own.give("", want)
	}
	return 0, refused(ctx)
}

// takeWithin waits for room as long as ctx lasts, or else only a little.
func takeWithin(ctx context.Context, patient bool, a *answers, tenant string, want int) error {
	if !patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limits.AnswersWaitMillis*time.Millisecond)
		defer cancel()
	}
	return a.take(ctx, tenant, want)
}

// takeLeast is Take for a request that does not say how many bytes it wants.
func (r *room) takeLeast(ctx context.Context) (int, error) {
	if !r.query {
		return 0, nil
	}
	if r.own != nil && r.own.take(ctx, "", leastAnswer) != nil {
		return 0, errGone()
	}
	r.g.answers.give(r.tenant, -leastAnswer)
	r.held += leastAnswer
	return leastAnswer, nil
}

// refused is why there was no room.
func refused(ctx context.Context) error {
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

// Give implements engine.Room.
func (r *room) Give(taken int) {
	if taken == 0 {
		return
	}
	if r.own != nil {
		r.own.give("", taken)
	}
	r.g.answers.give(r.tenant, taken)
	r.held -= taken
}

// empty gives back all that is held.
func (r *room) empty() { r.Give(r.held) }

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
