package target

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
)

// The whole way: a store, a backup in parts in a bucket, a connection that is lost
// again and again, a restored store.
func TestAStoreGoesThroughABucketAndBack(t *testing.T) {
	s := newS3(t)
	dir := t.TempDir()
	db, err := keyload.Open(filepath.Join(dir, "data"))
	must(t, err)
	p := s3Place(t, "s3://backups/a.klb")
	made, err := backup.Relay(t.Context(), func(ctx context.Context, w io.Writer) (string, error) { return db.Backup(ctx, w) }, func(r io.Reader) error {
		_, err := p.Put(t.Context(), p.Name, r)
		return err
	})
	must(t, err)
	must(t, db.Close())
	cuts := cutting(s, 700, 6)
	done, err := backup.Restore(t.Context(), p.Open, filepath.Join(dir, "restored"), backup.RestoreOptions{Expect: made.ID})
	must(t, err)
	if *cuts != 6 || done.Backup.ID != made.ID {
		t.Errorf("%d cuts, restored %s of %s", *cuts, done.Backup.ID, made.ID)
	}
	db, err = keyload.Open(filepath.Join(dir, "restored"), keyload.Options{MustExist: true})
	must(t, err)
	must(t, db.Close())
}

// A store that closes while it is backed up leaves nothing in the bucket.
func TestABackupThatFailsLeavesNothingInABucket(t *testing.T) {
	s := newS3(t)
	p := s3Place(t, "s3://backups/a.klb")
	closing := fault.New(fault.OwnershipLost, "store_closed", "it is closing")
	_, err := backup.Relay(t.Context(), func(_ context.Context, w io.Writer) (string, error) {
		_, err := io.WriteString(w, strings.Repeat("x", 10))
		if err == nil {
			err = closing
		}
		return "", err
	}, func(r io.Reader) error {
		_, err := p.Put(t.Context(), p.Name, r)
		return err
	})
	if err == nil || len(s.objects) > 0 || len(s.uploads) > 0 {
		t.Errorf("%v; %d objects and %d uploads are left", err, len(s.objects), len(s.uploads))
	}
}
