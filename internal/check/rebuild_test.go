package check_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
)

// lost removes every derived row that a repair can make anew.
func (w *world) lost(all map[string]string, derived map[table.ID]bool) (rows []row) {
	for k := range all {
		id, shard := table.ID(k[0]), uint16(0)
		if len(k) >= 3 {
			shard = binary.BigEndian.Uint16([]byte(k[1:]))
		}
		switch {
		case !derived[id] || w.leaving(k):
		case shard == 0 && (id == table.ResourceByName || id == table.Principal || id == table.Dispatch): // the catalog's own
		case w.purged(k):
		default:
			rows = append(rows, row{[]byte(k), nil})
		}
	}
	return rows
}

// purged says that a row is the identity of one of the events that are purged.
func (w *world) purged(key string) bool {
	for _, p := range []api.PartitionRef{at("main"), elsewhere()} {
		k := codec.AppendUint64(codec.AppendText(append([]byte{byte(table.EventID)}, w.keyOf(p, "news")...), ""), 1)
		if id, ok := strings.CutPrefix(key, string(k)); ok && slices.Contains([]string{"e1", "e2", "e3", "e4"}, id) {
			return true
		}
	}
	return false
}

func TestCase029_EveryDerivedRowLostIsMadeAnewAndNoGroupMoves(t *testing.T) {
	w := full(t)
	all := w.rows()
	derived, err := check.DerivedTables(w.store)
	w.must(err)
	gone := w.lost(all, derived)
	w.write(gone...)
	done, err := check.Rebuild(t.Context(), w.store, nil)
	w.must(err)
	added := int64(0)
	for _, x := range done {
		added += x.Added
		if x.Removed != 0 || x.Replaced != 0 {
			t.Errorf("%+v: rows were only missing", x)
		}
	}
	if added != int64(len(gone)) {
		t.Errorf("%d rows were added, %d were lost", added, len(gone))
	}
	if is := w.rows(); !maps.Equal(is, all) {
		t.Errorf("after the repair\n%s", difference(all, is))
	}
	if w.finds() {
		t.Error("a check still finds something")
	}
	if again, err := check.Rebuild(t.Context(), w.store, nil); err != nil || len(again) != 0 {
		t.Errorf("another repair writes %+v, %v", again, err)
	}
}

// Which command finished which message of one instant stands in the rows that are
// lost, and nowhere else: there are as many of them again, and they list the same.
func TestFinishedRowsOfOneInstantAreMadeAnewTogether(t *testing.T) {
	w := newWorld(t)
	w.make(api.ResourcesConfigureRequest{Name: "jobs", Kind: api.KindQueue, Queue: &api.QueuePolicy{MaxLeaseSeconds: 900}})
	p := at("main")
	for i := range 6 {
		w.commit(p, client.Enqueue("jobs", api.Message{MessageID: fmt.Sprint("m", i), Payload: api.Of(i)}))
	}
	d := items(w.receive(p, 6), api.ActionAck)
	w.complete(p, d[0])
	w.now++
	w.complete(p, d[1], d[3])
	w.complete(p, d[2])
	w.complete(p, d[4])
	w.now++
	w.complete(p, d[5])
	all := w.rows()
	var finished []row
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if k[0] == byte(table.Finished) {
			finished = append(finished, row{[]byte(k), nil})
		}
	}
	if len(finished) != 5 {
		t.Fatalf("%d finished rows", len(finished))
	}
	for subset := range 1 << len(finished) {
		var lost []row
		for i, r := range finished {
			if subset&(1<<i) != 0 {
				lost = append(lost, r)
			}
		}
		w.write(lost...)
		_, err := check.Rebuild(t.Context(), w.store, nil)
		w.must(err)
		report, err := check.Store(t.Context(), w.store, nil)
		w.must(err)
		if len(report.Findings) != 0 {
			t.Errorf("without %05b: %+v", subset, report.Findings)
		}
		is := w.rows()
		if several := subset & 0b01110; several&(several-1) == 0 && !maps.Equal(is, all) { // at most one of those that share an instant
			t.Errorf("without %05b:\n%s", subset, difference(all, is))
		}
		w.back(is, all)
	}
}

var errDisk = errors.New("no space left on device")

// A repair whose disk fails after some batches leaves those, and another one goes on.
func TestAnInterruptedRepairCanBeRunAgain(t *testing.T) {
	mem := vfs.NewCrashableMem()
	fill := func(fs vfs.FS) *kv.Store {
		store, err := kv.Open("store", kv.Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	store := fill(mem)
	db, err := keyload.OpenStore(store, keyload.Options{Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: "jobs", Kind: api.KindQueue}); err != nil {
		t.Fatal(err)
	}
	const messages = 25_000
	for n := 0; n < messages; n += 250 {
		var ms []api.Mutation
		for i := n; i < n+250; i++ {
			ms = append(ms, client.Enqueue("jobs", api.Message{MessageID: fmt.Sprint("m", i), Payload: api.Of(i)}))
		}
		if _, err := db.Commit(ctx, api.PartitionRef{}, ms...); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: fill(mem)}
	all := w.rows()
	var gone []row
	for k := range all {
		if k[0] == byte(table.Ready) {
			gone = append(gone, row{[]byte(k), nil})
		}
	}
	w.write(gone...)
	w.must(w.store.Close())

	var writes atomic.Int64
	var synced atomic.Int64 // of the log, after which it fails
	disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if writes.Load() > 0 && strings.HasSuffix(op.Path, ".log") && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) && synced.Add(-1) < 0 {
			return errDisk
		}
		return nil
	}))
	w.store = fill(disk)
	synced.Store(1)
	writes.Store(1)
	_, err = check.Rebuild(t.Context(), w.store, nil)
	if fault.CodeOf(err) != fault.RecoveryRequired {
		t.Errorf("a repair on a disk that fails says %v", err)
	}
	_ = w.store.Close() // it says that a write failed
	w.store = fill(mem)
	left := len(all) - len(w.rows())
	if left == 0 || left == messages {
		t.Fatalf("%d of %d rows are missing after the interruption", left, messages)
	}
	done, err := check.Rebuild(t.Context(), w.store, nil)
	w.must(err)
	if len(done) != 1 || done[0].Added != int64(left) {
		t.Errorf("the second repair did %+v, want %d rows added", done, left)
	}
	if is := w.rows(); !maps.Equal(is, all) {
		t.Errorf("after the repair %d rows, were %d", len(is), len(all))
	}
	w.must(w.store.Close())
}

// onDisk makes a small store in a directory.
func onDisk(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	db, err := keyload.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range []func() error{
		func() error {
			_, err := db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: "jobs", Kind: api.KindQueue})
			return err
		},
		func() error {
			_, err := db.Commit(ctx, api.PartitionRef{}, client.Enqueue("jobs", api.Message{MessageID: "m", Payload: api.Of(1)}))
			return err
		},
		db.Close,
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// files is what is in a directory, byte by byte.
func files(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	out := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = sha256.Sum256(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// change writes to the store in a directory.
func change(t *testing.T, dir string, write func(w *world)) {
	t.Helper()
	store, err := kv.Open(dir, kv.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store}
	write(w)
	w.must(store.Close())
}

func TestARepairOfASoundStoreChangesNoByte(t *testing.T) {
	dir := onDisk(t)
	before := files(t, dir)
	done, err := check.Repair(t.Context(), dir, nil)
	if err != nil || len(done.Tables) != 0 || len(done.Findings) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if !maps.Equal(before, files(t, dir)) {
		t.Error("files were changed")
	}
}

func TestARepairSaysWhatItDidAndWhatIsLeft(t *testing.T) {
	dir := onDisk(t)
	change(t, dir, func(w *world) {
		for k := range w.rows() {
			switch table.ID(k[0]) {
			case table.Ready, table.MessageBody:
				w.write(row{[]byte(k), nil})
			}
		}
	})
	report, err := check.Dir(t.Context(), dir, nil)
	if err != nil || len(report.Findings) != 2 || report.Repairable() {
		t.Fatalf("%+v, %v", report, err)
	}
	done, err := check.Repair(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Tables) != 1 || done.Tables[0].Table != "ready" || done.Tables[0].Added != 1 {
		t.Errorf("it did %+v", done.Tables)
	}
	if len(done.Findings) != 1 || done.Findings[0].Derived || !strings.Contains(done.Findings[0].Text, "body") {
		t.Errorf("it leaves %+v", done.Findings)
	}
}

func TestAStoreThatIsOpenOrOfAnOlderFormatIsNotRepaired(t *testing.T) {
	dir := onDisk(t)
	db, err := keyload.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := check.Repair(t.Context(), dir, nil); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("an open one: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	change(t, dir, func(w *world) {
		for k := range w.rows() {
			if k[0] == byte(table.Ready) {
				w.write(row{[]byte(k), nil})
			}
		}
		tx := w.store.NewTx()
		tx.Begin()
		id, _, err := system.ReadIdentity(tx)
		w.must(err)
		id.Format = system.Format - 1
		system.WriteIdentity(tx, id)
		p, err := tx.Commit()
		w.must(errors.Join(err, p.Wait(), tx.Close()))
	})
	before := files(t, dir)
	if _, err := check.Repair(t.Context(), dir, nil); fault.CodeOf(err) != fault.FormatUnsupported {
		t.Errorf("an older one: %v", err)
	}
	if !maps.Equal(before, files(t, dir)) {
		t.Error("files were changed")
	}
}
