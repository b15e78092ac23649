//go:build unix

package kv

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// unmasked lets the process make what everybody may write, until the test ends.
func unmasked(t *testing.T) {
	t.Helper()
	old := syscall.Umask(0)
	t.Cleanup(func() { syscall.Umask(old) })
}

// mine fails for what others than the owner have any right to, and counts files.
func mine(t *testing.T, when, dir string) (files int) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode()&0o077 != 0 {
			t.Errorf("%s: others may use %s: %v", when, path, info.Mode())
		}
		if !d.IsDir() {
			files++
		}
		return err
	}))
	return files
}

func TestWhatAStoreMakesOnTheDiskIsItsOwnersAlone(t *testing.T) {
	unmasked(t)
	a := archive(t)
	home := t.TempDir()
	dir := filepath.Join(home, "above", "db")
	s, err := Open(dir, Options{CacheBytes: 1 << 20})
	must(t, err)
	tx := s.NewTx()
	for _, key := range []string{"a", "b"} {
		tx.Begin()
		tx.Put([]byte(key), make([]byte, 1000))
		commit(t, tx)
		must(t, s.Flush())
	}
	must(t, tx.Close())
	c, err := s.Checkpoint(context.Background())
	must(t, err)
	if n := mine(t, "open", filepath.Join(home, "above")); n < 10 {
		t.Errorf("there are %d files: the test tests nothing", n)
	}
	must(t, c.Keep("format-1"))
	must(t, s.Compact([]byte("a"), []byte("c")))
	must(t, errors.Join(c.Close(), s.Close()))
	mine(t, "closed", dir)

	to := filepath.Join(home, "restored")
	r, err := BeginRestore(to, a.bytes, Options{CacheBytes: 1 << 20})
	must(t, err)
	must(t, a.fill(r))
	mine(t, "being restored", to)
	must(t, r.Publish())
	mine(t, "restored", to)
}

// A directory that was found is somebody's decision; what is put into it is not.
func TestADirectoryThatWasFoundKeepsItsModeAndItsFilesAreTheOwnersAlone(t *testing.T) {
	unmasked(t)
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	s, err := Open(dir, Options{CacheBytes: 1 << 20})
	must(t, err)
	must(t, s.Close())
	info, err := os.Stat(dir)
	must(t, err)
	if info.Mode().Perm() != 0o755 {
		t.Errorf("the directory has %v now", info.Mode())
	}
	names, err := os.ReadDir(dir)
	must(t, err)
	for _, n := range names {
		mine(t, "in a directory that was found", filepath.Join(dir, n.Name()))
	}
}
