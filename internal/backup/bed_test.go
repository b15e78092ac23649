package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/kv"
)

func TestMain(m *testing.M) {
	if restoringChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants fails unless err is a fault of the code and reason.
func wants(t *testing.T, what string, err error, code fault.Code, reason string) {
	t.Helper()
	if f := fault.From(err); f == nil || f.Code != code || f.Reason != reason {
		t.Errorf("%s: %v, want %s (%s)", what, err, code, reason)
	}
}

// bed is an open store with some of everything in it.
type bed struct {
	t     testing.TB
	db    *keyload.DB
	maker *backup.Maker
}

func newBed(t testing.TB, files vfs.FS) *bed {
	t.Helper()
	store, err := kv.Open("db", kv.Options{FS: files, CacheBytes: 1 << 20})
	must(t, err)
	db, err := keyload.OpenStore(store, keyload.Options{Shards: 2})
	must(t, err)
	b := &bed{t, db, backup.New(db.Engine(), "test")}
	t.Cleanup(func() { must(t, b.db.Close()) })
	for name, kind := range map[string]api.ResourceKind{
		"docs": api.KindCollection, "history": api.KindStreamSet, "news": api.KindTopic, "jobs": api.KindQueue,
	} {
		_, err := db.ConfigureResource(t.Context(), &api.ResourcesConfigureRequest{Name: name, Kind: kind})
		must(t, err)
	}
	return b
}

func partition(key string) api.PartitionRef {
	return keyload.Partition("default", "main", "main", key)
}

// write commits the n-th of each kind of thing to a partition.
func (b *bed) write(key string, n int) {
	b.t.Helper()
	text := fmt.Sprintf("%d-%s", n, bytes.Repeat([]byte{byte('a' + n%26)}, 200))
	_, err := b.db.Commit(b.t.Context(), partition(key),
		keyload.Put("docs", fmt.Sprintf("d-%06d", n), map[string]any{"n": n, "text": text}),
		keyload.Append("history", "all", keyload.Event("Written", map[string]int{"n": n})),
		keyload.Publish("news", keyload.Event("Written", map[string]int{"n": n})),
		keyload.Enqueue("jobs", keyload.Message(map[string]int{"n": n})))
	must(b.t, err)
}

// archive makes a backup in memory.
func (b *bed) archive() ([]byte, *backup.Backup) {
	b.t.Helper()
	var out bytes.Buffer
	made, err := b.maker.Create(b.t.Context(), &out, nil)
	must(b.t, err)
	return out.Bytes(), made
}

// small is the archive of a small store, to be damaged.
func small(t testing.TB) ([]byte, *backup.Backup) {
	t.Helper()
	b := newBed(t, vfs.NewMem())
	for i := range 40 {
		b.write("one", i)
	}
	must(t, b.db.Engine().Store().Flush())
	for i := range 40 {
		b.write("two", i)
	}
	return b.archive()
}

// from opens an archive in memory.
func from(content []byte) backup.Open {
	return func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

// spoil adds a row that follows from nothing.
func (b *bed) spoil() {
	b.t.Helper()
	tx := b.db.Engine().Store().NewTx()
	tx.Begin()
	tx.Put([]byte{0xfe, 1, 2}, []byte("x"))
	p, err := tx.Commit()
	must(b.t, err)
	must(b.t, errors.Join(p.Wait(), tx.Close()))
}

// sound checks a store, and counts its rows.
func sound(s *kv.Store) (int64, error) {
	r, err := check.Store(context.Background(), s, nil)
	if err != nil {
		return 0, err
	}
	if len(r.Findings) > 0 {
		return 0, fault.New(fault.Corruption, "unsound", "%v", r.Findings[0])
	}
	return r.Rows, nil
}

// absent fails if there is anything at dir.
func absent(t *testing.T, what string, files vfs.FS, dir string) {
	t.Helper()
	if _, err := files.Stat(dir); err == nil {
		t.Errorf("%s: there is something at the target", what)
	}
}

// restored opens a restored store and reads it from front to back.
func restored(t *testing.T, files vfs.FS, dir string) *keyload.DB {
	t.Helper()
	store, err := kv.Open(dir, kv.Options{FS: files, MustExist: true, CacheBytes: 1 << 20})
	must(t, err)
	_, err = sound(store)
	must(t, err)
	db, err := keyload.OpenStore(store, keyload.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

var errBroken = errors.New("the cable was pulled")
