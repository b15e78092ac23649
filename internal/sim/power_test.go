package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/sim/trial"
)

// A power loss takes what was not synced: any part of it, at any moment, while
// callers write. Afterwards every command that was answered is there, every
// command that was not is there wholly or not at all, repeating all of them
// under their ids gives each one effect, and every message is processed once.
func TestAPowerLossLosesNothingAnsweredAndRepeatsNothing(t *testing.T) {
	first, trials := trial.Seeds(t, 6, 200)
	t.Cleanup(func() {
		trial.Report(t, "power losses", "%d at random with writers and workers, in %d stores", trials*crashes, trials)
	})
	for seed := first; seed < first+uint64(trials); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			newHistory(t, seed).run()
			trial.Replay(t, "./internal/sim", "TestAPowerLossLosesNothingAnsweredAndRepeatsNothing", seed)
		})
	}
}

const (
	writers  = 6
	commands = 25 // of each writer
	crashes  = 3
)

// history is one store through several power losses.
type history struct {
	t    *testing.T
	rng  *rand.Rand
	mem  *vfs.MemFS
	db   *keyload.DB
	lane api.LaneRef

	mu       sync.Mutex
	answered map[string]uint64 // command id to the position its receipt named
	// processed are the positions that the group's worker was told it finished.
	processed map[uint64]bool
}

func newHistory(t *testing.T, seed uint64) *history {
	return &history{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), mem: vfs.NewCrashableMem(),
		lane: api.LaneRef{Queue: "jobs"}, answered: map[string]uint64{}, processed: map[uint64]bool{},
	}
}

func (h *history) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *history) open() {
	h.t.Helper()
	store, err := kv.Open("store", kv.Options{FS: h.mem})
	h.must(err)
	h.db, err = keyload.OpenStore(store, keyload.Options{Shards: 2})
	h.must(err)
}

// commandID is the identity of a writer's n-th command, the same in every life
// of the store.
func (h *history) commandID(writer, n int) string {
	return fmt.Sprintf("5f1c0a3e-0000-4000-8000-%06d%06d", writer, n+1)
}

// batch changes one thing of every kind; its traces are counted at the end.
func (h *history) batch(id string) []api.Mutation {
	return []api.Mutation{
		{PatchDocument: &api.PatchDocument{Collection: "counts", ID: "all", Patches: []api.Patch{
			{Op: api.PatchIncrement, Path: "/n", Value: api.JSON("1")},
		}}},
		keyload.Append("log", "all", api.Event{EventID: id, Type: "done", Payload: api.Of(id)}),
		keyload.Publish("news", api.Event{EventID: id, Type: "done", Payload: api.Of(id)}),
		keyload.Enqueue("jobs", api.Message{MessageID: id, Payload: api.Of(id)}),
	}
}

func (h *history) run() {
	ctx := context.Background()
	h.open()
	for name, kind := range map[string]api.ResourceKind{
		"counts": api.KindCollection, "effects": api.KindCollection, "log": api.KindStreamSet, "news": api.KindTopic, "jobs": api.KindQueue,
	} {
		_, err := h.db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: name, Kind: kind})
		h.must(err)
	}
	_, err := h.db.Commit(ctx, api.PartitionRef{},
		keyload.Put("counts", "all", map[string]int{"n": 0}), keyload.Put("effects", "all", map[string]int{"n": 0}),
		keyload.Put("effects", "followed", map[string]int{"n": 0}))
	h.must(err)
	// What is abandoned is tried again for as long as it takes.
	_, err = h.db.ConfigureGroup(ctx, &api.SubscriptionsConfigureRequest{Group: follower, Definition: api.GroupDefinition{
		Policy: api.GroupPolicy{MaxWindow: 16, MaxAttempts: 1000, Retry: api.RetryPolicy{BaseMillis: 10, MaxMillis: 50}},
	}})
	h.must(err)
	for range crashes {
		h.live(true)
		h.check()
	}
	h.live(false)
	h.drain()
	h.check()
	h.count()
	h.must(h.db.Close())
}

// live lets every writer send all of its commands, in order, while workers
// process; with a crash, the power goes at a moment of the writers' choice.
func (h *history) live(crash bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	at, sent := h.rng.IntN(writers*commands), make(chan struct{}, writers*commands)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range commands {
				h.send(ctx, h.commandID(w, n))
				sent <- struct{}{}
			}
		})
	}
	for range 2 {
		wg.Go(func() { h.work(ctx, 20, 40) })
		wg.Go(func() { h.follow(ctx, 20, 40) })
	}
	if !crash {
		wg.Wait()
		return
	}
	for range at {
		<-sent
	}
	h.mu.Lock() // what is answered by now must survive
	survive := make(map[string]uint64, len(h.answered))
	for id, position := range h.answered {
		survive[id] = position
	}
	processed := maps.Clone(h.processed)
	h.mu.Unlock()
	after := h.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: h.rng.IntN(101), RNG: h.rng})
	cancel()
	wg.Wait()
	h.must(h.db.Close())
	h.mem, h.answered, h.processed = after, survive, processed
	h.open()
}

// send repeats a command until it is answered; an answer that was seen before
// must be the same.
func (h *history) send(ctx context.Context, id string) {
	resp, err := h.db.CommitAs(ctx, id, api.PartitionRef{}, h.batch(id)...)
	switch fault.CodeOf(err) {
	case "":
	case fault.UnknownWriteOutcome, fault.Cancelled:
		return
	default:
		h.t.Errorf("command %s: %v", id, err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	position := resp.Receipt.Token.Position
	if before, known := h.answered[id]; known && before != position {
		h.t.Errorf("command %s was answered with position %d and now with %d", id, before, position)
	}
	h.answered[id] = position
}

// work processes at most limit messages, waiting waitMillis for each.
func (h *history) work(ctx context.Context, limit int, waitMillis int64) {
	for range limit {
		got, err := h.db.Receive(ctx, &api.QueuesReceiveRequest{Lane: h.lane, LeaseSeconds: 1, WaitMillis: waitMillis})
		if h.stops(err) || len(got.Deliveries) == 0 {
			return
		}
		_, err = h.db.Process(ctx, &api.QueuesProcessRequest{
			Lane: h.lane, Token: got.Deliveries[0].Token, HandlerScope: "sim",
			Effects: []api.Mutation{{PatchDocument: &api.PatchDocument{Collection: "effects", ID: "all", Patches: []api.Patch{
				{Op: api.PatchIncrement, Path: "/n", Value: api.JSON("1")},
			}}}},
		})
		switch fault.CodeOf(err) { // a lease of one second may run out on a slow machine
		case fault.LeaseExpired, fault.StaleLease, fault.NotFound:
		default:
			if h.stops(err) {
				return
			}
		}
	}
}

// stops says that a call did not succeed; only a caller who left, or a store
// that was closed, may be the reason.
func (h *history) stops(err error) bool {
	switch fault.CodeOf(err) {
	case fault.UnknownWriteOutcome, fault.Cancelled, fault.OwnershipLost:
	default:
		if err != nil {
			h.t.Error(err)
		}
	}
	return err != nil
}

// drain processes everything, leases of workers that are gone included.
func (h *history) drain() {
	for !h.t.Failed() {
		h.work(context.Background(), writers*commands, 1500)
		h.follow(context.Background(), writers*commands, 1500)
		st, err := h.db.QueueStatus(context.Background(), h.lane)
		h.must(err)
		if st.StoredMessages == 0 && h.caughtUp() {
			return
		}
	}
}

func (h *history) check() {
	h.t.Helper()
	r, err := check.Store(context.Background(), h.db.Engine().Store(), nil)
	h.must(err)
	for _, f := range r.Findings {
		h.t.Errorf("check: %s %s: %s", f.Invariant, f.Where, f.Text)
	}
}

// count compares the traces with the number of commands.
func (h *history) count() {
	ctx, want := context.Background(), uint64(writers*commands)
	for _, c := range []string{"counts", "effects"} {
		d, err := h.db.Get(ctx, api.PartitionRef{}, c, "all")
		h.must(err)
		if got := string(d.Document); got != fmt.Sprintf(`{"n":%d}`, want) {
			h.t.Errorf("%s holds %s after %d commands", c, got, want)
		}
	}
	for _, s := range []api.SourceRef{
		{Resource: "news"}, {Resource: "log", Kind: api.SourceStream, StreamID: "all"},
	} {
		page, err := h.db.ReadEvents(ctx, &api.EventsReadRequest{Source: s, Limit: 1000})
		h.must(err)
		if page.Tail != want || uint64(len(page.Events)) != want {
			h.t.Errorf("%s has %d events up to %d after %d commands", s.Resource, len(page.Events), page.Tail, want)
		}
	}
	h.countFollowed(want)
	st, err := h.db.QueueStatus(ctx, h.lane)
	h.must(err)
	if st.Totals.Enqueued != int64(want) || st.StoredMessages != 0 {
		h.t.Errorf("the queue counts %d messages, %d unfinished, after %d commands", st.Totals.Enqueued, st.StoredMessages, want)
	}
}
