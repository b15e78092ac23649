package backup_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
)

// What is due would be done by any program that opens the store to work with it.
func TestABackupOfAStoreAtRestDoesNothingThatIsDue(t *testing.T) {
	dir := t.TempDir() + "/store"
	longAgo := time.Now().Add(-time.Hour)
	db, err := keyload.Open(dir, keyload.Options{Shards: 2, Clock: func() time.Time { return longAgo }})
	must(t, err)
	_, err = db.ConfigureResource(t.Context(), &api.ResourcesConfigureRequest{Name: "jobs", Kind: api.KindQueue})
	must(t, err)
	m := keyload.Message(1)
	m.NotBefore = api.TimeOf(longAgo.Add(time.Minute))
	_, err = db.Commit(t.Context(), api.PartitionRef{}, keyload.Enqueue("jobs", m))
	must(t, err)
	_, err = backup.OpenRest(dir, "test", nil)
	wants(t, "while it is open", err, fault.Conflict, "store_in_use")
	must(t, db.Close())
	positions := func() (out []uint64) {
		for range 2 {
			rest, err := backup.OpenRest(dir, "test", nil)
			must(t, err)
			var archive bytes.Buffer
			made, err := rest.Create(t.Context(), &archive, nil)
			must(t, err)
			must(t, rest.Close())
			for _, s := range made.Shards {
				out = append(out, s.Position)
			}
		}
		return out
	}
	all := positions()
	if len(all) != 6 || all[0] != all[3] || all[1] != all[4] || all[2] != all[5] {
		t.Errorf("two backups, one after the other, are of the positions %v", all)
	}
	db, err = keyload.Open(dir, keyload.Options{MustExist: true})
	must(t, err)
	moved := func() (moved bool) {
		for i, s := range db.Engine().Status().Shards {
			moved = moved || s.DurablePosition > all[i]
		}
		return moved
	}
	look, deadline := time.NewTicker(10*time.Millisecond), time.After(30*time.Second)
	defer look.Stop()
	for !moved() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatal("nothing was due: the test tests nothing")
		}
	}
	must(t, db.Close())
	_, err = backup.OpenRest(t.TempDir(), "test", nil)
	wants(t, "an empty directory", err, fault.NotFound, "no_store")
}
