package kv

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// put writes a file on the real disk.
func put(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestTheStoreAroundAPathIsFoundWhateverTheWayThere(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	store, begun := filepath.Join(home, "store"), filepath.Join(home, "begun")
	s, err := Open(store, Options{CacheBytes: 1 << 20})
	must(t, err)
	must(t, s.Close())
	r, err := BeginRestore(begun, 0, Options{})
	must(t, err)
	must(t, os.Mkdir(filepath.Join(store, "sub"), 0o755))
	must(t, os.Mkdir(filepath.Join(home, "backups"), 0o755))
	must(t, os.Symlink(filepath.Join(store, "sub"), filepath.Join(home, "backups", "link")))
	put(t, filepath.Join(home, "own", unfinishedName), "remember the milk\n")
	for path, want := range map[string]string{
		"store": store, "store/": store, "store/sub": store, "store/missing/deep": store, "store/checkpoint-1": store,
		"backups/link": store, "backups/link/x": store, "begun": begun, "begun/x": begun,
		"backups": "", "backups/missing": "", "own": "", "own/x": "", ".": "",
	} {
		got, found := StoreAround(filepath.Join(home, path), Options{})
		if got != want || found != (want != "") {
			t.Errorf("around %s it finds %q", path, got)
		}
	}
	for _, dir := range []string{"store/new", "store/checkpoint-9", "backups/link/new"} {
		to := filepath.Join(home, dir)
		if _, err := Open(to, Options{}); !errors.Is(err, ErrInside) || !strings.Contains(err.Error(), store) {
			t.Errorf("a new store in %s: %v", dir, err)
		}
		if _, err := BeginRestore(to, 0, Options{}); !errors.Is(err, ErrInside) {
			t.Errorf("a restore into %s: %v", dir, err)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%s was made", dir)
		}
	}
	must(t, r.Abort())
	if _, err := BeginNew(filepath.Join(store, "above", "new"), Options{}); !errors.Is(err, ErrInside) {
		t.Errorf("a new store below: %v", err)
	}
	if _, err := os.Stat(filepath.Join(store, "above")); err == nil {
		t.Error("the directory above it was made")
	}
}

func TestAStoreMayLieInAnotherOnesDirectoryIfWhoOpensItSaysSo(t *testing.T) {
	mem := vfs.NewMem()
	e := newEntries(t, mem, 100)
	e.must(e.write())
	inner, err := Open("db/journal", Options{FS: mem, CacheBytes: 1 << 20, Inside: true})
	must(t, err)
	must(t, inner.Close())
	e.close()
	e.reopened(mem)
	inner, err = Open("db/journal", Options{FS: mem, CacheBytes: 1 << 20, MustExist: true})
	must(t, err)
	must(t, inner.Close())
}

// A store goes on whatever anybody calls a file of theirs.
func TestAFileOfTheNameOfTheMarkThatSaysSomethingElseIsSomebodysOwn(t *testing.T) {
	a := archive(t)
	for _, content := range []string{"remember the milk\n", "made for a restore\nof Monday's numbers", "\x28\xb5\x2f\xfd", strings.Repeat("x", 4096), "found empty\n" + strings.Repeat("1", 65)} {
		mem := vfs.NewMem()
		must(t, a.restoreTo(mem, "db"))
		f, err := mem.Create("db/"+unfinishedName, vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = f.Write([]byte(content))
		must(t, errors.Join(err, f.Close()))
		must(t, a.opened(t, mem, "db"))
		if err := a.restoreTo(mem, "db"); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("%q: a restore over the store says %v", content, err)
		}
		must(t, a.opened(t, mem, "db"))
	}
}

// A power loss may leave any beginning of it.
func TestEveryBeginningOfTheMarkKeepsTheDirectoryFromBeingOpened(t *testing.T) {
	for _, g := range []sign{{}, {made: true}, {false, strings.Repeat("a", 64)}, {true, "0190b6a0-5c1e"}} {
		text := g.text()
		if got := parseSign(text); got == nil || *got != g {
			t.Errorf("%q is read as %v", text, got)
		}
		for n := range len(text) {
			if parseSign(text[:n]) == nil {
				t.Errorf("%q is taken for somebody's own", text[:n])
			}
		}
	}
	for _, of := range []string{strings.Repeat("a", 65), "two words", "../x", "a\nb"} {
		if got := (sign{true, of}).text(); got != madeText {
			t.Errorf("of %q it says %q", of, got)
		}
	}
}

func TestARestoreKnowsWhatTheOneBeforeItWasOf(t *testing.T) {
	mem := vfs.NewMem()
	r, err := BeginRestore("db", 0, Options{FS: mem, Of: "first"})
	must(t, err)
	must(t, r.lock.Close()) // as the system does when the process is killed
	r, err = BeginRestore("db", 0, Options{FS: mem, Of: "second"})
	must(t, err)
	if r.Before() != "first" {
		t.Errorf("it was of %q", r.Before())
	}
	must(t, r.Abort())
	if r, err = BeginRestore("db", 0, Options{FS: mem}); err != nil || r.Before() != "" {
		t.Errorf("after it was given up: %v, %q", err, r.Before())
	}
	must(t, r.Abort())
}

// What somebody puts into the directory while a restore works there is theirs.
func TestAnAbortLeavesWhatItDidNotMake(t *testing.T) {
	mem := vfs.NewMem()
	r, err := BeginRestore("db", 0, Options{FS: mem})
	must(t, err)
	must(t, r.Write("odd-name", strings.NewReader("x")))
	must(t, r.Write("000001.sst", strings.NewReader("x")))
	touch(t, mem, "db/notes.txt")
	must(t, r.Abort())
	names, err := mem.List("db")
	if err != nil || len(names) != 1 || names[0] != "notes.txt" {
		t.Errorf("there are %q, %v", names, err)
	}
}

func TestACopyThatIsKeptReplacesNothingButACopy(t *testing.T) {
	mem := vfs.NewMem()
	e := newEntries(t, mem, 100)
	e.must(e.write())
	touch(t, mem, "db/format-1/notes.txt")
	c := e.checkpoint()
	if err := c.Keep("format-1"); !errors.Is(err, ErrCheckpoint) || !strings.Contains(err.Error(), "format-1") {
		t.Errorf("over somebody's own it says %v", err)
	}
	e.must(c.Keep("format-2"))
	e.must(c.Close())
	c = e.checkpoint()
	e.must(c.Keep("format-2"))
	e.must(c.Close())
	if _, err := mem.Stat("db/format-1/notes.txt"); err != nil {
		t.Error(err)
	}
	e.close()
}

func TestANewStoreOpensOnceItIsPublishedAndReplacesNothingButAnUnfinishedNewOne(t *testing.T) {
	mem := vfs.NewMem()
	killed := func(r *Restoring, err error) {
		must(t, err)
		must(t, r.lock.Close()) // as the system does when the process is killed
	}
	killed(BeginNew("db", Options{FS: mem}))
	r, err := BeginNew("db", Options{FS: mem, CacheBytes: 1 << 20})
	must(t, err)
	s, err := r.New()
	must(t, err)
	if _, err := Open("db", Options{FS: mem}); !errors.Is(err, ErrUnmade) {
		t.Errorf("before it is published opening says %v", err)
	}
	must(t, s.Close())
	must(t, r.Publish())
	s, err = Open("db", Options{FS: mem, MustExist: true, CacheBytes: 1 << 20})
	must(t, err)
	must(t, s.Close())
	if _, err := BeginNew("db", Options{FS: mem}); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("over a store it says %v", err)
	}
	for _, of := range []string{"", "0123abcd"} {
		mem := vfs.NewMem()
		killed(BeginRestore("db", 0, Options{FS: mem, Of: of}))
		touch(t, mem, "db/notes.txt") // whatever else is there
		if _, err := BeginNew("db", Options{FS: mem}); !errors.Is(err, ErrUnfinished) {
			t.Errorf("over an unfinished restore of %q it says %v", of, err)
		}
		if _, err := Open("db", Options{FS: mem}); !errors.Is(err, ErrUnfinished) || errors.Is(err, ErrUnmade) {
			t.Errorf("an unfinished restore of %q says %v", of, err)
		}
	}
	mem = vfs.NewMem()
	killed(BeginNew("db", Options{FS: mem}))
	r, err = BeginRestore("db", 0, Options{FS: mem})
	must(t, err)
	if r.Before() != "" {
		t.Errorf("an unfinished new store is told as a restore of %q", r.Before())
	}
	must(t, r.Abort())
}

func TestANewStoreThatWasPublishedStaysAfterAPowerLossWithTheDirectoriesAboveIt(t *testing.T) {
	mem := vfs.NewCrashableMem()
	r, err := BeginNew("a/b/db", Options{FS: mem, CacheBytes: 1 << 20})
	must(t, err)
	s, err := r.New()
	must(t, err)
	must(t, s.Close())
	must(t, r.Publish())
	lost := mem.CrashClone(vfs.CrashCloneCfg{})
	s, err = Open("a/b/db", Options{FS: lost, MustExist: true, CacheBytes: 1 << 20})
	must(t, err)
	must(t, s.Close())
}
