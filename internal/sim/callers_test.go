package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/sim/trial"
	"github.com/keyload/keyload/internal/sim/work"
)

// The power goes at any moment while many callers need every kind of command. The
// book of what they sent and were answered says what must be there.
func TestAPowerLossWhileManyCallersWorkLosesNothingAnsweredAndRepeatsNothing(t *testing.T) {
	const lives = 4
	first, trials := trial.Seeds(t, 4, 150)
	var lost, answered atomic.Int64
	t.Cleanup(func() {
		trial.Report(t, "power losses", "%d at random with many callers, in %d stores, %d commands answered", lost.Load(), trials, answered.Load())
	})
	for seed := first; seed < first+uint64(trials); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			c := &crowd{t: t, rng: rand.New(rand.NewPCG(seed, 3)), mem: vfs.NewCrashableMem(), book: work.NewBook()}
			c.open()
			c.must(work.Setup(t.Context(), c.db, crowdCallers))
			for life := range lives {
				c.live(life)
				lost.Add(1)
			}
			c.must(c.db.Close())
			answered.Add(int64(c.book.Answered()))
			trial.Replay(t, "./internal/sim", "TestAPowerLossWhileManyCallersWorkLosesNothingAnsweredAndRepeatsNothing", seed)
		})
	}
}

const crowdCallers = 6

// crowd is a store with many callers through several power losses.
type crowd struct {
	t    *testing.T
	rng  *rand.Rand
	mem  *vfs.MemFS
	db   *keyload.DB
	book *work.Book
}

func (c *crowd) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *crowd) open() {
	c.t.Helper()
	store, err := kv.Open("store", kv.Options{FS: c.mem, CacheBytes: 1 << 20})
	c.must(err)
	c.db, err = keyload.OpenStore(store, keyload.Options{Shards: 2})
	c.must(err)
}

// live lets the callers work until the power goes, and judges what is left.
func (c *crowd) live(life int) {
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	after := 1 + c.rng.IntN(400) // answers
	from := c.book.Sent() - 50   // of earlier lives
	reached, ended := make(chan struct{}), make(chan struct{})
	var answers atomic.Int64
	go func() {
		defer close(ended)
		work.Run(ctx, c.db, func(l work.Line) {
			c.book.Write(l)
			if l.Answered != nil && answers.Add(1) == int64(after) {
				close(reached)
			}
		}, work.Options{Callers: crowdCallers, Seed: c.rng.Uint64(), Life: fmt.Sprint(life)})
	}()
	<-reached
	var left *vfs.MemFS
	book := c.book.Frozen(func() {
		left = c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.rng.IntN(101), RNG: c.rng})
	})
	cancel()
	<-ended
	c.must(c.db.Close())
	c.mem, c.book = left, book
	c.open()
	c.judge(max(0, from))
}

// judge compares the store with the book, after all that was sent since has an
// answer.
func (c *crowd) judge(from int) {
	r, err := check.Store(context.Background(), c.db.Engine().Store(), nil)
	c.must(err)
	for _, f := range r.Findings {
		c.t.Errorf("check: %s %s: %s", f.Invariant, f.Where, f.Text)
	}
	c.book.Repeat(c.t.Context(), c.db, from)
	c.book.Judge(c.t.Context(), c.db)
	for i, w := range c.book.Wrong() {
		if i < 5 {
			c.t.Error(w)
		}
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
}
