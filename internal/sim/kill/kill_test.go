//go:build unix

package kill

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/sim/trial"
	"github.com/keyload/keyload/internal/sim/work"
)

const (
	callers = 6
	// lives is how many processes own a store one after the other; each is killed.
	lives = 10
	// anywhen is the stage of a kill from outside, at any moment.
	anywhen = "any moment"
)

// A process that owns a store and serves many callers is killed: by itself at the
// n-th time an entry reaches a stage, or from outside at any moment. Afterwards the
// store is sound, everything that was answered is there and answers the same,
// everything else has one answer and one effect, and nothing that was finished is
// delivered again.
func TestAProcessThatIsKilledLosesNothingAnsweredAndRepeatsNothing(t *testing.T) {
	first, stores := trial.Seeds(t, 5, 100)
	account := &account{kills: map[string]int{}}
	t.Cleanup(func() { account.report(t) })
	for seed := first; seed < first+uint64(stores); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			f := &family{t: t, dir: t.TempDir() + "/store", seed: seed, rng: rand.New(rand.NewPCG(seed, 5)), book: work.NewBook(), account: account}
			f.begin()
			for life := range lives {
				f.live(life)
			}
			trial.Replay(t, "./internal/sim/kill", "TestAProcessThatIsKilledLosesNothingAnsweredAndRepeatsNothing", seed)
		})
	}
}

// account is what all trials together did.
type account struct {
	mu       sync.Mutex
	trials   int
	answered int
	repeated int
	kills    map[string]int // by stage
}

func (a *account) add(stage string, answered, repeated int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trials++
	a.kills[stage]++
	a.answered += answered
	a.repeated += repeated
}

func (a *account) report(t *testing.T) {
	var kills []string
	for _, stage := range slices.Sorted(maps.Keys(a.kills)) {
		kills = append(kills, fmt.Sprintf("%s %d", stage, a.kills[stage]))
	}
	trial.Report(t, "process kills", "trials %d, %d commands answered, %d repeated; kills by stage: %s", a.trials, a.answered, a.repeated, strings.Join(kills, ", "))
}

// family is the processes that own one store, one after the other.
type family struct {
	t       *testing.T
	dir     string
	seed    uint64
	rng     *rand.Rand
	book    *work.Book
	account *account
}

func (f *family) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// begin makes the store.
func (f *family) begin() {
	db, err := keyload.Open(f.dir, keyload.Options{Shards: 2})
	f.must(err)
	f.must(work.Setup(f.t.Context(), db, callers))
	f.must(db.Close())
}

// live lets one process own the store until it is killed, and judges what it left.
func (f *family) live(life int) {
	stages := append(kv.Stages(), anywhen)
	o := orders{Dir: f.dir, Callers: callers, Seed: f.rng.Uint64(), Life: fmt.Sprint(life), Stage: stages[(int(f.seed)*lives+life)%len(stages)]}
	o.Nth = 1 + f.rng.Int64N(150)
	sent, answered := f.book.Sent(), f.book.Answered()
	p, err := start(f.t.Context(), o)
	f.must(err)
	answers := int64(0)
	for l := (line{}); p.next(&l); l = (line{}) {
		if !l.Opened {
			f.book.Write(l.Line)
		}
		if l.Answered != nil {
			if answers++; answers == o.Nth && o.Stage == anywhen {
				f.must(p.kill())
			}
		}
	}
	f.must(p.killed())
	answered = f.book.Answered() - answered
	f.account.add(o.Stage, answered, f.judge(max(0, sent-50)))
	if f.t.Failed() {
		f.t.Fatalf("in life %d, which was killed at %q, time %d", life, o.Stage, o.Nth)
	}
}

// judge opens the store, repeats what was sent from one command on, and compares.
func (f *family) judge(from int) (repeated int) {
	db, err := keyload.Open(f.dir)
	f.must(err)
	r, err := check.Store(context.Background(), db.Engine().Store(), nil)
	f.must(err)
	for _, x := range r.Findings {
		f.t.Errorf("check: %s %s: %s", x.Invariant, x.Where, x.Text)
	}
	repeated = f.book.Repeat(f.t.Context(), db, from)
	f.book.Judge(f.t.Context(), db)
	for i, w := range f.book.Wrong() {
		if i < 5 {
			f.t.Error(w)
		}
	}
	f.must(db.Close())
	return repeated
}
