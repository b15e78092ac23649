package kv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// several makes a store whose entries are in several logs, none of them written
// out, and calls each after every entry.
func several(t *testing.T, each func(*vfs.MemFS)) (*vfs.MemFS, *entries) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	fs := &heldTables{mem, make(chan struct{})}
	e := newEntries(t, fs, 40_000)
	for range 34 { // as many as fit into the memtables that may wait
		e.must(e.write())
		each(mem)
	}
	killed := mem.CrashClone(vfs.CrashCloneCfg{})
	close(fs.released)
	e.close()
	return killed, e
}

// Whatever a power loss leaves of several logs is no damage.
func TestAPowerLossWithSeveralLogsIsNoDamage(t *testing.T) {
	n := uint64(0)
	_, e := several(t, func(mem *vfs.MemFS) {
		for _, percent := range []int{50, 100} {
			if n++; n%3 != 0 {
				continue
			}
			left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(n, 9))})
			s, err := Open("db", Options{FS: left, CacheBytes: 1 << 20})
			if err != nil {
				t.Fatalf("after entry %d, with %d percent: %v", n/2, percent, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if e.told != 34 {
		t.Errorf("%d entries were told", e.told)
	}
}

// Whichever file is gone: opening says which, or nothing is missed.
func TestAFileThatIsGoneIsNamed(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		mem, e := damageable(t, sealed)
		met := map[string]int{}
		for _, name := range files(t, mem) {
			fs, _ := copyOf(t, mem, name)
			e.must(fs.Remove("db/" + name))
			before := files(t, fs)
			n, err := e.examine(fs)
			kind := kindOf(name)
			switch {
			case err == nil && n == e.next:
				if kind == "marker" {
					t.Errorf("without %s nothing was said", name)
				}
				continue
			case !errors.Is(err, ErrCorrupt):
				t.Errorf("without %s: %d of %d entries, %v", name, n, e.next, err)
			case !strings.Contains(err.Error(), named(name)):
				t.Errorf("without %s it says: %v", name, err)
			}
			met[kind]++
			if after := files(t, fs); !slices.Equal(before, after) && kind != "sst" {
				t.Errorf("without %s opening changed the directory from %q to %q", name, before, after)
			}
		}
		for _, kind := range []string{"sst", "log", "MANIFEST", "marker"} {
			if met[kind] == 0 {
				t.Errorf("no %s is missed: the test tests nothing", kind)
			}
		}
	}
}

// named is what an error says of a file: Pebble knows tables by their number, and
// the number of a marker is in nothing else.
func named(file string) string {
	if base, ok := strings.CutSuffix(file, ".sst"); ok {
		return base
	}
	if strings.HasPrefix(file, "marker.") {
		return strings.Join(strings.Split(file, ".")[:2], ".")
	}
	return file
}

func TestOfSeveralLogsThatAreNeededNoneMayBeGoneOrShort(t *testing.T) {
	killed, e := several(t, func(*vfs.MemFS) {})
	var logs []string
	for _, name := range files(t, killed) {
		if kindOf(name) == "log" {
			if _, size := copyOf(t, killed, name); size > 0 {
				logs = append(logs, name)
			}
		}
	}
	if len(logs) < 3 {
		t.Fatalf("there are only the logs %q", logs)
	}
	e.reopened(killed.CrashClone(vfs.CrashCloneCfg{}))
	for i, name := range logs {
		fs, _ := copyOf(t, killed, name)
		e.must(fs.Remove("db/" + name))
		if _, err := Open("db", Options{FS: fs, CacheBytes: 1 << 20}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s, of %q: %v", name, logs, err)
		}
		if i == len(logs)-1 {
			break // the newest one may end anywhere
		}
		for _, part := range []int{1, 3, 7} {
			fs, size := copyOf(t, killed, name)
			truncate(t, fs, name, size*part/8)
			if _, err := Open("db", Options{FS: fs, CacheBytes: 1 << 20}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s cut to %d of 8 parts: %v", name, part, err)
			}
		}
	}
}

func TestADirectoryWithoutItsMarkersIsNoNewStore(t *testing.T) {
	mem, e := damageable(t, false)
	fs := mem.CrashClone(vfs.CrashCloneCfg{})
	for _, name := range files(t, fs) {
		if strings.HasPrefix(name, "marker.") {
			e.must(fs.Remove("db/" + name))
		}
	}
	for _, o := range []Options{{FS: fs}, {FS: fs, MustExist: true}, {FS: fs, ReadOnly: true}} {
		if _, err := Open("db", o); !errors.Is(err, ErrCorrupt) {
			t.Errorf("it opened with: %v", err)
		}
	}
}

// A store whose making was interrupted has a manifest and no marker; one that was
// never begun has nothing.
func TestADirectoryWithTheFirstManifestAloneIsANewStore(t *testing.T) {
	for _, names := range [][]string{{}, {"LOCK"}, {"LOCK", "MANIFEST-000001"}} {
		mem := vfs.NewMem()
		if err := mem.MkdirAll("db", 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			f, err := mem.Create("db/"+name, vfs.WriteCategoryUnspecified)
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open("db", Options{FS: mem, MustExist: true}); !errors.Is(err, ErrMissing) {
			t.Errorf("with %q: %v", names, err)
		}
		e := newEntries(t, mem, 10)
		e.must(e.write())
		e.close()
	}
}

func TestTheListOfLogsIsReadBackAndNothingElseIsTakenForOne(t *testing.T) {
	for name, want := range map[string]string{
		"logs.000001.7": "1 [7]", "logs.12.7-8-123456": "12 [7 8 123456]", "logs.000001.": "", "logs.x.7": "", "logs.1.7-x": "", "logs.1": "", "000001.log": "", "log.1.7": "",
	} {
		n, numbers, ok := parseLogList(name)
		got := ""
		if ok {
			got = fmt.Sprint(n, " ", numbers)
		}
		if got != want {
			t.Errorf("%s is read as %q, want %q", name, got, want)
		}
	}
}

// While a store is open a list with every log that holds entries is there, and
// when it was closed none is.
func TestLogsAreListedWhileTheyAreNeeded(t *testing.T) {
	mem := vfs.NewCrashableMem()
	e := newEntries(t, mem, 300)
	lists := func() (found []string) {
		for _, name := range files(t, mem) {
			if _, _, ok := parseLogList(name); ok {
				found = append(found, name)
			}
		}
		return found
	}
	for range 3 {
		e.must(e.write())
		if n := len(lists()); n != 1 {
			t.Errorf("the lists are %q", lists())
		}
		e.must(e.store.Flush())
	}
	e.close()
	if n := len(lists()); n != 0 {
		t.Errorf("after it was closed there are %q", lists())
	}
}
