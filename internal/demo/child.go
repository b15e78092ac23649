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
	Workers int    `help:"competing workers"`
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

// work opens the store, feeds it and processes the queue until both are done.
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
	run := identity{o.Seed, o.Started}
	if err := setUp(ctx, db, run); err != nil {
		return err
	}
	if err := w.write(line{Kind: lineOpened}); err != nil {
		return err
	}
	pool := newPool(db, run, input, w)
	pool.start(ctx, o.Workers)
	err = feed(ctx, db, run, input, w)
	if err == nil {
		err = pool.drain()
	} else {
		pool.stop()
	}
	if err != nil {
		return err
	}
	if err := w.write(line{Kind: lineDone}); err != nil {
		return err
	}
	<-ctx.Done() // the parent decides when
	return nil
}

// setUp configures the resources and the document of totals. Like everything the
// child writes it has ids of the run, so that it happens once.
func setUp(ctx context.Context, d api.Doer, run identity) error {
	resources := []api.ResourcesConfigureRequest{
		{Name: repositories, Kind: api.KindCollection},
		{Name: notified, Kind: api.KindCollection},
		{Name: totals, Kind: api.KindCollection},
		{Name: history, Kind: api.KindStreamSet},
		{Name: effects, Kind: api.KindStreamSet},
		{Name: topic, Kind: api.KindTopic},
		{Name: queue, Kind: api.KindQueue, Queue: &api.QueuePolicy{
			// Enough for every failure, crash and kill; what still fails then shows
			// as a dead letter.
			MaxAttempts: 100,
			Retry:       api.RetryPolicy{BaseMillis: 50, MaxMillis: 400},
		}},
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
	_, err := client.CallsOf(d).CommitAs(ctx, run.commandID("totals", 0), partition(), keyload.PutAt(totals, totalsID, 0, zero))
	return err
}
