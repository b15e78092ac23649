package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
)

// copyDir copies the files of a directory, as they are found after the process that
// worked there was killed.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// A store whose key nobody was shown could be opened by nobody but its own machine's
// root, and would be in the way of another attempt.
func TestAStoreThatWasNotMadeToItsEndDoesNotOpenAndIsMadeAgain(t *testing.T) {
	for _, filled := range []bool{false, true} {
		work, dir := filepath.Join(t.TempDir(), "work"), filepath.Join(t.TempDir(), "data")
		making, err := kv.BeginNew(work, kv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if filled {
			if _, err := fill(t.Context(), making); err != nil {
				t.Fatal(err)
			}
		}
		copyDir(t, work, dir)
		if err := making.Abort(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(work); err == nil {
			t.Error("what was given up is still there")
		}
		_, err = keyload.Open(dir, keyload.Options{MustExist: true})
		if f := fault.From(err); f == nil || f.Code != fault.RecoveryRequired || f.Reason != "init_unfinished" {
			t.Errorf("filled %v: opening it says %v", filled, err)
		}
		made, err := Init(t.Context(), dir)
		if err != nil || made.APIKey == "" {
			t.Fatalf("filled %v: making it again says %v", filled, err)
		}
		db, err := keyload.Open(dir, keyload.Options{MustExist: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAStoreIsMadeInAMissingOrEmptyDirectoryOfNobodyElse(t *testing.T) {
	home := t.TempDir()
	in := func(name string) string { return filepath.Join(home, name) }
	if _, err := Init(t.Context(), in("deep/er/store")); err != nil {
		t.Fatal(err)
	}
	restoring, err := kv.BeginRestore(in("begun"), 0, kv.Options{Of: "0123abcd"})
	if err != nil {
		t.Fatal(err)
	}
	copyDir(t, in("begun"), in("left"))
	if err := restoring.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(in("other"), 0o700), os.WriteFile(in("other/notes.txt"), nil, 0o600),
		os.WriteFile(in("file"), nil, 0o600), os.Symlink(in("nowhere"), in("dangling"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir    string
		code   fault.Code
		reason string
	}{
		{"deep/er/store", fault.Conflict, "store_exists"},
		{"deep/er/store/sub", fault.Validation, "directory_unusable"},
		{"deep/er/store/sub/sub", fault.Validation, "directory_unusable"},
		{"left", fault.RecoveryRequired, "restore_unfinished"},
		{"left/sub", fault.Validation, "directory_unusable"},
		{"other", fault.Conflict, "directory_not_empty"},
		{"file", fault.Validation, "directory_unusable"},
		{"file/sub", fault.Validation, "directory_unusable"},
		{"dangling", fault.Validation, "directory_unusable"},
	} {
		_, err := Init(t.Context(), in(c.dir))
		if f := fault.From(err); f == nil || f.Code != c.code || f.Reason != c.reason {
			t.Errorf("%s: %v, want %s (%s)", c.dir, err, c.code, c.reason)
		}
	}
}

func TestAnInterruptedInitLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := Init(ctx, dir); err == nil {
		t.Error("it says that the store was made")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}
