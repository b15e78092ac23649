package formats_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/resource/system"
)

// A backup before an upgrade is what one wants to have when the upgrade is regretted.
func TestABackupOfAStoreAtRestChangesNoRowAndHasTheFormatOfTheStore(t *testing.T) {
	for name, format := range kept {
		t.Run(name, func(t *testing.T) {
			dir, restored := t.TempDir(), filepath.Join(t.TempDir(), "restored")
			unpack(t, name, dir)
			before, err := check.Dir(t.Context(), dir, nil)
			must(t, err)
			rest, err := backup.OpenRest(dir, "test", nil)
			must(t, err)
			var archive bytes.Buffer
			made, err := rest.Create(t.Context(), &archive, nil)
			must(t, err)
			must(t, rest.Close())
			if made.StoreFormat != format || made.Rows != before.Rows || made.Incarnation != before.Incarnation || rest.Incarnation() != before.Incarnation {
				t.Errorf("the backup: format %d, %d rows of %s", made.StoreFormat, made.Rows, made.Incarnation)
			}
			after, err := check.Dir(t.Context(), dir, nil)
			must(t, err)
			if after.Format != format || after.Rows != before.Rows || after.Bytes != before.Bytes || len(after.Findings) != 0 {
				t.Errorf("the store after it: %+v", after)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "[cf][ho]*-*")); err != nil || len(left) > 0 {
				t.Errorf("in the store's directory there are %v, %v", left, err)
			}
			open := func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
			}
			_, err = backup.Restore(t.Context(), open, restored, backup.RestoreOptions{Expect: made.ID})
			must(t, err)
			report, err := check.Dir(t.Context(), restored, nil)
			must(t, err)
			if report.Format != system.Format || len(report.Findings) != 0 {
				t.Errorf("what is restored of it: %+v", report)
			}
			entries, err := os.ReadDir(restored)
			must(t, err)
			for _, e := range entries {
				if e.IsDir() {
					t.Errorf("what is restored has the directory %s", e.Name())
				}
			}
		})
	}
}
