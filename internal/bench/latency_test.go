package bench

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestASlotHoldsItsMiddleAndSlotsRiseWithDurations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, 1<<longest-1).Draw(t, "duration"))
		s := slot(d)
		if s < 0 || s >= histogramSlots {
			t.Fatalf("%d has slot %d of %d", d, s, histogramSlots)
		}
		if got := slot(middle(s)); got != s {
			t.Fatalf("the middle of slot %d is %d, which has slot %d", s, middle(s), got)
		}
		if off := max(middle(s)-d, d-middle(s)); off*50 > d {
			t.Fatalf("%d is counted as %d", d, middle(s))
		}
		if slot(d+1) < s {
			t.Fatalf("%d has slot %d and %d slot %d", d, s, d+1, slot(d+1))
		}
	})
}

func TestDurationsOutsideTheRangeAreCountedAtItsEnds(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want int
	}{
		{-1, 0}, {0, 0}, {1, 1},
		{1<<longest - 1, histogramSlots - 1}, {1 << longest, histogramSlots - 1}, {1<<63 - 1, histogramSlots - 1},
	} {
		if got := slot(c.d); got != c.want {
			t.Errorf("%d has slot %d, want %d", c.d, got, c.want)
		}
	}
}

func TestAQuantileIsThatOfTheSortedDurations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		durations := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Minute)), 1, 200).Draw(t, "durations")
		var halves [2]histogram
		for i, d := range durations {
			halves[i%2].add(time.Duration(d))
		}
		h := halves[0]
		h.merge(&halves[1])
		slices.Sort(durations)
		for _, q := range []float64{0, 0.5, 0.99, 1} {
			want := durations[min(int(q*float64(len(durations))), len(durations)-1)]
			got := int64(h.quantile(q))
			if off := max(got-want, want-got); off*50 > want {
				t.Fatalf("quantile %v of %v is %d, want %d", q, durations, got, want)
			}
		}
		if int64(h.max) != durations[len(durations)-1] {
			t.Fatalf("the longest of %v is %d", durations, h.max)
		}
	})
}

func TestNoDurationsHaveNoQuantile(t *testing.T) {
	if got := new(histogram).quantile(0.5); got != 0 {
		t.Errorf("got %v", got)
	}
}
