package sim

import (
	"context"
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// follower is the group that reads topic news in every history.
var follower = api.GroupRef{Source: api.SourceRef{Resource: "news"}, Group: "follower"}

// follow processes events of the group out of order, in threes: the last of each
// first, so that a power loss finds gap runs. What it acknowledged is noted.
func (h *history) follow(ctx context.Context, limit int, waitMillis int64) {
	for range limit {
		got, err := h.db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: follower, MaxEvents: 3, LeaseSeconds: 1, WaitMillis: waitMillis})
		if h.stops(err) || len(got.Deliveries) == 0 {
			return
		}
		for i := len(got.Deliveries) - 1; i >= 0; i-- {
			d := &got.Deliveries[i]
			done, err := h.db.ProcessEvent(ctx, &api.SubscriptionsProcessRequest{
				Group: follower, Token: d.Token, HandlerScope: "follower",
				Effects: []api.Mutation{{PatchDocument: &api.PatchDocument{Collection: "effects", ID: "followed", Patches: []api.Patch{
					{Op: api.PatchIncrement, Path: "/n", Value: api.JSON("1")},
				}}}},
			})
			switch fault.CodeOf(err) { // a lease of one second may run out on a slow machine
			case "":
				h.followed(d.Event.Position, done.AlreadyProcessed)
			case fault.LeaseExpired, fault.StaleLease, fault.NotFound:
			default:
				if h.stops(err) {
					return
				}
			}
		}
	}
}

// followed notes a position whose processing was answered. Until the power goes,
// none is answered as new twice; what was answered before a loss and is delivered
// again must be known as processed already.
func (h *history) followed(position uint64, again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.processed[position] && !again {
		h.t.Errorf("position %d was processed a second time", position)
	}
	h.processed[position] = true
}

// caughtUp says whether the group has finished every event.
func (h *history) caughtUp() bool {
	st, err := h.db.GroupStatus(context.Background(), follower, 0)
	h.must(err)
	return st.Lag == 0
}

// countFollowed compares the group's traces with the number of commands.
func (h *history) countFollowed(want uint64) {
	ctx := context.Background()
	d, err := h.db.Get(ctx, api.PartitionRef{}, "effects", "followed")
	h.must(err)
	if got := string(d.Document); got != fmt.Sprintf(`{"n":%d}`, want) {
		h.t.Errorf("the group's effects are %s after %d commands", got, want)
	}
	st, err := h.db.GroupStatus(ctx, follower, 0)
	h.must(err)
	if st.State.Checkpoint != want || st.Counts.Rows != 0 || st.Counts.DeadLetters != 0 {
		h.t.Errorf("the group stands at %d with %d rows and %d dead letters after %d commands", st.State.Checkpoint, st.Counts.Rows, st.Counts.DeadLetters, want)
	}
}
