package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/check"
)

// nodes does the job on a cluster, kills the leader of the busy shard on the way, and
// has everything read back from the cluster.
func (r *run) nodes(ctx context.Context) (f *found, err error) {
	r.show.say("starting %s, each with a copy of the whole store", many(nodeCount, "node"))
	m, err := startMembers(ctx, r.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	r.summary.Nodes = nodeCount
	r.show.say("%d deliveries, %d of them make a message; a queue and %s with %d workers each; seed %d",
		len(r.input), messages(r.input), many(int64(len(groups)), "group"), r.options.Workers, r.seed)
	if err := r.workOn(ctx, m); err != nil {
		return nil, err
	}
	r.show.say("everything is done; reading it back and comparing the nodes")
	if err := m.whole(ctx); err != nil {
		return nil, err
	}
	if f, err = read(ctx, m.client, r.input); err != nil {
		return nil, err
	}
	same, err := m.same(ctx)
	if err != nil {
		return nil, err
	}
	r.summary.DigestsEqual = &same
	return f, m.each(func(d api.Doer) error {
		report, err := check.Remote(ctx, d, nil)
		if err != nil {
			return err
		}
		f.Rows = report.Rows
		for _, x := range report.Findings {
			f.Findings = append(f.Findings, x.Invariant+" at "+x.Where+": "+x.Text)
		}
		return nil
	})
}

// workOn feeds and processes everything, and kills a leader in each part of the input.
// The feeding waits at the end of a part until the cluster is whole again, so that no
// kill takes the majority.
func (r *run) workOn(ctx context.Context, m *members) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	plan := r.parts()
	g := &gate{last: plan[0].last, moved: make(chan struct{})}
	out, in := io.Pipe()
	lines := make(chan line)
	go readLines(out, lines)
	go func() {
		w := &lineWriter{w: in, hold: func(l line) { g.pass(ctx, l) }}
		err := do(ctx, m.client, r.identity, r.input, r.options.Workers, w)
		if err != nil {
			err = errors.Join(err, w.write(line{Kind: lineFailed, Text: err.Error()}))
		}
		_ = in.CloseWithError(err) // whoever reads has what it needs
	}()
	defer func() {
		cancel()
		for range lines { // until the job has ended
		}
	}()
	now := &tally{}
	broken := make(chan error, r.options.Kills)
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for {
		select {
		case l, open := <-lines:
			quiet.Reset(silence)
			switch {
			case !open && ctx.Err() != nil:
				return ctx.Err()
			case !open || l.Kind == lineFailed:
				return fmt.Errorf("the job gave up: %s", l.Text)
			case l.Kind == lineDone:
				r.show.finished(messages(r.input))
				return nil
			}
			r.see(now, l)
			if len(plan) > 1 && now.fed >= plan[0].kill {
				if err := r.killLeader(ctx, m, now); err != nil {
					return err
				}
				plan = plan[1:]
				go goOn(ctx, m, g, plan[0].last, broken)
			}
		case err := <-broken:
			return err
		case <-quiet.C:
			return fmt.Errorf("the job reported nothing for %v", silence)
		}
	}
}

// goOn opens the gate when the cluster is whole again.
func goOn(ctx context.Context, m *members, g *gate, last int, broken chan<- error) {
	if err := m.whole(ctx); err != nil {
		broken <- err
		return
	}
	g.open(last)
}

// part is a part of the input: a leader is killed when so many deliveries are in, and
// no more than last are fed before the cluster is whole again.
type part struct{ kill, last int }

// parts are one for each kill, and one for what is left.
func (r *run) parts() []part {
	random := rand.New(rand.NewPCG(r.seed, 1))
	var out []part
	length := len(r.input) / (r.options.Kills + 1)
	for i := range r.options.Kills {
		begin := i * length
		out = append(out, part{begin + length/4 + random.IntN(max(1, length/2)), begin + length})
	}
	return append(out, part{0, len(r.input) + 1})
}

// killLeader kills the node that leads the busy shard.
func (r *run) killLeader(ctx context.Context, m *members, now *tally) error {
	shard, leader, err := m.busiest(ctx)
	if err != nil {
		return err
	}
	if err := m.kill(leader); err != nil {
		return fmt.Errorf("node %d cannot be killed: %w", leader, err)
	}
	r.summary.Kills++
	if now.gap("") {
		r.summary.KillsInGaps++
	}
	r.show.say("kill %d: node %d, which led shard %d, while delivery %d of %d was in and %d of %d messages were finished",
		r.summary.Kills, leader, shard, now.fed, len(r.input), len(r.finished), messages(r.input))
	return nil
}

// gate keeps the feeding from going on before it is opened further.
type gate struct {
	mu    sync.Mutex
	last  int // deliveries that may be fed
	moved chan struct{}
}

// pass waits where no more may be fed.
func (g *gate) pass(ctx context.Context, l line) {
	for l.Kind == lineFed {
		g.mu.Lock()
		open, moved := l.Index+1 < g.last, g.moved
		g.mu.Unlock()
		if open {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// open lets the feeding go on to a delivery.
func (g *gate) open(last int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = last
	close(g.moved)
	g.moved = make(chan struct{})
}
