package demo

import (
	"context"
	"errors"
	"io"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
)

// ChildOptions are the command line of the process that owns the store.
type ChildOptions struct {
	Dir     string `kong:"-"`
	Seed    uint64 `help:"seed of the run"`
	Started int64  `help:"start of the run, in milliseconds since 1970"`
	Workers int    `help:"competing workers of the queue and of each group"`
	Read    bool   `help:"read everything back instead of doing the job"`
}

// childCommand is the hidden command that ends in RunChild; the flags of
// ChildOptions and --dir follow it.
const childCommand = "demo-child"

// RunChild is the child process: it does the whole job, however much of it is
// done, tells its parent with lines of JSON, and ends when in does. A parent
// that is gone ends it too.
func RunChild(ctx context.Context, o ChildOptions, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		io.Copy(io.Discard, in)
		cancel()
	}()
	w := &lineWriter{w: out}
	var err error
	if o.Read {
		err = readBack(ctx, o.Dir, w)
	} else {
		err = work(ctx, o, w)
	}
	if err != nil && ctx.Err() == nil {
		return errors.Join(err, w.write(line{Kind: lineFailed, Text: err.Error()}))
	}
	return nil
}

// work opens the store, feeds it, and works on the queue and the groups until
// all of it is done.
func work(ctx context.Context, o ChildOptions, w *lineWriter) (err error) {
	input, err := readInput()
	if err != nil {
		return err
	}
	db, err := keyload.Open(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := do(ctx, db, identity{o.Seed, o.Started}, input, o.Workers, w); err != nil {
		return err
	}
	<-ctx.Done() // the parent decides when
	return nil
}

// do is the whole job, on any store.
func do(ctx context.Context, d api.Doer, run identity, input []delivery, workers int, w *lineWriter) error {
	if err := setUp(ctx, d, run, input); err != nil {
		return err
	}
	left, err := look(ctx, d)
	if err != nil {
		return err
	}
	if err := w.write(line{Kind: lineOpened, Windows: left}); err != nil {
		return err
	}
	if err := feedAndDrain(ctx, d, run, input, workers, w); err != nil {
		return err
	}
	return w.write(line{Kind: lineDone})
}

// feedAndDrain feeds everything while the workers of all places are at it, and
// waits for them.
func feedAndDrain(ctx context.Context, d api.Doer, run identity, input []delivery, workers int, w *lineWriter) error {
	fed, drained := make(chan struct{}), make(chan struct{})
	pools := newPools(d, run, input, w, fed)
	for _, p := range pools {
		p.start(ctx, workers)
	}
	watched := make(chan error, 1)
	go func() { watched <- watch(ctx, d, w, drained) }()
	err := feed(ctx, d, run, input, w)
	if err == nil {
		close(fed)
		for _, p := range pools {
			err = errors.Join(err, p.drain())
		}
	} else {
		for _, p := range pools {
			p.stop()
		}
	}
	close(drained)
	return errors.Join(err, <-watched)
}

// newPools makes the workers of the queue and of each group.
func newPools(d api.Doer, run identity, input []delivery, w *lineWriter, fed <-chan struct{}) []*pool {
	var ids []string
	for i := range input {
		if input[i].notice != nil {
			ids = append(ids, input[i].id)
		}
	}
	pools := []*pool{{place: &lanePlace{client.CallsOf(d)}, fates: run.fates(queue, ids, noticeTrouble), lines: w, fed: fed}}
	for i := range groups {
		g := &groups[i]
		var ids []string
		for _, h := range g.work(input) {
			ids = append(ids, h.id)
		}
		pools = append(pools, &pool{place: &groupPlace{d, g}, group: g.name, fates: run.fates(g.name, ids, g.trouble), lines: w, fed: fed})
	}
	return pools
}

// setUp configures the resources, the groups and the documents that are counted
// in. Like everything the child writes they have ids of the run, so that it
// happens once.
func setUp(ctx context.Context, d api.Doer, run identity, input []delivery) error {
	resources := []api.ResourcesConfigureRequest{
		{Name: repositories, Kind: api.KindCollection},
		{Name: notified, Kind: api.KindCollection},
		{Name: totals, Kind: api.KindCollection},
		{Name: tallies, Kind: api.KindCollection},
		{Name: history, Kind: api.KindStreamSet},
		{Name: effects, Kind: api.KindStreamSet},
		{Name: trails, Kind: api.KindStreamSet},
		{Name: topic, Kind: api.KindTopic},
		{Name: queue, Kind: api.KindQueue, Queue: &api.QueuePolicy{MaxAttempts: maxAttempts, Retry: retries()}},
	}
	for i := range resources {
		resources[i].CommandID = run.commandID("configure", i)
		if _, err := api.Call(ctx, d, api.ResourcesConfigure, &resources[i]); err != nil {
			return err
		}
	}
	zero := map[string]int{}
	for _, event := range notifying {
		zero[event] = 0
	}
	counts := []api.Mutation{keyload.PutAt(totals, totalsID, 0, zero)}
	for i := range groups {
		g := &groups[i]
		_, err := api.Call(ctx, d, api.SubscriptionsConfigure, &api.SubscriptionsConfigureRequest{
			CommandID: run.commandID("group", i), Group: g.ref(), Definition: g.definition(),
		})
		if err != nil {
			return err
		}
		counts = append(counts, keyload.PutAt(tallies, g.name, 0, g.zeros(input)))
	}
	_, err := client.CallsOf(d).CommitAs(ctx, run.commandID("totals", 0), partition(), counts...)
	return err
}
