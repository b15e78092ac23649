package replica

import (
	"reflect"
	"slices"
	"testing"

	"github.com/keyload/keyload/internal/machine"
)

func newPoints(voters ...uint64) *points {
	p := &points{warn: func(uint64, point) {}}
	p.begin(&machine.Applied{Index: 1, Voters: voters}, machine.Head{})
	return p
}

func (p *points) at(index uint64, voters ...uint64) *point {
	if voters == nil {
		voters = p.voters
	}
	return p.reached(&machine.Applied{Index: index, Voters: voters}, machine.Head{Position: index * 10, Digest: index * 100})
}

func TestAReplicaIsWrongWhenMostVotersSaySoOfOneEntry(t *testing.T) {
	wrong := point{5, 50, 7}
	for _, c := range []struct {
		name   string
		voters []uint64
		say    []uint64 // who says something else of entry 5
		want   bool
	}{
		{"one of three", []uint64{1, 2, 3}, []uint64{2}, false},
		{"one of three, again and again", []uint64{1, 2, 3}, []uint64{2, 2, 2}, false},
		{"two of three", []uint64{1, 2, 3}, []uint64{2, 3}, true},
		{"two of four", []uint64{1, 2, 3, 4}, []uint64{2, 3}, false},
		{"three of four", []uint64{1, 2, 3, 4}, []uint64{2, 3, 4}, true},
		{"two of five", []uint64{1, 2, 3, 4, 5}, []uint64{2, 3}, false},
		{"three of five", []uint64{1, 2, 3, 4, 5}, []uint64{2, 3, 5}, true},
		{"the other of two", []uint64{1, 2}, []uint64{2}, false},
		{"the only voter, of a learner", []uint64{2}, []uint64{2}, true},
		{"learners", []uint64{1, 2, 3}, []uint64{2, 8, 9}, false},
	} {
		early, late := newPoints(c.voters...), newPoints(c.voters...)
		for i := uint64(2); i <= 6; i++ { // it has reached the entry when it hears of it
			early.at(i)
		}
		var got *point
		for _, node := range c.say {
			got = early.told(node, []point{wrong})
		}
		if (got != nil) != c.want || got != nil && *got != (point{5, 50, 500}) {
			t.Errorf("%s: %+v", c.name, got)
		}
		got = nil
		for _, node := range c.say { // it has not
			if early := late.told(node, []point{{4, 40, 400}, wrong, {9, 90, 900}}); early != nil {
				t.Errorf("%s: it was found wrong before it was there", c.name)
			}
		}
		for i := uint64(2); i <= 6; i++ {
			if w := late.at(i); w != nil {
				got = w
			}
		}
		if (got != nil) != c.want || got != nil && *got != (point{5, 50, 500}) {
			t.Errorf("%s, told before: %+v", c.name, got)
		}
	}
}

func TestDifferencesOfDifferentEntriesDoNotAddUp(t *testing.T) {
	p := newPoints(1, 2, 3)
	for i := uint64(2); i <= 6; i++ {
		p.at(i)
	}
	if p.told(2, []point{{4, 40, 1}}) != nil || p.told(3, []point{{5, 50, 1}}) != nil {
		t.Error("two voices on two entries are no majority")
	}
	if p.told(3, []point{{4, 40, 400}}) != nil {
		t.Error("an agreement counts as a difference")
	}
}

func TestWhatIsTooOldOrTooFarAheadIsNotCompared(t *testing.T) {
	p := newPoints(1, 2, 3)
	for i := uint64(2); i <= pointsKept+5; i++ {
		p.at(i)
	}
	for _, node := range []uint64{2, 3} {
		if p.told(node, []point{{5, 50, 1}, {0, 0, 1}}) != nil {
			t.Error("an entry whose digest is forgotten was compared")
		}
	}
	for _, node := range []uint64{2, 3} {
		if p.told(node, []point{{6, 60, 1}}) == nil != (node == 2) {
			t.Error("the oldest one that is kept was not")
		}
	}
	p = newPoints(1, 2, 3)
	for i := range uint64(100) {
		p.told(2, []point{{1000 + i, 1, 1}})
	}
	if n := len(p.ahead[2]); n != pointsAhead {
		t.Errorf("%d points of a node that is ahead are remembered", n)
	}
}

func TestAllReplicasTellOfTheSameEntries(t *testing.T) {
	indexes := func(last uint64) (out []uint64) {
		p := newPoints(1, 2, 3)
		for i := uint64(2); i <= last; i++ {
			p.at(i)
		}
		for _, s := range p.tell() {
			out = append(out, s.index)
		}
		return out
	}
	for _, c := range []struct {
		last uint64
		want []uint64
	}{
		{1, []uint64{1}},
		{255, []uint64{255}},
		{256, []uint64{256}},
		{257, []uint64{256, 257}},
		{600, []uint64{256, 512, 600}},
		{256 * 10, []uint64{768, 1024, 1280, 1536, 1792, 2048, 2304, 2560}},
		{256*10 + 1, []uint64{768, 1024, 1280, 1536, 1792, 2048, 2304, 2560, 2561}},
	} {
		got := indexes(c.last)
		if !slices.Equal(got, c.want) {
			t.Errorf("at %d: %v, want %v", c.last, got, c.want)
		}
	}
	p := newPoints(1, 2, 3)
	for i := uint64(2); i <= 3000; i++ {
		p.at(i)
	}
	b := encodePoints(p.tell())
	if back, err := decodePoints(b[1:]); err != nil || !reflect.DeepEqual(back, p.tell()) {
		t.Errorf("%v, %v", back, err)
	}
	for _, n := range []int{1, 23, 25, 24 * (pointsTold + 2)} {
		if _, err := decodePoints(make([]byte, n)); err == nil {
			t.Errorf("%d bytes were taken for points", n)
		}
	}
}
