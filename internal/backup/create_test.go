package backup_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
)

// Every partition of the restored store has the first commits of its writer,
// whole and without a gap, and all that were answered before the backup began.
func TestABackupUnderLoadIsEveryPartitionAtOneMoment(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	const writers, backups = 3, 3
	var answered [writers]atomic.Int64
	stop := make(chan struct{})
	more := make(chan struct{}, 1)
	var done sync.WaitGroup
	for w := range writers {
		done.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				b.write(fmt.Sprint(w), n)
				answered[w].Store(int64(n + 1))
				select {
				case more <- struct{}{}:
				default:
				}
			}
		})
	}
	for range backups {
		var before [writers]int64
		for start := answered[0].Load(); answered[0].Load() < start+20; {
			<-more
		}
		for w := range writers {
			before[w] = answered[w].Load()
		}
		content, made := b.archive()
		files := vfs.NewMem()
		got, err := backup.Restore(t.Context(), from(content), "to", backup.RestoreOptions{Files: kv.Options{FS: files}, Expect: made.ID})
		must(t, err)
		if got.Backup.ID != made.ID {
			t.Errorf("restored %s, made %s", got.Backup.ID, made.ID)
		}
		db := restored(t, files, "to")
		for w := range writers {
			whole(t, db, fmt.Sprint(w), before[w], answered[w].Load()+1)
		}
	}
	close(stop)
	done.Wait()
}

// whole checks one partition: its four kinds of things are of the same commits,
// and at least least of them, at most most.
func whole(t *testing.T, db *keyload.DB, key string, least, most int64) {
	t.Helper()
	p := partition(key)
	n := int64(0)
	for more := true; more; {
		r, err := db.ReadStream(t.Context(), &api.StreamsReadRequest{Stream: keyload.Stream(p, "history", "all"), AfterPosition: uint64(n), Limit: 1000})
		must(t, err)
		for _, e := range r.Events {
			if e.Position != uint64(n+1) || !strings.Contains(string(e.Payload), fmt.Sprintf(":%d", n)) {
				t.Fatalf("partition %s: event %d has position %d and payload %s", key, n, e.Position, e.Payload)
			}
			n++
		}
		more = len(r.Events) > 0
	}
	if n < least || n > most {
		t.Errorf("partition %s: %d commits, want %d to %d", key, n, least, most)
	}
	published := int64(0)
	for more := true; more; {
		r, err := db.ReadEvents(t.Context(), &api.EventsReadRequest{Source: keyload.Topic(p, "news"), AfterPosition: uint64(published), Limit: 1000})
		must(t, err)
		published += int64(len(r.Events))
		more = len(r.Events) > 0
	}
	lane, err := db.QueueStatus(t.Context(), keyload.Lane(p, "jobs"))
	must(t, err)
	if published != n || int64(lane.Counts.Ready) != n {
		t.Errorf("partition %s: %d events of the stream, %d of the topic, %d messages", key, n, published, lane.Counts.Ready)
	}
	for i, want := range map[int64]bool{0: n > 0, n - 1: n > 0, n: false} {
		_, err := db.Get(t.Context(), p, "docs", fmt.Sprintf("d-%06d", i))
		if got := err == nil; got != want && i >= 0 {
			t.Errorf("partition %s with %d commits: document %d is there: %v (%v)", key, n, i, got, err)
		}
	}
}

func TestABackupSaysWhatItHas(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	for i := range 10 {
		b.write("one", i)
	}
	status := b.db.Engine().Status()
	steps := map[string][2]int64{}
	var out bytes.Buffer
	made, err := b.maker.Create(t.Context(), &out, func(step check.Step, done, total int64) { steps[step.Done] = [2]int64{done, total} })
	must(t, err)
	got, err := backup.Verify(t.Context(), bytes.NewReader(out.Bytes()), made.ID, nil)
	must(t, err)
	if got.Incarnation != status.Incarnation || got.StoreFormat != status.Format || got.DataShards != 2 || got.Program != "test" || got.Rows == 0 {
		t.Errorf("it says %+v", got.Manifest)
	}
	for i, s := range status.Shards {
		if g := got.Shards[i]; g.Position != s.Position || g.Digest != s.Digest || g.LoggedTime != s.LoggedTime {
			t.Errorf("shard %d: %+v, the store says %+v", i, g, s)
		}
	}
	if c := status.Shards[0].CatalogVersion; got.CatalogRevision != c || c == 0 {
		t.Errorf("catalog revision %d, the store says %d", got.CatalogRevision, c)
	}
	for _, step := range []string{"hashed", "packed"} {
		if s := steps[step]; s[0] != got.Bytes || s[1] != got.Bytes {
			t.Errorf("%s: the last report was %v of %d", step, s, got.Bytes)
		}
	}
}

func TestTwoBackupsOfOneStateAreTheSameButForTheirTime(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	b.write("one", 1)
	_, first := b.archive()
	_, second := b.archive()
	if fmt.Sprint(first.Shards) != fmt.Sprint(second.Shards) || first.Rows != second.Rows {
		t.Errorf("they are\n%+v\n%+v", first.Manifest, second.Manifest)
	}
}

// stopping is a writer that waits at its first write.
type stopping struct {
	reached, goOn chan struct{}
	once          sync.Once
}

func newStopping() *stopping {
	return &stopping{reached: make(chan struct{}), goOn: make(chan struct{})}
}

func (s *stopping) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.reached); <-s.goOn })
	return len(p), nil
}

func TestOneBackupIsMadeAtATime(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	w, first := newStopping(), make(chan error, 1)
	go func() { _, err := b.maker.Create(t.Context(), w, nil); first <- err }()
	<-w.reached
	_, err := b.maker.Create(t.Context(), &bytes.Buffer{}, nil)
	wants(t, "a second backup", err, fault.ResourceExhausted, "backup_running")
	b.write("one", 1) // others go on
	close(w.goOn)
	must(t, <-first)
	b.archive()
}

func TestAStoreThatClosesEndsItsBackup(t *testing.T) {
	files := vfs.NewMem()
	b := newBed(t, files)
	b.write("one", 1)
	w, first := newStopping(), make(chan error, 1)
	go func() { _, err := b.maker.Create(t.Context(), w, nil); first <- err }()
	<-w.reached
	closed := make(chan error, 1)
	go func() { closed <- b.db.Close() }()
	// The context of the backup ends when Close begins; only then may it go on.
	for held, release, err := engine.Hold(t.Context(), b.db.Engine()); err == nil; held, release, err = engine.Hold(t.Context(), b.db.Engine()) {
		release()
		<-held.Done()
	}
	close(w.goOn)
	wants(t, "the backup", <-first, fault.OwnershipLost, "store_closed")
	must(t, <-closed)
	_, err := b.maker.Create(t.Context(), &bytes.Buffer{}, nil)
	wants(t, "after Close", err, fault.OwnershipLost, "store_closed")
	names, err := files.List("db")
	must(t, err)
	for _, name := range names {
		if strings.HasPrefix(name, "checkpoint") {
			t.Errorf("%s is left", name)
		}
	}
}

func TestABackupEndsWithItsContextOrItsWriter(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	b.write("one", 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.maker.Create(ctx, &bytes.Buffer{}, nil)
	wants(t, "after its context", err, fault.Cancelled, "cancelled")
	content, _ := b.archive()
	for _, room := range []int{0, 1, 100, len(content) / 2, len(content) - 60} {
		w := &full{room: room}
		_, err := b.maker.Create(t.Context(), w, nil)
		wants(t, fmt.Sprintf("a writer with room for %d bytes", room), err, fault.RecoveryRequired, "backup_not_written")
		if err != nil && !strings.Contains(err.Error(), errBroken.Error()) {
			t.Errorf("it does not say why: %v", err)
		}
	}
	b.archive()
}

// full takes some bytes and refuses those after them.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestADamagedStoreIsNotBackedUpAndSaysSo(t *testing.T) {
	files := vfs.NewMem()
	b := newBed(t, files)
	for i := range 50 {
		b.write("one", i)
	}
	must(t, b.db.Engine().Store().Flush())
	names, err := files.List("db")
	must(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			data, err := files.UnsafeGetFileDataBuffer("db/" + name)
			must(t, err)
			data[len(data)/4] ^= 1
		}
	}
	var out bytes.Buffer
	_, err = b.maker.Create(t.Context(), &out, nil)
	wants(t, "the backup", err, fault.Corruption, "damaged_store")
	if out.Len() > 0 {
		t.Errorf("%d bytes were written", out.Len())
	}
	must(t, b.db.Engine().Store().Err())
}
