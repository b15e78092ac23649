package work

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/sim/trial"
	"github.com/keyload/keyload/internal/wire"
)

// Options of one life of a store.
type Options struct {
	Callers int
	Seed    uint64
	Life    string // names what is made in this life
	// Actions each caller takes; 0 is for as long as the store lives.
	Actions int
	// Repeats says that what callers call repeats by itself what was not answered. So
	// an answer that lasts as long as a lease may come too late.
	Repeats bool
}

// Run lets the callers work until they are done, the store ends, or ctx does.
func Run(ctx context.Context, d api.Doer, journal Journal, o Options) {
	var wg sync.WaitGroup
	for n := range o.Callers {
		c := &caller{
			ctx: ctx, Calls: client.CallsOf(d), doer: d, journal: journal, number: n, life: o.Life, repeats: o.Repeats,
			rng: rand.New(rand.NewPCG(o.Seed, uint64(n))),
		}
		wg.Go(func() {
			c.learn()
			if n == 0 {
				c.resume() // an earlier life may have ended while nothing was delivered
			}
			for i := 0; !c.stopped && (o.Actions == 0 || i < o.Actions); i++ {
				c.act()
			}
		})
	}
	wg.Wait()
}

// caller is one of them. What is its own nobody else changes.
type caller struct {
	client.Calls
	ctx     context.Context
	doer    api.Doer
	journal Journal
	number  int
	life    string
	repeats bool
	rng     *rand.Rand
	named   int
	stopped bool
	code    fault.Code // of the last refusal

	resource *api.Resource   // its own, nil when there is none
	epoch    uint64          // of its principal's policy
	keys     []string        // not revoked
	group    *api.GroupState // its own, nil when there is none
	tail     uint64          // of its topic
}

// Setup configures what all callers share.
func Setup(ctx context.Context, d api.Doer, callers int) error {
	c := client.CallsOf(d)
	resources := []api.ResourcesConfigureRequest{
		{Name: "traces", Kind: api.KindCollection}, {Name: "docs", Kind: api.KindCollection}, {Name: "log", Kind: api.KindStreamSet},
		{Name: "news", Kind: api.KindTopic}, {Name: "own", Kind: api.KindTopic},
		{Name: "jobs", Kind: api.KindQueue, Queue: &api.QueuePolicy{MaxAttempts: 1000, Retry: api.RetryPolicy{BaseMillis: 5, MaxMillis: 50}}},
	}
	for i := range resources {
		if _, err := c.ConfigureResource(ctx, &resources[i]); err != nil {
			return err
		}
	}
	var traces []api.Mutation
	for _, id := range Traces(callers) {
		traces = append(traces, client.Put("traces", id, map[string]int{"n": 0}))
	}
	if _, err := c.Commit(ctx, api.PartitionRef{}, traces...); err != nil {
		return err
	}
	_, err := c.ConfigureGroup(ctx, &api.SubscriptionsConfigureRequest{Group: followers(), Definition: api.GroupDefinition{
		Policy: api.GroupPolicy{MaxWindow: 64, MaxAttempts: 1000, Retry: api.RetryPolicy{BaseMillis: 5, MaxMillis: 50}},
	}})
	return err
}

// Traces are the documents in which effects are counted.
func Traces(callers int) []string {
	ids := []string{"all", "processed", "followed", "inputs"}
	for n := range callers {
		ids = append(ids, fmt.Sprint("caller-", n))
	}
	return ids
}

// trace counts an effect.
func trace(id string) api.Mutation {
	return client.Patch("traces", id, api.Patch{Op: api.PatchIncrement, Path: "/n", Value: api.JSON("1")})
}

func followers() api.GroupRef {
	return api.GroupRef{Source: api.SourceRef{Resource: "news"}, Group: "followers"}
}

// own is the partition of one caller.
func (c *caller) own() api.PartitionRef { return ownPartition(c.number) }

func ownPartition(n int) api.PartitionRef { return api.PartitionRef{Key: fmt.Sprint("caller-", n)} }

// name makes a name that nobody has given before.
func (c *caller) name(what string) string {
	c.named++
	return fmt.Sprintf("%s-%s-%d-%d", what, c.life, c.number, c.named)
}

// chance is true in so many of a hundred cases.
func (c *caller) chance(percent int) bool { return c.rng.IntN(100) < percent }

// send sends a command and journals it. nil means that it was refused, for one of
// the reasons given, or that the store is gone.
func send[Req, Resp any](c *caller, o api.Op[Req, Resp], req *Req, refusals ...fault.Code) *Resp {
	if c.stopped {
		return nil
	}
	own := *req
	api.ApplyDefaults(&own)
	id := api.NewCommandID()
	any(&own).(api.CommandRequest).SetCommandID(id)
	text, err := wire.EncodeJSON(&own)
	if err != nil {
		c.journal(Line{Wrong: err.Error()})
		return nil
	}
	c.journal(Line{Sent: &Call{ID: id, Caller: c.number, Operation: o.Name, Request: string(text)}})
	resp := new(Resp)
	err = c.doer.Do(c.ctx, o.Operation, &own, resp)
	c.code = fault.CodeOf(err)
	switch c.code {
	case fault.UnknownWriteOutcome, fault.OwnershipLost, fault.Cancelled:
		c.stopped = true
		return nil
	}
	a := &Answer{ID: id, Code: string(c.code)}
	if err != nil {
		a.Reply, a.Stored = trial.Reply(nil, err)
	} else {
		a.Reply, a.Stored = trial.Reply(resp, nil)
	}
	c.journal(Line{Answered: a})
	switch {
	case err == nil:
		return resp
	case c.code == fault.DispatchPaused || c.code == fault.ResourceExhausted || slices.Contains(refusals, c.code):
	case c.repeats && lasting(o.Name) && slices.Contains(leaseRefusals, c.code):
	default:
		c.journal(Line{Wrong: fmt.Sprintf("%s of caller %d was refused: %v", o.Name, c.number, err)})
	}
	return nil
}

// act takes one action.
func (c *caller) act() {
	actions := []struct {
		weight int
		do     func()
	}{
		{30, c.feed}, {10, c.edit}, {20, c.consume}, {20, c.follow}, {8, c.input},
		{6, c.ownQueue}, {12, follower{c}.act}, {3, c.ownResource}, {3, c.ownPrincipal}, {1, c.dispatch},
	}
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	n := c.rng.IntN(total)
	for _, a := range actions {
		if n -= a.weight; n < 0 {
			a.do()
			return
		}
	}
}

// leaseRefusals are what completing a lease may be refused for: a lease of a
// second runs out on a slow machine.
var leaseRefusals = []fault.Code{fault.LeaseExpired, fault.StaleLease, fault.NotFound}
