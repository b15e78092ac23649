package solo

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/internal/kv"
)

// stages notes when each stage was reached first, and how often each was.
type stages struct {
	mu    sync.Mutex
	order []string
	count map[string]int
}

func (s *stages) reach(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[name]++; s.count[name] == 1 {
		s.order = append(s.order, name)
	}
}

func (s *stages) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order, s.count = nil, map[string]int{}
}

// before says that one stage was reached before another.
func (s *stages) before(a, b string) bool {
	return slices.Index(s.order, a) < slices.Index(s.order, b)
}

func TestAnEntryReachesEveryStageAndNobodyIsAnsweredBeforeItsLogIsSynced(t *testing.T) {
	fs := &gate{FS: vfs.NewMem()}
	b := newBed(t, fs)
	b.close()
	var s stages
	s.reset()
	b.stage = s.reach
	b.open()
	s.reset()
	b.answered(b.submit(b.put(1)))
	b.close() // which waits until the answer's stage was told too
	want := kv.Stages()
	if got := slices.Sorted(maps.Keys(s.count)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Fatalf("the stages reached are %q", got)
	}
	for _, pair := range [][2]string{
		{kv.StageEncoded, kv.StageEvaluated}, {kv.StageEvaluated, kv.StageBuilt}, {kv.StageBuilt, kv.StageApplied},
		{kv.StageBuilt, kv.StageWritten}, {kv.StageWritten, kv.StageSynced}, {kv.StageSynced, kv.StageReplied}, {kv.StageApplied, kv.StageReplied},
	} {
		if !s.before(pair[0], pair[1]) {
			t.Errorf("%q comes after %q: %q", pair[0], pair[1], s.order)
		}
	}
}

func TestEveryCommandOfAnEntryHasAReplyOfItsOwn(t *testing.T) {
	fs := &gate{FS: vfs.NewMem()}
	b := newBed(t, fs)
	b.close()
	var s stages
	s.reset()
	b.stage = s.reach
	b.open()
	first, second, release := b.busy(fs)
	rest := make([]chan result, 10)
	for i := range rest {
		rest[i] = b.submit(b.put(i))
	}
	release()
	b.answered(first, second)
	b.answered(rest...)
	b.close()
	if s.count[kv.StageReplied] != 12 || s.count[kv.StageEncoded] != 3 {
		t.Errorf("%d replies and %d entries, want 12 and 3", s.count[kv.StageReplied], s.count[kv.StageEncoded])
	}
}
