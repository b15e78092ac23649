package kv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// childDir names the directory a child process of a test is to open.
const childDir = "KEYLOAD_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		s, err := Open(dir, Options{CacheBytes: 1 << 20})
		switch {
		case errors.Is(err, ErrLocked):
			fmt.Print("locked")
		case err != nil:
			fmt.Print(err)
		default:
			fmt.Print("opened")
			s.Close()
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func openInAnotherProcess(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the child process failed: %v: %s", err, out)
	}
	return string(out)
}

func TestADirectoryIsOpenInOneProcessOnly(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if got := openInAnotherProcess(t, dir); got != "locked" {
		t.Errorf("another process says: %s", got)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second open in this process says: %v", err)
	}
	// The refused open must not have loosened the lock.
	if got := openInAnotherProcess(t, dir); got != "locked" {
		t.Errorf("after a refused open another process says: %s", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := openInAnotherProcess(t, dir); got != "opened" {
		t.Errorf("after Close another process says: %s", got)
	}
}

func TestAStoreThatMustExistIsNotMade(t *testing.T) {
	for _, o := range []Options{{MustExist: true}, {ReadOnly: true}} {
		o.FS = vfs.NewMem()
		if err := o.FS.MkdirAll("db", 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := Open("db", o); !errors.Is(err, ErrMissing) {
			t.Errorf("%+v: opening nothing says %v", o, err)
		}
	}
}

func TestAStoreOpenedReadOnlyIsNotWritten(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open("db", Options{FS: fs, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	tx := s.NewTx()
	tx.Begin()
	tx.Put([]byte("k"), []byte("1"))
	commit(t, tx)
	if err := errors.Join(tx.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	before := fs.String()
	s, err = Open("db", Options{FS: fs, ReadOnly: true, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	snap := s.NewSnapshot()
	if got := text(t, snap, "k"); got != "1" {
		t.Errorf("k reads as %s", got)
	}
	tx = s.NewTx()
	tx.Begin()
	tx.Put([]byte("k"), []byte("2"))
	if _, err := tx.Commit(); err == nil {
		t.Error("a read-only store took a write")
	}
	if err := errors.Join(snap.Close(), tx.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if after := fs.String(); after != before {
		t.Errorf("the directory changed from\n%sto\n%s", before, after)
	}
}

func TestCloseCanBeCalledTwice(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}
