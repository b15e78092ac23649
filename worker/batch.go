package worker

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/keyload/keyload/api"
)

// completer sends acknowledgements, refusals and releases, many with one
// command: those that come up while others are under way.
type completer struct {
	ready   sync.Mutex // guards the fields below
	waiting []*completion
	flights int
}

// completion is one item on its way.
type completion struct {
	item  api.CompleteItem
	until time.Time  // when trying ends
	done  chan error // gets the outcome, nil when the item was carried out
}

// maxFlights is how many commands are under way at once. A second one goes on
// while the first is repeated.
const maxFlights = 2

// finish completes one delivery and waits for the outcome.
func (r *run) finish(item api.CompleteItem, until time.Time) error {
	c := &completion{item, until, make(chan error, 1)}
	r.ready.Lock()
	r.waiting = append(r.waiting, c)
	fly := r.flights < maxFlights
	if fly {
		r.flights++
	}
	r.ready.Unlock()
	if fly {
		r.calls.Go(r.fly)
	}
	return <-c.done
}

// fly sends what waits until nothing does.
func (r *run) fly() {
	for {
		runtime.Gosched() // what comes up right now goes along
		r.ready.Lock()
		n := min(len(r.waiting), callItems)
		batch := r.waiting[:n:n]
		r.waiting = r.waiting[n:]
		if n == 0 {
			r.flights--
			r.ready.Unlock()
			return
		}
		r.ready.Unlock()
		r.send(batch)
	}
}

func (r *run) send(batch []*completion) {
	items, last := make([]api.CompleteItem, len(batch)), time.Time{}
	for i, c := range batch {
		items[i] = c.item
		if c.until.After(last) {
			last = c.until
		}
	}
	ctx, cancel := context.WithDeadline(r.alive, last)
	defer cancel()
	id := api.NewCommandID()
	var outcomes []outcome
	err := r.repeat(ctx, func(ctx context.Context) (err error) {
		outcomes, err = r.source.complete(ctx, id, items)
		return err
	})
	for i, c := range batch {
		switch {
		case err != nil:
			c.done <- err
		case outcomes[i].err != nil:
			c.done <- outcomes[i].err
		default:
			c.done <- nil
		}
	}
}
