package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a store in memory with the queue jobs, the stream set done, the
// collection docs and the topic news, and a road to it that can be troubled.
type bed struct {
	t    testing.TB
	db   *keyload.DB
	road *road
	lane api.LaneRef
}

// inBubble runs a test on a fake clock, which moves on when everything waits.
// When it ends every goroutine must have ended. The clock starts at the time it
// is, since the process never makes a command id older than the last one.
func inBubble(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Helper()
	began := time.Now().Round(0)
	synctest.Test(t, func(t *testing.T) {
		pass(time.Until(began))
		test(t, newBed(t))
	})
}

func newBed(t testing.TB) *bed {
	t.Helper()
	store, err := kv.Open("store", kv.Options{FS: vfs.NewMem(), NoSync: true})
	check(t, err)
	db, err := keyload.OpenStore(store, keyload.Options{Shards: 1, Durability: api.DurableProcess})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	b := &bed{t: t, db: db, road: &road{to: db}, lane: client.Lane(client.Partition("default", "main", "main", "main"), "jobs")}
	for name, kind := range map[string]api.ResourceKind{
		"jobs": api.KindQueue, "done": api.KindStreamSet, "docs": api.KindCollection, "news": api.KindTopic,
	} {
		_, err := db.ConfigureResource(t.Context(), &api.ResourcesConfigureRequest{Name: name, Kind: kind})
		check(t, err)
	}
	return b
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, err error, code fault.Code, reason string) {
	t.Helper()
	if !errors.Is(err, &fault.Error{Code: code, Reason: reason}) {
		t.Errorf("want %s (%s), got %v", code, reason, err)
	}
}

// policy changes the queue's policy.
func (b *bed) policy(change func(*api.ResourcesConfigureRequest)) {
	b.t.Helper()
	r, err := b.db.GetResource(b.t.Context(), &api.ResourcesGetRequest{Name: "jobs"})
	check(b.t, err)
	req := &api.ResourcesConfigureRequest{Name: "jobs", Kind: api.KindQueue, Queue: r.Queue, ExpectedVersion: r.Version}
	change(req)
	_, err = b.db.ConfigureResource(b.t.Context(), req)
	check(b.t, err)
}

// retryEvery makes failed attempts wait exactly this long.
func (b *bed) retryEvery(d time.Duration, attempts int64) {
	b.policy(func(r *api.ResourcesConfigureRequest) {
		r.Queue.MaxAttempts = attempts
		r.Queue.Retry = api.RetryPolicy{BaseMillis: d.Milliseconds(), MaxMillis: d.Milliseconds(), Factor: 1, Jitter: api.JitterNone}
	})
}

// enqueue stores n messages m-0, m-1, …, whose payload is their number.
func (b *bed) enqueue(n int) {
	b.t.Helper()
	for i := range n {
		m := client.Message(i)
		m.MessageID = fmt.Sprintf("m-%d", i)
		_, err := b.db.Commit(b.t.Context(), b.lane.Partition, client.Enqueue("jobs", m))
		check(b.t, err)
	}
}

func (b *bed) message(id string) *api.MessageInfo {
	b.t.Helper()
	m, err := b.db.InspectMessage(b.t.Context(), b.lane, id)
	check(b.t, err)
	return m
}

// cancel withdraws a message from whoever holds it.
func (b *bed) cancel(id string) {
	b.t.Helper()
	m := b.message(id)
	_, err := b.db.Commit(b.t.Context(), b.lane.Partition, api.Mutation{CancelMessage: &api.CancelMessage{
		Queue: "jobs", MessageID: id, ExpectedStateVersion: m.StateVersion, ExpectedDeliveryGeneration: m.DeliveryGeneration,
	}})
	check(b.t, err)
}

func (b *bed) status() *api.QueuesStatusResponse {
	b.t.Helper()
	s, err := b.db.QueueStatus(b.t.Context(), b.lane)
	check(b.t, err)
	return s
}

// effects are the types of the events in the stream that done writes to.
func (b *bed) effects() []string {
	b.t.Helper()
	var out []string
	for e, err := range b.db.Stream(b.t.Context(), api.StreamRef{Partition: b.lane.Partition, StreamSet: "done", StreamID: "all"}, 0) {
		if fault.CodeOf(err) == fault.NotFound {
			return nil
		}
		check(b.t, err)
		out = append(out, e.Type)
	}
	return out
}

// done leaves one event named after the message.
func done(tx *worker.Tx, m *worker.Message) { tx.Append("done", "all", client.Event(m.MessageID, nil)) }

// running is one Run of a worker.
type running struct {
	stop  context.CancelFunc
	ended chan struct{}
	err   error
}

func (b *bed) run(w *worker.Worker) *running {
	ctx, stop := context.WithCancel(b.t.Context())
	r := &running{stop: stop, ended: make(chan struct{})}
	go func() { r.err = w.Run(ctx); close(r.ended) }()
	return r
}

// end stops the worker and waits.
func (r *running) end() error {
	r.stop()
	<-r.ended
	return r.err
}

type handler = func(context.Context, *worker.Tx, *worker.Message) error

// queue runs a worker over the troubled road.
func (b *bed) queue(h handler, o worker.Options) *running {
	return b.run(worker.Queue(b.road, b.lane, h, o))
}

// until lets the fake clock move on until a condition holds, for an hour at
// most.
func (b *bed) until(what string, holds func() bool) {
	b.t.Helper()
	for range 3600 * 20 {
		synctest.Wait()
		if holds() {
			return
		}
		//keyload:sleep the fake clock of this bubble moves on
		time.Sleep(50 * time.Millisecond)
	}
	b.t.Fatalf("in an hour it did not come to this: %s", what)
}

// pass lets time pass on the fake clock.
func pass(d time.Duration) {
	//keyload:sleep the fake clock of this bubble moves on
	time.Sleep(d)
}

// emptied says that every message is acknowledged.
func (b *bed) emptied() bool {
	s := b.status()
	return s.Counts.Ready+s.Counts.Scheduled+s.Counts.Leased == 0
}

// road leads to a store and counts what passes. A trouble may refuse a call
// before it is carried out, or lose its answer after.
type road struct {
	to      api.Doer
	mu      sync.Mutex
	calls   map[string]int
	trouble func(ctx context.Context, o *api.Operation, req any, ahead func() error) error
}

func (r *road) Do(ctx context.Context, o *api.Operation, req, resp any) error {
	r.mu.Lock()
	if r.calls == nil {
		r.calls = map[string]int{}
	}
	r.calls[o.Name]++
	trouble := r.trouble
	r.mu.Unlock()
	ahead := func() error { return r.to.Do(ctx, o, req, resp) }
	if trouble == nil {
		return ahead()
	}
	return trouble(ctx, o, req, ahead)
}

func (r *road) set(trouble func(ctx context.Context, o *api.Operation, req any, ahead func() error) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trouble = trouble
}

func (r *road) count(operation string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[operation]
}

// lostAnswer is what a call that was carried out ends with when its answer is
// lost.
func lostAnswer() error {
	return fault.New(fault.UnknownWriteOutcome, "connection_lost", "the connection was lost")
}

// down refuses every call.
func down(context.Context, *api.Operation, any, func() error) error {
	return fault.New(fault.OwnershipLost, "unreachable", "the server cannot be reached")
}

// errorsOf collects what a worker goes on after.
type errorsOf struct {
	mu   sync.Mutex
	list []error
}

func (e *errorsOf) add(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, err)
}

func (e *errorsOf) all() []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]error(nil), e.list...)
}

// has says that one of the errors matches.
func (e *errorsOf) has(target error) bool {
	for _, err := range e.all() {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
