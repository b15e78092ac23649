package engine

import (
	"context"
)

// Room is where the answer of a call is held until its caller has read it. Callers
// that read slowly, or nothing, would otherwise have the node hold without bound what
// it has read for them.
type Room interface {
	// Take makes room before an attempt whose answer has as many bytes as the caller asks
	// for at most; 0 is of requests that do not say. It says how many it has taken. An
	// error ends the call: nothing was read or claimed for it.
	Take(ctx context.Context, asked int64) (taken int, err error)
	// Give gives back what was taken for an attempt that found nothing or failed. After the
	// last one, whoever made the call gives it back when the answer is sent. The parts of a
	// composite take one after another, and each keeps what it took.
	Give(taken int)
}

type roomKey struct{}

// WithRoom says where the answers of calls with the context are held.
func WithRoom(ctx context.Context, r Room) context.Context {
	return context.WithValue(ctx, roomKey{}, r)
}

// roomy makes room before each attempt of a call; while the call is parked it holds
// none.
func (c *call) roomy(attempt func(context.Context) (any, error)) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		room, ok := ctx.Value(roomKey{}).(Room)
		if !ok {
			return attempt(ctx)
		}
		taken, err := room.Take(ctx, c.h.AnswerBytes(c.req))
		if err != nil {
			return nil, err
		}
		resp, err := attempt(ctx)
		if err != nil || c.h.WaitAgain != nil && c.h.WaitAgain(resp) {
			room.Give(taken)
		}
		return resp, err
	}
}
