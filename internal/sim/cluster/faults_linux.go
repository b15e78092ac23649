package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/keyload/keyload/api"
)

// Storm does to a cluster what happens to machines, one thing after the other, drawn
// from a seed. After each of them every node runs and every way is open.
type Storm struct {
	*Cluster
	rng *rand.Rand
	// Happened counts what happened, by name.
	Happened map[string]int
	// Tell is told of everything before it happens.
	Tell func(format string, args ...any)
}

// NewStorm draws from a seed.
func NewStorm(c *Cluster, seed uint64, tell func(format string, args ...any)) *Storm {
	return &Storm{Cluster: c, rng: rand.New(rand.NewPCG(seed, 77)), Happened: map[string]int{}, Tell: tell}
}

// happening is one thing that can happen to a node, of which it is known whether it
// leads.
type happening struct {
	name string
	do   func(s *Storm, ctx context.Context, i int) error
}

func happenings() []happening {
	return []happening{
		{"killed", (*Storm).killed},
		{"paused", (*Storm).paused},
		{"cut off", (*Storm).cutOff},
		{"cut off in one direction", (*Storm).deaf},
		{"slow", (*Storm).slow},
		{"all killed", (*Storm).allKilled},
		{"erased and replaced", (*Storm).erased},
		{"restarted one by one", (*Storm).rolling},
		{"killed while it hands on", (*Storm).handsOn},
		{"on a slow disk", (*Storm).slowDisk},
		{"on a full disk", (*Storm).fullDisk},
		{"by a clock that steps", (*Storm).clockSteps},
	}
}

// Happenings is how many different things there are.
func Happenings() int { return 2 * len(happenings()) }

// Happen lets the n-th thing happen; from Happenings on they begin anew. It comes to
// the leader of a shard, or to another node.
func (s *Storm) Happen(ctx context.Context, n int) error {
	all := happenings()
	h := all[n%len(all)]
	shard := uint32(s.rng.IntN(s.o.Shards + 1))
	i, err := s.Leader(ctx, shard)
	if err != nil {
		return err
	}
	who := "leader"
	if n/len(all)%2 == 1 {
		i, who = (i+1+s.rng.IntN(len(s.nodes)-1))%len(s.nodes), "follower"
	}
	name := who + " " + h.name
	s.Happened[name]++
	s.Tell("node %d, %s of shard %d: %s", i, who, shard, h.name)
	if err := h.do(s, ctx, i); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// between draws a length of time.
func (s *Storm) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.rng.Int64N(int64(most-least)))
}

func (s *Storm) killed(ctx context.Context, i int) error {
	if err := s.Kill(i); err != nil {
		return err
	}
	pause(ctx, s.between(0, 3*time.Second))
	return s.Run(i)
}

// paused is a process that does nothing for longer than a lease lasts, and than the
// others wait for their leader.
func (s *Storm) paused(ctx context.Context, i int) error {
	if err := s.Pause(i); err != nil {
		return err
	}
	pause(ctx, s.between(1500*time.Millisecond, 5*time.Second))
	return s.Resume(i)
}

func (s *Storm) cutOff(ctx context.Context, i int) error { return s.cut(ctx, i, true, true) }

// deaf is a node that hears nothing and is heard, or the other way round.
func (s *Storm) deaf(ctx context.Context, i int) error {
	hears := s.rng.IntN(2) == 0
	return s.cut(ctx, i, hears, !hears)
}

func (s *Storm) cut(ctx context.Context, i int, in, out bool) error {
	for j := range s.nodes {
		if j != i && in {
			s.ways.cut(j, i)
		}
		if j != i && out {
			s.ways.cut(i, j)
		}
	}
	pause(ctx, s.between(time.Second, 5*time.Second))
	s.ways.healAll()
	return nil
}

func (s *Storm) slow(ctx context.Context, i int) error {
	for j := range s.nodes {
		if j != i {
			s.ways.slow(j, i, s.between(0, 50*time.Millisecond))
			s.ways.slow(i, j, s.between(0, 50*time.Millisecond))
		}
	}
	pause(ctx, s.between(time.Second, 3*time.Second))
	s.ways.healAll()
	return nil
}

// handsOn is a node that is killed while a leadership goes to it or from it.
func (s *Storm) handsOn(ctx context.Context, i int) error {
	d := s.Client()
	defer d.Close()
	to := s.nodes[(i+s.rng.IntN(2))%len(s.nodes)].id // itself, or another
	if _, err := api.Call(ctx, d, api.ClusterTransfer, &api.ClusterTransferRequest{Shard: int64(s.rng.IntN(s.o.Shards + 1)), NodeID: to}); err != nil {
		return err
	}
	pause(ctx, s.between(0, 400*time.Millisecond)) // the leader looks every quarter of a second
	return s.killed(ctx, i)
}

// slowDisk is a disk that takes long to sync.
func (s *Storm) slowDisk(ctx context.Context, i int) error {
	return s.awhile(ctx, i, fmt.Sprintf("slow %d", 20+s.rng.IntN(300)), "slow 0")
}

// fullDisk is a disk without room, until somebody makes room and starts the node again.
func (s *Storm) fullDisk(ctx context.Context, i int) error {
	if err := s.awhile(ctx, i, "full", "room"); err != nil {
		return err
	}
	if err := s.Kill(i); err != nil {
		return err
	}
	return s.Run(i)
}

// clockSteps is a clock that is set forward or back, and later right again.
func (s *Storm) clockSteps(ctx context.Context, i int) error {
	by := s.between(6*time.Second, 3*time.Hour)
	if s.rng.IntN(2) == 0 {
		by = -by
	}
	return s.awhile(ctx, i, fmt.Sprintf("clock %d", by.Milliseconds()), "clock 0")
}

func (s *Storm) awhile(ctx context.Context, i int, begin, end string) error {
	if err := s.Cluster.Tell(i, begin); err != nil {
		return err
	}
	pause(ctx, s.between(time.Second, 4*time.Second))
	return s.Cluster.Tell(i, end)
}

// allKilled kills every node, the given one first, and starts them on their disks.
func (s *Storm) allKilled(ctx context.Context, i int) error {
	for j := range s.nodes {
		if err := s.Kill((i + j) % len(s.nodes)); err != nil {
			return err
		}
	}
	pause(ctx, s.between(0, time.Second))
	return s.runAll()
}

// runAll starts every node that does not run, all at once.
func (s *Storm) runAll() error {
	errs := make([]error, len(s.nodes))
	var all sync.WaitGroup
	for i, n := range s.nodes {
		if n.p == nil {
			all.Go(func() { errs[i] = s.Run(i) })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

func (s *Storm) erased(ctx context.Context, i int) error {
	if err := Settled(ctx, s.Cluster); err != nil { // else the others might be no majority
		return err
	}
	if err := s.Replace(ctx, i); err != nil {
		return err
	}
	return Settled(ctx, s.Cluster)
}

// rolling restarts every node, as an upgrade does, the given one first.
func (s *Storm) rolling(ctx context.Context, i int) error {
	for j := range s.nodes {
		if err := Settled(ctx, s.Cluster); err != nil {
			return err
		}
		n := (i + j) % len(s.nodes)
		if err := s.End(n); err != nil {
			return fmt.Errorf("node %d does not end well: %w", n, err)
		}
		if err := s.Run(n); err != nil {
			return err
		}
	}
	return nil
}
