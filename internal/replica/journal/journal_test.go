package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/keyload/keyload/internal/kv"
)

var _ interface {
	Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error)
	Term(i uint64) (uint64, error)
	LastIndex() (uint64, error)
	FirstIndex() (uint64, error)
} = (*Shard)(nil)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, fs vfs.FS) (*kv.Store, *Journal) {
	t.Helper()
	s, err := kv.Open("journal", kv.Options{FS: fs, CacheBytes: 1 << 20})
	must(t, err)
	j, err := Open(s, 2)
	must(t, err)
	return s, j
}

func entry(index, term uint64, size int) *pb.Entry {
	data := fmt.Appendf(nil, "%d/%d ", index, term)
	return &pb.Entry{Index: new(index), Term: new(term), Type: pb.EntryNormal.Enum(), Data: append(data, bytes.Repeat([]byte{'x'}, size)...)}
}

// run makes entries of one term.
func run(from, to, term uint64, size int) (es []*pb.Entry) {
	for i := from; i <= to; i++ {
		es = append(es, entry(i, term, size))
	}
	return es
}

func write(t *testing.T, j *Journal, fill func(*Turn)) {
	t.Helper()
	turn := j.Begin()
	fill(turn)
	must(t, turn.Commit())
}

// shown is all that a log says.
func shown(t *testing.T, s *Shard) string {
	t.Helper()
	text := fmt.Sprintf("after %d/%d", s.truncated, s.truncatedTerm)
	if h := s.HardState(); h != nil {
		text += fmt.Sprintf(" state %d %d %d", h.GetTerm(), h.GetVote(), h.GetCommit())
	}
	if i, ok := s.Install(); ok {
		text += fmt.Sprintf(" installs %d/%d %s", i.Index, i.Term, i.File)
	}
	first, _ := s.FirstIndex()
	last, _ := s.LastIndex()
	if last < first {
		return text
	}
	es, err := s.Entries(first, last+1, 1<<40)
	must(t, err)
	total := uint64(0)
	for i, e := range es {
		if e.GetIndex() != first+uint64(i) {
			t.Fatalf("entry %d stands where %d must", e.GetIndex(), first+uint64(i))
		}
		if term, err := s.Term(e.GetIndex()); err != nil || term != e.GetTerm() {
			t.Fatalf("the term of %d is %d, %v; the entry says %d", e.GetIndex(), term, err, e.GetTerm())
		}
		text += " " + string(bytes.TrimRight(e.GetData(), "x"))
		total += uint64(len(encodeEntry(e)))
	}
	if total != s.Bytes() {
		t.Fatalf("the entries have %d bytes, it says %d", total, s.Bytes())
	}
	return text
}

func TestAJournalReadsWhatWasWrittenAlsoAfterItWasClosed(t *testing.T) {
	fs := vfs.NewMem()
	store, j := open(t, fs)
	if _, ok := j.Identity(); ok {
		t.Error("a new journal is somebody's")
	}
	write(t, j, func(turn *Turn) {
		turn.SetIdentity(Identity{Incarnation: [16]byte{7}, Node: 3, Founding: true})
		turn.Reset(1, 1, 4)
		turn.SetState(1, &pb.HardState{Term: new(uint64(4)), Vote: new(uint64(3)), Commit: new(uint64(1))})
	})
	write(t, j, func(turn *Turn) { turn.Append(1, run(2, 9, 4, 0)); turn.Append(2, run(1, 3, 1, 0)) })
	write(t, j, func(turn *Turn) { turn.Append(1, run(6, 7, 5, 0)) })
	write(t, j, func(turn *Turn) { turn.Truncate(1, 3) })
	write(t, j, func(turn *Turn) { turn.Truncate(1, 2) })
	write(t, j, func(turn *Turn) { turn.Install(2, Install{Index: 40, Term: 6, File: "snapshot"}) })
	for range 2 {
		if got, want := shown(t, j.Shard(1)), "after 3/4 state 4 3 1 4/4  5/4  6/5  7/5 "; got != want {
			t.Errorf("shard 1: %q, want %q", got, want)
		}
		if got, want := shown(t, j.Shard(2)), "after 0/0 installs 40/6 snapshot 1/1  2/1  3/1 "; got != want {
			t.Errorf("shard 2: %q, want %q", got, want)
		}
		if got := shown(t, j.Shard(0)); got != "after 0/0" {
			t.Errorf("shard 0: %q", got)
		}
		if id, ok := j.Identity(); !ok || id != (Identity{[16]byte{7}, 3, true}) {
			t.Errorf("identity %v %v", id, ok)
		}
		must(t, store.Close())
		store, j = open(t, fs)
	}
	write(t, j, func(turn *Turn) { turn.Reset(2, 40, 6) })
	write(t, j, func(turn *Turn) { turn.Append(2, run(41, 41, 6, 0)) })
	if got, want := shown(t, j.Shard(2)), "after 40/6 41/6 "; got != want {
		t.Errorf("after the installation: %q, want %q", got, want)
	}
	must(t, store.Close())
}

func TestEntriesAreBoundedByTheirSizeWhereverTheyAreReadFrom(t *testing.T) {
	store, j := open(t, vfs.NewMem())
	defer store.Close()
	const size = 1 << 20
	for i := uint64(1); i <= 12; i++ { // of which the memory holds the last few
		write(t, j, func(turn *Turn) { turn.Append(1, run(i, i, 1, size)) })
	}
	s := j.Shard(1)
	if n := len(s.recent); n == 0 || n > recentBytes/size || s.recentBytes > recentBytes {
		t.Fatalf("%d entries of %d bytes are in memory", n, s.recentBytes)
	}
	one := uint64(len(entry(1, 1, size).GetData()) + entryOverhead)
	for lo := uint64(1); lo <= 12; lo++ {
		for _, c := range []struct{ max, want uint64 }{{0, 1}, {one - 1, 1}, {one, 1}, {2*one - 1, 1}, {2*one + 4, 2}, {1 << 40, 12}} {
			got, err := s.Entries(lo, 13, c.max)
			want := min(c.want, 13-lo)
			if err != nil || uint64(len(got)) != want || got[0].GetIndex() != lo {
				t.Errorf("from %d, %d bytes: %d entries, %v, want %d", lo, c.max, len(got), err, want)
			}
		}
	}
	if got := s.Kept(0); got != 12 {
		t.Errorf("nothing is kept from %d on", got)
	}
	record := uint64(len(encodeEntry(entry(12, 1, size))))
	for _, c := range []struct{ bytes, want uint64 }{{record - 1, 12}, {record, 11}, {record + 1, 11}, {1 << 40, 0}} {
		if got := s.Kept(c.bytes); got != c.want {
			t.Errorf("%d bytes are kept above %d, want %d", c.bytes, got, c.want)
		}
	}
}

func TestWhatIsOutsideOfALogIsRefused(t *testing.T) {
	store, j := open(t, vfs.NewMem())
	defer store.Close()
	write(t, j, func(turn *Turn) { turn.Append(1, run(1, 9, 1, 0)) })
	write(t, j, func(turn *Turn) { turn.Truncate(1, 4) })
	s := j.Shard(1)
	for _, c := range []struct {
		index uint64
		want  error
	}{{3, raft.ErrCompacted}, {4, nil}, {5, nil}, {9, nil}, {10, raft.ErrUnavailable}} {
		if _, err := s.Term(c.index); !errors.Is(err, c.want) {
			t.Errorf("term of %d: %v, want %v", c.index, err, c.want)
		}
	}
	for _, c := range []struct {
		lo, hi uint64
		want   error
	}{{4, 6, raft.ErrCompacted}, {5, 10, nil}, {5, 11, raft.ErrUnavailable}} {
		if _, err := s.Entries(c.lo, c.hi, 1<<20); !errors.Is(err, c.want) {
			t.Errorf("entries %d to %d: %v, want %v", c.lo, c.hi, err, c.want)
		}
	}
	for _, es := range [][]*pb.Entry{run(4, 4, 2, 0), run(11, 11, 2, 0), append(run(6, 6, 2, 0), run(8, 8, 2, 0)...)} {
		turn := j.Begin()
		turn.Append(1, es)
		if err := turn.Commit(); err == nil {
			t.Errorf("entries from %d on were appended", es[0].GetIndex())
		}
	}
	turn := j.Begin()
	turn.Truncate(1, 10)
	if err := turn.Commit(); err == nil {
		t.Error("more was cut off than there is")
	}
	if got := shown(t, s); got != "after 4/1 5/1  6/1  7/1  8/1  9/1 " {
		t.Errorf("refused writes left %q", got)
	}
}

func TestAJournalWithAHoleOrDamageDoesNotOpen(t *testing.T) {
	for name, spoil := range map[string]func(*kv.Batch){
		"missing":   func(b *kv.Batch) { b.Delete(entryKey(1, 5)) },
		"first":     func(b *kv.Batch) { b.Delete(entryKey(1, 1)) },
		"entry":     func(b *kv.Batch) { b.Set(entryKey(1, 5), []byte{9, 1, 1}) },
		"no term":   func(b *kv.Batch) { b.Set(entryKey(1, 5), []byte{1, 0, 0}) },
		"type":      func(b *kv.Batch) { b.Set(entryKey(1, 5), []byte{1, 1, 3}) },
		"empty":     func(b *kv.Batch) { b.Set(entryKey(1, 5), nil) },
		"state":     func(b *kv.Batch) { b.Set(shardKey(kindState, 1), []byte{1, 1}) },
		"truncated": func(b *kv.Batch) { b.Set(shardKey(kindTruncated, 1), []byte{1, 1, 1, 1}) },
		"install":   func(b *kv.Batch) { b.Set(shardKey(kindInstall, 1), nil) },
		"identity":  func(b *kv.Batch) { b.Set([]byte{kindIdentity}, []byte{1, 2}) },
	} {
		store, j := open(t, vfs.NewMem())
		write(t, j, func(turn *Turn) { turn.Append(1, run(1, 9, 1, 0)) })
		b := kv.NewBatch(store)
		spoil(b)
		must(t, b.Commit(true))
		if _, err := Open(store, 2); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, store.Close())
	}
}

// A random course of turns, cut off by a power loss: what a synced turn wrote is
// there, and the log is that of some turn at or after it.
func TestAPowerLossLeavesTheLogOfATurnNoEarlierThanTheLastSynced(t *testing.T) {
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 1))
		mem := vfs.NewCrashableMem()
		store, j := open(t, mem)
		all := func(j *Journal) (text string) {
			for i := range uint16(3) {
				text += shown(t, j.Shard(i)) + "; "
			}
			return text
		}
		states := []string{all(j)} // since the last synced turn
		term := uint64(1)
		for range 40 {
			turn := j.Begin()
			for shard := range uint16(3) {
				s := j.Shard(shard)
				switch rng.IntN(6) {
				case 0, 1:
					term += uint64(rng.IntN(2))
					from := s.last() + 1
					if rng.IntN(3) == 0 && len(s.sizes) > 0 {
						from -= uint64(rng.IntN(len(s.sizes)) + 1)
					}
					turn.Append(shard, run(from, from+uint64(rng.IntN(4)), term, []int{0, 100, 50_000}[rng.IntN(3)]))
				case 2:
					turn.Truncate(shard, s.truncated+uint64(rng.IntN(len(s.sizes)+1)))
				case 3:
					turn.SetState(shard, &pb.HardState{Term: new(max(s.state.GetTerm(), 1)), Vote: new(s.state.GetVote()), Commit: new(s.last())})
				case 4:
					if rng.IntN(6) == 0 {
						turn.Reset(shard, s.last()+5, term)
					}
				}
			}
			synced := turn.sync
			must(t, turn.Commit())
			if synced {
				states = nil
			}
			states = append(states, all(j))
		}
		left, again := open(t, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(seed%3) * 50, RNG: rng}))
		got := all(again)
		found := false
		for _, s := range states {
			found = found || s == got
		}
		if !found {
			t.Errorf("seed %d: the log is %q, want one of the last %d: %q", seed, got, len(states), states)
		}
		must(t, errors.Join(left.Close(), store.Close()))
	}
}

func TestATurnThatCannotBeWrittenChangesNothingInMemoryAndStopsTheJournal(t *testing.T) {
	var full atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("no room")
		}
		return nil
	}))
	store, j := open(t, fs)
	write(t, j, func(turn *Turn) { turn.Append(1, run(1, 2, 1, 0)) })
	before := shown(t, j.Shard(1))
	full.Store(true)
	for range 2 {
		turn := j.Begin()
		turn.Append(1, run(3, 3, 1, 0))
		if err := turn.Commit(); !errors.Is(err, kv.ErrFailed) || !errors.Is(j.Err(), kv.ErrFailed) {
			t.Errorf("got %v, and the journal says %v", err, j.Err())
		}
	}
	if last, _ := j.Shard(1).LastIndex(); last != 2 {
		t.Errorf("%q became an end at %d", before, last)
	}
	store.Close()
}
