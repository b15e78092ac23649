package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/sim/history"
	"github.com/keyload/keyload/internal/sim/trial"
	"github.com/keyload/keyload/internal/sim/work"
)

// callers do every kind of work and keep the book; clients read and write what the
// history is made of.
const (
	callers   = 4
	clients   = 5
	documents = 12
)

func TestAClusterLosesNothingAcknowledgedAndRepeatsNothingWhateverHappensToItsNodes(t *testing.T) {
	first, storms := trial.Seeds(t, 1, 40)
	account := &account{happened: map[string]int{}}
	t.Cleanup(func() { account.report(t) })
	for seed := first; seed < first+uint64(storms); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			weather(t, seed, account)
			trial.Replay(t, "./internal/sim/cluster", "TestAClusterLosesNothingAcknowledgedAndRepeatsNothingWhateverHappensToItsNodes", seed)
		})
	}
}

// account is what all storms together did.
type account struct {
	happened                 map[string]int
	commands, calls, unknown int
}

func (a *account) report(t *testing.T) {
	var all []string
	total := 0
	for _, name := range slices.Sorted(maps.Keys(a.happened)) {
		total += a.happened[name]
		all = append(all, fmt.Sprintf("%s %d", name, a.happened[name]))
	}
	trial.Report(t, "cluster faults", "%d faults, %d commands answered, %d calls in histories, %d of them in doubt; %s",
		total, a.commands, a.calls, a.unknown, strings.Join(all, ", "))
}

// weather lets callers and clients work while things happen, and judges what is there
// afterwards.
func weather(t *testing.T, seed uint64, account *account) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	self, err := os.Executable()
	ok(t, err)
	c, err := Start(ctx, Options{
		Dir: t.TempDir(), Program: self, Env: []string{childMode + "=node"}, Nodes: 3, Shards: 2,
		Setup: func(ctx context.Context, d api.Doer) error {
			return errors.Join(work.Setup(ctx, d, callers), history.Setup(ctx, d))
		},
	})
	ok(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	book, record := work.NewBook(), history.NewRecord()
	busy, rest := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() {
		d := c.Client()
		defer d.Close()
		work.Run(busy, d, book.Write, work.Options{Callers: callers, Seed: seed, Life: "storm", Repeats: true})
	})
	working.Go(func() {
		d := make([]api.Doer, clients)
		for i := range d {
			own := c.Client(i % 3)
			defer own.Close()
			d[i] = own
		}
		record.Work(busy, history.Options{Doer: func(i int) api.Doer { return d[i] }, Clients: clients, Documents: documents, Seed: seed, Run: "storm"})
	})

	s := NewStorm(c, seed, t.Logf)
	for n := range trial.Count(5, Happenings()) {
		pause(ctx, s.between(200*time.Millisecond, 1500*time.Millisecond))
		if err := s.Happen(ctx, n+5*(int(seed)-1)); err != nil {
			rest()
			working.Wait()
			t.Fatal(err)
		}
	}
	ok(t, Settled(ctx, c))
	rest()
	working.Wait()
	judge(t, ctx, c, book, record)
	for name, n := range s.Happened {
		account.happened[name] += n
	}
	calls, unknown := record.Documents.Count()
	account.commands, account.calls, account.unknown = account.commands+book.Answered(), account.calls+calls, account.unknown+unknown
	if calls < 100 || book.Answered() < 50 {
		t.Errorf("only %d calls were answered and %d commands", calls, book.Answered())
	}
}

// judge compares what the cluster holds with what was answered, and its nodes with
// each other.
func judge(t *testing.T, ctx context.Context, c *Cluster, book *work.Book, record *history.Record) {
	t.Helper()
	ok(t, Same(ctx, c))
	d := c.Client()
	defer d.Close()
	work.Run(ctx, d, book.Write, work.Options{Callers: 1, Actions: 1, Life: "end", Repeats: true}) // lets the store deliver
	book.Repeat(ctx, d, 0)
	book.Judge(ctx, d)
	for i, w := range book.Wrong() {
		if i < 5 {
			t.Error(w)
		}
	}
	wrong, err := record.Judge(ctx, d, time.Minute)
	ok(t, err)
	for i, w := range wrong {
		if i < 5 {
			t.Error(w)
		}
	}
	ok(t, Same(ctx, c))
	ok(t, Sound(ctx, c))
}
