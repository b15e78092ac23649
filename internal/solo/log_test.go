package solo

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/table"
)

// busy holds up the disk with one entry, and the shard with the next: it takes
// nothing from its queue until release.
func (b *bed) busy(fs *gate) (first, second chan result, release func()) {
	b.t.Helper()
	b.evaluated = make(chan struct{}, 64)
	release = fs.hold()
	first = b.submit(b.put(900_001))
	<-b.evaluated
	second = b.submit(b.put(900_002))
	<-b.evaluated
	return first, second, release
}

func TestCommandsThatWaitAreJoinedIntoEntriesOfBoundedSize(t *testing.T) {
	fs := &gate{FS: vfs.NewMem()}
	b := newBed(t, fs)
	before, syncs := b.entries.Load(), b.store.Syncs()
	first, second, release := b.busy(fs)
	rest := make([]chan result, entryCommands+500)
	for i := range rest {
		rest[i] = b.submit(b.put(i))
	}
	release()
	b.answered(first, second)
	b.answered(rest...)
	if n := b.entries.Load() - before; n != 4 {
		t.Errorf("%d entries, want two, a full one, and one with what is left", n)
	}
	if n := b.store.Syncs() - syncs; n > 8 { // one may take two when it is long
		t.Errorf("%d syncs for 4 entries", n)
	}
	b.close()
}

func TestTheNextEntryIsEvaluatedWhileTheLastOneIsSyncedAndNobodyIsAnsweredBefore(t *testing.T) {
	fs := &gate{FS: vfs.NewMem()}
	b := newBed(t, fs)
	first, second, release := b.busy(fs) // the second is evaluated, the sync of the first held up
	b.waiting(first, second)
	if d := b.log.Status(data).Durable; d != 1 {
		t.Errorf("position %d is said to be durable, want 1", d)
	}
	release()
	b.answered(first, second)
	if s := b.log.Status(data); s.Durable != 3 || s.Position != 3 || s.Err != nil {
		t.Errorf("the shard stands at %+v", s)
	}
	b.close()
}

// read is what a caller sees of a shard.
func (b *bed) read(ctx context.Context, shard uint16) (n int, err error) {
	err = b.log.Read(ctx, shard, func(s *kv.Snapshot) error {
		n = documents(b.t, s)
		return nil
	})
	return n, err
}

func TestAReadIsAnsweredOnceWhatItSawIsDurable(t *testing.T) {
	fs := &gate{FS: vfs.NewMem()}
	b := newBed(t, fs)
	if n, err := b.read(context.Background(), data); n != 0 || err != nil {
		t.Fatalf("%d documents, %v", n, err)
	}
	first, second, release := b.busy(fs) // the first entry is in the store, and a snapshot shows it
	seen, answered := make(chan int), make(chan error, 1)
	go func() {
		answered <- b.log.Read(context.Background(), data, func(s *kv.Snapshot) error {
			seen <- documents(t, s)
			return nil
		})
	}()
	if n := <-seen; n == 0 {
		t.Fatal("the snapshot shows nothing")
	}
	if _, err := b.read(context.Background(), 0); err != nil { // another shard's entries are its own
		t.Error(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := b.read(ended, data)
	is(t, err, fault.Cancelled, "cancelled")
	if len(answered) > 0 {
		t.Fatal("a caller was shown what can be lost")
	}
	release()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	b.answered(first, second)
	b.close()
}

func TestTheErrorOfAReadIsItsAnswer(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	own := errors.New("own")
	if err := b.log.Read(context.Background(), data, func(*kv.Snapshot) error { return own }); err != own {
		t.Error(err)
	}
	b.close()
}

func TestHintsAreGivenOnceTheirEntryIsDurable(t *testing.T) {
	fs := &gate{FS: vfs.NewMem()}
	b := newBed(t, fs)
	hints := func() int { b.mu.Lock(); defer b.mu.Unlock(); return len(b.hints) }
	b.evaluated = make(chan struct{}, 8)
	release := fs.hold()
	first := b.submit(b.enqueue(0))
	<-b.evaluated
	second := b.submit(b.put(1))
	<-b.evaluated
	if hints() != 0 {
		t.Error("a receiver was woken for a message that can be lost")
	}
	release()
	b.answered(first, second) // the hints of the first come before the answer of the second
	if hints() != 1 {
		t.Errorf("%d hints, want 1", hints())
	}
	b.close()
}

func TestWhatIsDueIsToldWhenItMovesEarlier(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	when, changed := b.log.NextDue(data)
	if when != 0 {
		t.Fatalf("something is due at %d", when)
	}
	for _, at := range []int64{began + 5000, began + 2000} {
		b.answered(b.submit(b.enqueue(at)))
		<-changed
		if when, _ := b.log.NextDue(data); when != at {
			t.Errorf("due at %d, want %d", when, at)
		}
	}
	b.answered(b.submit(b.enqueue(began + 9000))) // later: nothing to tell
	if len(changed) != 0 {
		t.Error("a later instant was told")
	}
	b.now.Store(began + 2000)
	out, err := b.log.Propose(context.Background(), data, machine.Tick(), false, nil)
	b.must(err)
	if when, _ := b.log.NextDue(data); when != began+5000 || out.Tick.NextDue != when {
		t.Errorf("after the tick due at %d, said %d", when, out.Tick.NextDue)
	}
	b.close()
}

func TestACallerThatLeavesBeforeItsCommandIsSubmittedChangesNothing(t *testing.T) {
	fs := &gate{FS: vfs.NewMem()}
	b := newBed(t, fs)
	first, second, release := b.busy(fs)
	for range queued {
		b.submit(machine.Tick())
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := b.log.Propose(gone, data, b.put(3), false, nil)
	is(t, err, fault.Cancelled, "cancelled")
	release()
	b.answered(first, second)
	b.close()
}

func TestACallerThatLeavesAfterItsCommandWasSubmittedFindsTheOutcomeByItsID(t *testing.T) {
	fs := &gate{FS: vfs.NewMem()}
	b := newBed(t, fs)
	b.evaluated = make(chan struct{}, 8)
	release := fs.hold()
	cmd := b.put(1)
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error)
	go func() {
		_, err := b.log.Propose(ctx, data, cmd, false, nil)
		left <- err
	}()
	<-b.evaluated
	cancel()
	is(t, <-left, fault.UnknownWriteOutcome, "caller_left")
	release()
	out, err := b.log.Propose(context.Background(), data, cmd, false, nil)
	if err != nil || out.Err != nil || !out.Replayed {
		t.Errorf("the repetition was answered %+v, %v", out, err)
	}
	b.close()
}

func TestAFailedSyncLeavesInFlightCommandsUnknownAndRefusesTheRest(t *testing.T) {
	mem := vfs.NewCrashableMem()
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData {
			return errors.New("input/output error")
		}
		return nil
	})}
	fs := &gate{FS: errorfs.Wrap(mem, toggle)}
	b := newBed(t, fs)
	b.answered(b.submit(b.put(1)))
	first, second, release := b.busy(fs)
	toggle.On()
	release()
	for _, c := range []chan result{first, second} {
		r := <-c
		is(t, r.err, fault.UnknownWriteOutcome, "write_failed")
	}
	_, err := b.log.Propose(context.Background(), data, b.put(4), false, nil)
	is(t, err, fault.RecoveryRequired, "shard_stopped")
	_, err = b.log.Propose(context.Background(), 0, machine.Tick(), false, nil) // the disk is everyone's
	if fault.From(err) == nil {
		t.Errorf("another shard took a write: %v", err)
	}
	if s := b.log.Status(data); s.Err == nil || !errors.Is(s.Err, kv.ErrFailed) || s.Durable != 2 {
		t.Errorf("the status is %+v", s)
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			if n, err := b.read(context.Background(), data); n != 1 || err != nil {
				t.Errorf("a reader sees %d documents, want the one that is durable (%v)", n, err)
			}
			if _, err := b.read(context.Background(), 0); err != nil {
				t.Errorf("of another shard: %v", err)
			}
		})
	}
	readers.Wait()
	b.must(b.log.Close())
	b.must(b.store.Close())
	toggle.Off()
	again := newBed(t, mem.CrashClone(vfs.CrashCloneCfg{}))
	if n := again.documents(); n != 1 {
		t.Errorf("%d documents after the restart, want the one that was answered", n)
	}
	again.answered(again.submit(again.put(4)))
	again.close()
}

func TestAShardThatStopsRefusesWritesAndTheOthersGoOn(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	b.answered(b.submit(b.put(0)))
	bad := b.put(1)
	bad.Op = 54321
	r := <-b.submit(bad)
	is(t, r.err, fault.UnknownWriteOutcome, "write_failed")
	for range 2 {
		_, err := b.log.Propose(context.Background(), data, b.put(2), false, nil)
		is(t, err, fault.RecoveryRequired, "shard_stopped")
		r := <-b.submit(b.put(3)) // as one that was on its way
		is(t, r.err, fault.RecoveryRequired, "shard_stopped")
	}
	if out, err := b.log.Propose(context.Background(), 0, machine.Tick(), false, nil); err != nil {
		t.Errorf("another shard: %+v, %v", out, err)
	}
	if n, err := b.read(context.Background(), data); n != 1 || err != nil {
		t.Errorf("a reader sees %d documents, want the one (%v)", n, err)
	}
	b.close()
}

func TestCloseAnswersEverything(t *testing.T) {
	fs := &gate{FS: vfs.NewMem()}
	b := newBed(t, fs)
	first, second, release := b.busy(fs)
	var late []chan result
	for i := range 20 {
		late = append(late, b.submit(b.put(10+i)))
	}
	closed := make(chan error)
	go func() { closed <- b.log.Close() }()
	<-b.log.shards[data].quit
	release()
	b.must(<-closed)
	b.answered(first, second)
	for _, c := range late {
		if r := <-c; r.err != nil {
			is(t, r.err, fault.UnknownWriteOutcome, "store_closed")
		}
	}
	_, err := b.log.Propose(context.Background(), data, b.put(3), false, nil)
	is(t, err, fault.UnknownWriteOutcome, "store_closed")
	b.must(b.log.Close()) // again
	b.must(b.store.Close())
}

func TestAReadEndsWhenTheStoreCloses(t *testing.T) {
	fs := &gate{FS: vfs.NewMem()}
	b := newBed(t, fs)
	b.evaluated = make(chan struct{}, 8)
	release := fs.hold()
	first := b.submit(b.put(1))
	<-b.evaluated
	b.log.shards[data].stop()
	_, err := b.read(context.Background(), data)
	is(t, err, fault.OwnershipLost, "store_closed")
	release()
	b.answered(first)
	b.close()
}

func TestAShardThatCannotBeOpenedLeavesNothingRunning(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	b.must(b.log.Close())
	tx := b.store.NewTx()
	tx.Begin()
	tx.Put([]byte{byte(table.ShardHead), 0, data}, []byte{0xFF})
	p, err := tx.Commit()
	b.must(err)
	b.must(errors.Join(p.Wait(), tx.Close()))
	if _, err := Open(b.config()); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("opening says %v", err)
	}
	b.must(b.store.Close())
}

func TestManyCallersAtOnceAreEachAnsweredTheirOwnOutcome(t *testing.T) {
	const callers, each = 16, 25
	b := newBed(t, vfs.NewMem())
	var wg sync.WaitGroup
	positions := make([][]uint64, callers)
	for i := range callers {
		wg.Go(func() {
			for k := range each {
				out, err := b.log.Propose(context.Background(), data, b.put(i*each+k), false, nil)
				if err != nil || out.Err != nil {
					t.Errorf("%v, %v", err, out.Err)
					return
				}
				positions[i] = append(positions[i], out.Position)
				if b.log.Status(data).Applied < out.Position {
					t.Errorf("position %d was answered and is not reached", out.Position)
				}
			}
		})
	}
	wg.Wait()
	seen := map[uint64]bool{}
	for _, ps := range positions {
		for _, p := range ps {
			seen[p] = true
		}
	}
	if len(seen) != callers*each || b.documents() != callers*each {
		t.Errorf("%d positions and %d documents, want %d", len(seen), b.documents(), callers*each)
	}
	if b.log.Status(data).Applied > uint64(callers*each)+1 {
		t.Error("a position in the future is said to be reached")
	}
	b.close()
}

// Power is lost after every single sync: what was answered is there, whole, and
// the shard goes on from it.
func TestAPowerLossAfterAnySyncLosesNothingThatWasAnswered(t *testing.T) {
	for seed := range uint64(3) {
		mem := vfs.NewCrashableMem()
		fs := &crashes{FS: mem, percent: int(seed) * 40, rng: rand.New(rand.NewPCG(seed, 1))}
		b := newBed(t, fs)
		fs.begin(mem)
		for n := range 12 {
			b.answered(b.submit(b.put(n)))
			fs.answered(n + 1)
		}
		b.close()
		for i, c := range fs.taken() {
			again := newBed(t, c.fs)
			if n := again.documents(); n < c.answered {
				t.Fatalf("seed %d, crash %d: %d documents, %d were answered", seed, i, n, c.answered)
			}
			if s := again.log.Status(data); s.Position != uint64(again.documents())+1 {
				t.Fatalf("seed %d, crash %d: position %d with %d documents", seed, i, s.Position, again.documents())
			}
			again.answered(again.submit(again.put(100)))
			again.close()
		}
	}
}
