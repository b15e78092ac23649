package bench

import (
	"math/bits"
	"time"
)

// histogram counts durations in steps of a thirty-second part: any number of
// them takes the same memory, and a quantile is off by less than two percent.
type histogram struct {
	counts [histogramSlots]uint32
	total  uint64
	max    time.Duration
}

const (
	// slotBits is the number of slots of one power of two, as a power of two.
	slotBits = 5
	// longest is the power of two, in nanoseconds, above which durations are
	// counted as that: eighteen minutes.
	longest        = 40
	histogramSlots = (longest - slotBits + 1) << slotBits
)

// slot is where a duration is counted.
func slot(d time.Duration) int {
	v := uint64(max(d, 0))
	if v >= 1<<longest {
		return histogramSlots - 1
	}
	if v < 1<<slotBits {
		return int(v)
	}
	power := bits.Len64(v) - slotBits - 1
	return power<<slotBits + int(v>>power)
}

// middle is the duration in the middle of a slot.
func middle(slot int) time.Duration {
	if slot < 2<<slotBits {
		return time.Duration(slot)
	}
	power := slot>>slotBits - 1
	lead := slot&(1<<slotBits-1) + 1<<slotBits
	return time.Duration(lead<<power + 1<<power>>1)
}

func (h *histogram) add(d time.Duration) {
	h.counts[slot(d)]++
	h.total++
	h.max = max(h.max, d)
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.max = max(h.max, o.max)
}

// quantile is the duration that the share q of all durations does not exceed;
// 0 when there are none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.total))
	seen := uint64(0)
	for i, n := range h.counts {
		seen += uint64(n)
		if n > 0 && (seen > rank || seen == h.total) {
			return min(middle(i), h.max)
		}
	}
	return 0
}

// step is one kind of call of a cycle.
type step int

const (
	stepCycle step = iota // all calls of a cycle together
	stepPublish
	stepEnqueue
	stepReceive
	stepComplete
	steps
)

var stepNames = [steps]string{"cycle", "publish", "enqueue", "receive", "complete"}

// tally is what clients saw happen, to be compared with the store's counters.
type tally struct {
	published, enqueued, received, completed int64
	claimed, finished                        int64 // of groups
}

func (t *tally) add(o tally) {
	t.published += o.published
	t.enqueued += o.enqueued
	t.received += o.received
	t.completed += o.completed
	t.claimed += o.claimed
	t.finished += o.finished
}

// recorder is what one client keeps of its work.
type recorder struct {
	tally
	latency [steps]histogram
}

func (r *recorder) merge(o *recorder) {
	r.tally.add(o.tally)
	for i := range r.latency {
		r.latency[i].merge(&o.latency[i])
	}
}

// since records a step that began at t, and returns the time.
func (r *recorder) since(s step, t time.Time) time.Time {
	now := time.Now()
	r.latency[s].add(now.Sub(t))
	return now
}
