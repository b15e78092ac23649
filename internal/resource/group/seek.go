package group

import (
	"sort"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/source"
)

// prepareSeek refuses a cursor that does not hold before anything is logged.
func prepareSeek(d *op.Door, req *api.SubscriptionsSeekRequest) (bool, error) {
	return false, verifyCursor(d, req.Cursor)
}

// applySeek moves a group, drops its window and pauses it.
func applySeek(c *op.Ctx, req *api.SubscriptionsSeekRequest) (*api.SubscriptionsSeekResponse, error) {
	g, err := open(c, req.Group)
	if err != nil {
		return nil, err
	}
	if err := g.at(req.ExpectedGeneration); err != nil {
		return nil, err
	}
	src, err := source.Look(&c.Scope, g.name.Source)
	if err != nil {
		return nil, err
	}
	next, err := seekTarget(c, g.name.Source, &src, req)
	if err != nil {
		return nil, err
	}
	if _, err := drop(g); err != nil {
		return nil, err
	}
	// From here on it succeeds.
	h := &g.head
	resp := &api.SubscriptionsSeekResponse{Before: h.Checkpoint}
	if to := next - 1; to > h.Checkpoint {
		resp.Skipped = int64(to - h.Checkpoint)
	} else {
		resp.Again = int64(h.Checkpoint - to)
	}
	h.Generation++
	h.Epoch++
	h.Checkpoint, h.Issued, h.PassedBelow = next-1, next-1, 0
	h.Paused, h.FailureCode, h.FailedPosition = true, "", 0
	if err := source.Repin(c, g.name.Source); err != nil {
		return nil, err
	}
	resp.State = h.state(src.Tail)
	return resp, g.close()
}

// seekTarget is the position that is to be delivered next.
func seekTarget(c *op.Ctx, k source.Key, src *source.Head, req *api.SubscriptionsSeekRequest) (next uint64, err error) {
	switch req.To {
	case api.SeekBeginning:
		return src.First(), nil
	case api.SeekNow:
		return src.Tail + 1, nil
	case api.SeekTime:
		if int64(req.Time) > c.Now {
			return 0, fault.Invalid("/time", "is in the future: it is %s now; to go on with what is published from now on, seek to now", api.Time(c.Now))
		}
		return firstSince(c, k, src, int64(req.Time))
	case api.SeekCursor:
		at, err := cursorPlace(c, k, src, req.Cursor)
		return at + 1, err
	default:
		return req.Position, within(src, req.Position)
	}
}

// firstSince is the first retained position published at or after an instant; one
// after the tail when there is none. Logged time never goes back, so it is found
// by halving: at most 63 events are read.
func firstSince(c *op.Ctx, k source.Key, src *source.Head, when int64) (uint64, error) {
	var failed error
	n := sort.Search(int(src.Events()), func(i int) bool {
		if failed != nil {
			return true
		}
		e, err := source.At(&c.Scope, k, src.First()+uint64(i))
		failed = err
		return err == nil && e.PublishedAt >= when
	})
	return src.First() + uint64(n), failed
}
