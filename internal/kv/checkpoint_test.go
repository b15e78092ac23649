package kv

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// checkpoint makes one, or fails the test.
func (e *entries) checkpoint() *Checkpoint {
	e.t.Helper()
	c, err := e.store.Checkpoint(context.Background())
	e.must(err)
	return c
}

// inside checks the content of a checkpoint and answers how many entries it has.
func (e *entries) inside(c *Checkpoint) int {
	e.t.Helper()
	s, err := c.Store()
	e.must(err)
	snap := s.NewSnapshot()
	n := e.holds(snap)
	e.must(errors.Join(snap.Close(), s.Close()))
	return n
}

// leftovers are the names of checkpoints in the directory of a store.
func leftovers(t *testing.T, files vfs.FS, dir string) (found []string) {
	t.Helper()
	names, err := files.List(dir)
	must(t, err)
	for _, name := range names {
		if strings.HasPrefix(name, checkpointPrefix) {
			found = append(found, name)
		}
	}
	return found
}

// below says whether an operation is one on a checkpoint.
func below(op errorfs.Op) bool { return strings.Contains(op.Path, checkpointPrefix) }

// writing writes entries until it is stopped, and says how many are durable and
// how many may be there.
type writing struct {
	durable, begun atomic.Int64
	more           chan struct{} // has a value when more is durable
	stop           chan struct{}
	done           sync.WaitGroup
}

func (e *entries) writing() *writing {
	w := &writing{stop: make(chan struct{}), more: make(chan struct{}, 1)}
	w.done.Go(func() {
		for {
			select {
			case <-w.stop:
				return
			default:
			}
			w.begun.Add(1)
			if err := e.write(); err != nil {
				e.t.Errorf("a write failed: %v", err)
				return
			}
			w.durable.Add(1)
			select {
			case w.more <- struct{}{}:
			default:
			}
		}
	})
	return w
}

func (w *writing) end() {
	close(w.stop)
	w.done.Wait()
}

func TestACheckpointUnderLoadIsTheStoreAtOneMoment(t *testing.T) {
	for name, disk := range map[string]vfs.FS{"in memory": vfs.NewMem(), "on a disk": vfs.Default} {
		t.Run(name, func(t *testing.T) {
			dir := "db"
			if disk == vfs.Default {
				dir = filepath.Join(t.TempDir(), "db")
			}
			s, err := Open(dir, Options{FS: disk, CacheBytes: 1 << 20})
			must(t, err)
			e := &entries{t: t, store: s, tx: s.NewTx(), size: 5_000} // an entry is then about half a block of the log
			w := e.writing()
			last := 0
			for range 5 {
				for target := w.durable.Load() + 30; w.durable.Load() < target && !t.Failed(); {
					<-w.more
				}
				before := w.durable.Load()
				c := e.checkpoint()
				after := w.begun.Load()
				inner, err := c.Store()
				must(t, err)
				snap := inner.NewSnapshot()
				seen := &entries{t: t, told: int(before), next: int(after)}
				n := seen.holds(snap)
				must(t, errors.Join(snap.Close(), inner.Close()))
				if n < last {
					t.Errorf("a checkpoint shows %d entries, an earlier one %d", n, last)
				}
				last = n
				must(t, c.Close())
			}
			w.end()
			e.close()
			if found := leftovers(t, disk, dir); len(found) > 0 {
				t.Errorf("%v are left", found)
			}
		})
	}
}

// growing is a file system on which a log grows between two reads of it.
type growing struct {
	vfs.FS
	grow func() // nil: it does not
}

type growingFile struct {
	vfs.File
	disk *growing
}

func (g *growing) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.FS.Open(name, o...)
	if err != nil || !strings.HasSuffix(name, ".log") || strings.Contains(name, checkpointPrefix) {
		return f, err
	}
	return growingFile{f, g}, nil
}

// Create is called by a checkpoint before it copies the log, which is empty then.
func (g *growing) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.Contains(name, checkpointPrefix) && strings.Contains(name, "OPTIONS") && g.grow != nil {
		g.grow()
	}
	return g.FS.Create(name, c)
}

func (f growingFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if f.disk.grow != nil {
		f.disk.grow()
	}
	return n, err
}

// A copy of a log that grows has what came after its beginning, and not all of
// what came before that.
func TestALogThatGrowsWhileItIsCopiedIsCutWhereTheCopyHasAHole(t *testing.T) {
	disk := &growing{FS: vfs.NewMem()}
	e := newEntries(t, disk, 1_000)
	for range 3 {
		e.must(e.write())
	}
	grown := 0
	disk.grow = func() {
		if grown++; grown == 1 {
			e.must(e.write()) // the first read finds little, and zeros after it
		}
		for range 15 * min(grown-1, 1) { // more than one read takes
			e.must(e.write())
		}
	}
	before := e.told
	c := e.checkpoint()
	disk.grow = nil
	if grown < 4 {
		t.Errorf("the log grew %d times: the test tests nothing", grown)
	}
	now := e.told
	e.told = before
	if n := e.inside(c); n == now || n < before+1 {
		t.Errorf("the copy has %d entries of %d", n, now)
	}
	e.told = now
	e.must(c.Close())
	e.close()
}

func TestTheFilesOfACheckpointAreAStoreThatNeedsNoLog(t *testing.T) {
	mem := vfs.NewCrashableMem()
	e := newEntries(t, mem, 300)
	for range 3 {
		for range 20 {
			e.must(e.write())
		}
		e.must(e.store.Flush())
	}
	e.must(e.write()) // in the log alone
	c := e.checkpoint()
	e.must(e.write()) // not in the checkpoint
	other := vfs.NewMem()
	e.must(other.MkdirAll("db", 0o755))
	for _, f := range c.Files() {
		if _, isLog := logNumber(f.Name); isLog || strings.ContainsAny(f.Name, `/\`) {
			t.Errorf("%q is among the files", f.Name)
		}
		r, err := c.Open(f.Name)
		e.must(err)
		w, err := other.Create("db/"+f.Name, vfs.WriteCategoryUnspecified)
		e.must(err)
		n, err := io.Copy(w, r)
		e.must(errors.Join(err, r.Close(), w.Close()))
		if n != f.Bytes {
			t.Errorf("%s has %d bytes and is said to have %d", f.Name, n, f.Bytes)
		}
	}
	if _, err := c.Open("../CURRENT"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is none of its own: %v", err)
	}
	e.told = 61
	if n := e.inside(c); n != 61 {
		t.Errorf("the checkpoint shows %d entries, want 61", n)
	}
	e.must(c.Close())
	e.must(c.Close())
	if n := e.reopened(other); n != 61 {
		t.Errorf("a copy of its files has %d entries, want 61", n)
	}
	e.told = 62
	e.close()
	e.reopened(mem)
}

func TestTablesAreCopiedWhereTheyCannotBeLinked(t *testing.T) {
	disk, toggle := breakable(vfs.NewMem(), func(op errorfs.Op) bool { return op.Kind == errorfs.OpLink })
	toggle.On()
	e := newEntries(t, disk, 300)
	e.must(e.write())
	e.must(e.store.Flush())
	e.must(e.write())
	c := e.checkpoint()
	if n := e.inside(c); n != 2 {
		t.Errorf("the checkpoint shows %d entries, want 2", n)
	}
	e.must(c.Close())
	e.close()
}

// heldCopies is a file system on which making files of checkpoints waits.
type heldCopies struct {
	vfs.FS
	reached, released chan struct{}
	once              sync.Once
}

func (h *heldCopies) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.Contains(name, checkpointPrefix) {
		h.once.Do(func() { close(h.reached); <-h.released })
	}
	return h.FS.Create(name, c)
}

func TestWritesGoOnWhileTheFilesOfACheckpointAreMade(t *testing.T) {
	h := &heldCopies{FS: vfs.NewMem(), reached: make(chan struct{}), released: make(chan struct{})}
	e := newEntries(t, h, 300)
	e.must(e.write())
	made := make(chan *Checkpoint)
	go func() { made <- e.checkpoint() }()
	<-h.reached
	e.must(e.write())
	e.must(e.store.Flush())
	e.must(e.write())
	close(h.released)
	c := <-made
	e.told = 1 // those after the moment of the checkpoint need not be there
	e.inside(c)
	e.told = e.next
	e.must(c.Close())
	e.close()
}
