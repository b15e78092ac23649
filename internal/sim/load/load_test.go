package load

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/sim/disk"
	"github.com/keyload/keyload/internal/sim/trial"
)

const (
	// syncTime is how much longer a sync takes than this machine's disk.
	syncTime = 5 * time.Millisecond
	// payloadBytes of a message of those who ask too much, and batch how many they
	// send at once.
	payloadBytes = 512 << 10
	batch        = 4
	workers      = 8
	held         = 4_096 // messages that workers hold from the start
)

// asked is how many ask for too much at once: four times what is admitted of one
// tenant.
const asked = 2 * limits.AdmittedBytes / (payloadBytes * batch)

// heapBound is what the heap may grow by: what one tenant may have waiting, so many
// times, what is being written of it, Pebble's memtables and cache; and all that
// twice for the garbage collector. Without bounds it would be what is asked for, and
// that several times.
func heapBound(times uint64) uint64 {
	const ofTenant = limits.AdmittedBytes / 2
	return 2 * (times*ofTenant + 64<<20 + 5*32<<20 + 64<<20)
}

// slower is how many times longer completions may take under load than in quiet;
// less than patience is never too long.
const (
	slower   = 60
	patience = 2 * time.Second
)

// bed is a store on a slow disk whose workers hold messages.
type bed struct {
	t      *testing.T
	db     *keyload.DB
	tokens chan string
	took   struct {
		sync.Mutex
		all []time.Duration
	}
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t, tokens: make(chan string, held)}
	store, err := kv.Open(filepath.Join(t.TempDir(), "store"), kv.Options{FS: disk.Slow(vfs.Default, syncTime)})
	b.must(err)
	b.db, err = keyload.OpenStore(store, keyload.Options{Shards: 2})
	b.must(err)
	t.Cleanup(func() { b.must(b.db.Close()) })
	for _, name := range []string{"jobs", "bulk"} {
		_, err := b.db.ConfigureResource(t.Context(), &api.ResourcesConfigureRequest{Name: name, Kind: api.KindQueue, Queue: &api.QueuePolicy{MaxAttempts: 1000, MaxLeaseSeconds: leaseSeconds}})
		b.must(err)
	}
	return b
}

// leaseSeconds is longer than a long run takes on a slow machine.
const leaseSeconds = 7200

// hold fills the queue and lets a worker receive all of it.
func (b *bed) hold(d api.Doer) {
	b.t.Helper()
	for i := 0; i < held; i += 256 {
		var ms []api.Mutation
		for range 256 {
			ms = append(ms, keyload.Enqueue("jobs", api.Message{Payload: api.JSON("1")}))
		}
		_, err := b.db.Commit(b.t.Context(), api.PartitionRef{}, ms...)
		b.must(err)
		got, err := client.CallsOf(d).Receive(b.t.Context(), &api.QueuesReceiveRequest{Lane: api.LaneRef{Queue: "jobs"}, MaxMessages: 256, LeaseSeconds: leaseSeconds})
		b.must(err)
		for _, d := range got.Deliveries {
			b.tokens <- d.Token
		}
	}
}

// work lets workers renew, acknowledge and refuse until n of them are finished. It
// returns the time below which 99 of 100 calls were answered.
func (b *bed) work(d api.Doer, n int64) (p99 time.Duration, calls int) {
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(n)
	for range workers {
		wg.Go(func() {
			for left.Add(-1) >= 0 && !b.t.Failed() {
				b.finish(d, <-b.tokens, left.Load()%3 == 0)
			}
		})
	}
	wg.Wait()
	b.took.Lock()
	defer b.took.Unlock()
	all := b.took.all
	b.took.all = nil
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)*99/100], len(all)
}

// finish renews one lease and then ends it.
func (b *bed) finish(d api.Doer, token string, refuse bool) {
	r := b.complete(d, api.CompleteItem{Token: token, Action: api.ActionRenew, LeaseSeconds: leaseSeconds})
	if r == nil {
		return
	}
	item := api.CompleteItem{Token: r.Token, Action: api.ActionAck}
	if refuse {
		item.Action = api.ActionNack
	}
	b.complete(d, item)
}

func (b *bed) complete(d api.Doer, item api.CompleteItem) *api.CompleteResult {
	began := time.Now()
	r, err := client.CallsOf(d).Complete(context.Background(), api.LaneRef{Queue: "jobs"}, item)
	took := time.Since(began)
	if err != nil || r.Results[0].Error != nil {
		b.t.Errorf("%s: %v %+v", item.Action, err, r)
		return nil
	}
	b.took.Lock()
	defer b.took.Unlock()
	b.took.all = append(b.took.all, took)
	return &r.Results[0]
}

// overload is what those who ask too much were answered.
type overload struct {
	stop            atomic.Bool
	stored, refused atomic.Int64
	slowest         atomic.Int64 // refusal, in nanoseconds
	wg              sync.WaitGroup
}

// ask lets callers ask for too much until stop is set. Each shard gets its part.
func (o *overload) ask(t *testing.T, callers int, send func(caller int) error) {
	for n := range callers {
		o.wg.Go(func() {
			for !o.stop.Load() && !t.Failed() {
				began := time.Now()
				err := send(n)
				f := fault.From(err)
				switch {
				case err == nil:
					o.stored.Add(1)
				case f != nil && f.Code == fault.ResourceExhausted && f.RetryAfterMillis > 0 && f.Retry == fault.RetrySameID:
					o.refused.Add(1)
					if took := int64(time.Since(began)); took > o.slowest.Load() {
						o.slowest.Store(took)
					}
					//keyload:sleep as the refusal asks
					time.Sleep(time.Duration(f.RetryAfterMillis) * time.Millisecond)
				default:
					t.Errorf("refused with %v", err)
				}
			}
		})
	}
}

// heap watches the heap while fn runs, and returns by how much it grew at most.
func heap(fn func()) (grew uint64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				runtime.ReadMemStats(&m)
				if m.HeapAlloc > before {
					grew = max(grew, m.HeapAlloc-before)
				}
			}
		}
	}()
	fn()
	close(ended)
	<-watched
	return grew
}

// judge compares a busy run with the quiet one, and says what is left.
func (b *bed) judge(what string, o *overload, quiet, busy time.Duration, calls int, grew, bound uint64) {
	t := b.t
	t.Logf("%s: %d completions; 99 of 100 within %v in quiet, %v under load; %d batches stored, %d refused, the slowest refusal after %v; the heap grew by %d MiB",
		what, calls, quiet, busy, o.stored.Load(), o.refused.Load(), time.Duration(o.slowest.Load()), grew>>20)
	if measured && (o.refused.Load() == 0 || o.stored.Load() == 0) {
		t.Error("nothing was refused, or nothing stored: the test tests nothing")
	}
	if measured && grew > bound {
		t.Errorf("the heap grew by %d MiB; the bound is %d", grew>>20, bound>>20)
	}
	if measured && busy > max(slower*quiet, patience) {
		t.Errorf("completions take %v under load, %v in quiet", busy, quiet)
	}
	if l := engine.LoadOf(b.db.Engine()); l != (engine.Load{}) {
		t.Errorf("the node still holds %+v", l)
	}
	total := int64(0)
	for n := range 16 {
		st, err := b.db.QueueStatus(t.Context(), api.LaneRef{Partition: lane(n), Queue: "bulk"})
		b.must(err)
		total += st.Totals.Enqueued
	}
	if total != batch*o.stored.Load() {
		t.Errorf("%d messages are stored, and %d were answered", total, batch*o.stored.Load())
	}
	trial.Report(t, "overload", "%s: %d completions within %v where it is %v in quiet, %d batches of 2 MiB stored, %d refused, heap +%d MiB of at most %d",
		what, calls, busy.Round(time.Millisecond), quiet.Round(time.Millisecond), o.stored.Load(), o.refused.Load(), grew>>20, bound>>20)
}

// completions is how many deliveries are finished under load.
func completions() int64 {
	if !measured {
		return 20
	}
	return int64(trial.Count(100, 3_000))
}

func lane(n int) api.PartitionRef { return api.PartitionRef{Key: fmt.Sprint("bulk-", n%16)} }
