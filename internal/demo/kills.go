package demo

import (
	"math/rand/v2"
	"time"
)

// phase is what the child is at when it is killed.
type phase string

const (
	feeding    phase = "feeding"
	processing phase = "processing"
)

// moment is when one life of the child ends: a short while after the reports of
// a phase reach a number and a group has a gap, that is, finished something above
// what it has not, while a worker holds a lease.
type moment struct {
	phase phase
	group string // whose gap; empty for any group's
	after int    // deliveries fed in this life, or messages finished in it
	last  int    // as after, and a gap is not waited for any more
	delay time.Duration
}

// longestDelay bounds how long after its report a kill comes. It is long enough
// to hit any step of a command and too short to miss the phase.
const longestDelay = 10 * time.Millisecond

// killer picks the moments of a run from its seed.
type killer struct {
	random  *rand.Rand
	workers int
	input   []delivery
	made    int
}

func newKiller(seed uint64, workers int, input []delivery) *killer {
	return &killer{random: rand.New(rand.NewPCG(seed, 0)), workers: workers, input: input}
}

// next picks the moment of the next kill. The first is during the feeding, the
// second during the processing and the third while the filtered group gets what
// it reads; later ones are either of the first two. It only picks moments that
// are sure to come: finished is how many messages are known to be finished, and
// as many as there are workers may be finished without being known.
func (k *killer) next(finished int) moment {
	k.made++
	delay := time.Duration(k.random.Int64N(int64(longestDelay)))
	left := messages(k.input) - finished - 2*k.workers
	switch {
	case k.made == 3:
		g := &groups[len(groups)-1]
		work := g.work(k.input)
		at := func(i int) int { return int(work[i].position) }
		return moment{feeding, g.name, at(k.random.IntN(len(work) / 2)), at(len(work) - 1), delay}
	case left > 0 && (k.made == 2 || k.made > 3 && k.random.IntN(2) == 1):
		return moment{processing, "", 1 + k.random.IntN((left+1)/2), left, delay}
	}
	n := len(k.input)
	return moment{feeding, "", n/10 + k.random.IntN(n*4/10), n * 3 / 4, delay}
}

// reached says that the kill is due, after what this life has reported.
func (m moment) reached(now *tally) bool {
	n := now.finished
	if m.phase == feeding {
		n = now.fed
	}
	return n >= m.last || n >= m.after && now.gap(m.group)
}
