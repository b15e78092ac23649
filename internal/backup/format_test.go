package backup_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/system"
)

// A backup that an earlier program made is restored as one of this program's: the
// store in it is upgraded on the way, and no copy of what it was is left in it.
func TestABackupOfAStoreOfAnOlderFormatIsRestoredAndUpgraded(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	for i := range 5 {
		b.write("one", i)
	}
	setFormat(t, b.db.Engine().Store(), 1)
	content, made := b.archive()
	if made.StoreFormat != 1 {
		t.Fatalf("the backup has format %d: the test tests nothing", made.StoreFormat)
	}
	files := vfs.NewMem()
	_, err := backup.Restore(t.Context(), from(content), "to", backup.RestoreOptions{Files: kv.Options{FS: files}})
	must(t, err)
	db := restored(t, files, "to")
	if got := db.Engine().Status().Format; got != system.Format {
		t.Errorf("the restored store has format %d, want %d", got, system.Format)
	}
	whole(t, db, "one", 5, 5)
	absent(t, "a copy of the older store", files, "to/format-1")
}

func setFormat(t *testing.T, s *kv.Store, format int64) {
	t.Helper()
	tx := s.NewTx()
	id, ok, err := system.ReadIdentity(tx)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	id.Format = format
	tx.Begin()
	system.WriteIdentity(tx, id)
	p, err := tx.Commit()
	must(t, err)
	must(t, p.Wait())
	must(t, tx.Close())
}
