package demo

import (
	"context"
	"reflect"
	"time"

	"github.com/keyload/keyload/api"
)

// window is where a group stands at one moment.
type window struct {
	Checkpoint uint64 `json:"checkpoint"` // it and everything before it is finished
	Issued     uint64 `json:"issued"`     // highest position that was looked at
	Tail       uint64 `json:"tail"`
	Runs       int64  `json:"runs"` // gap runs: finished positions above an unfinished one
	Leased     int64  `json:"leased"`
	Waiting    int64  `json:"waiting"` // for another try, due ones included
	Held       int64  `json:"held"`
	Spans      []span `json:"spans"` // from Checkpoint+1 to Issued
}

// span is a run of finished positions, or one that is not finished.
type span struct {
	From  uint64            `json:"from"`
	To    uint64            `json:"to"`
	State api.PositionState `json:"state"`
}

// gap says that something above an unfinished position is finished while a
// worker holds another: what a crash must not lose and not repeat.
func (w *window) gap() bool { return w.Runs > 0 && w.Leased > 0 }

// mostRows is the most rows of a window that one status answers; the topic has
// fewer positions.
const mostRows = 1000

// look reads the windows of all groups.
func look(ctx context.Context, d api.Doer) (map[string]window, error) {
	out := map[string]window{}
	for i := range groups {
		s, err := api.Call(ctx, d, api.SubscriptionsStatus, &api.SubscriptionsStatusRequest{Group: groups[i].ref(), Rows: mostRows})
		if err != nil {
			return nil, err
		}
		w := window{
			Checkpoint: s.State.Checkpoint, Issued: s.State.Issued, Tail: s.State.Tail,
			Runs: s.Counts.Runs, Leased: s.Counts.Leased, Waiting: s.Counts.Waiting + s.Counts.Ready + s.Counts.Blocked, Held: s.Counts.Held,
		}
		for _, r := range s.Window {
			w.Spans = append(w.Spans, span{r.From, r.To, r.State})
		}
		out[groups[i].name] = w
	}
	return out, nil
}

// every is how often the windows are looked at.
const every = 40 * time.Millisecond

// watch reports the windows whenever they have changed, until end is closed,
// and once more then.
func watch(ctx context.Context, d api.Doer, lines *lineWriter, end <-chan struct{}) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var before map[string]window
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-end:
			last = true
		}
		now, err := look(ctx, d)
		if err != nil {
			return err
		}
		if reflect.DeepEqual(now, before) {
			continue
		}
		if err := lines.write(line{Kind: lineWindows, Windows: now}); err != nil {
			return err
		}
		before = now
	}
	return nil
}
