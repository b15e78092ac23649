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
// a phase reach a number.
type moment struct {
	phase phase
	after int // deliveries fed in this life, or messages finished in it
	delay time.Duration
}

// longestDelay bounds how long after its report a kill comes. It is long enough
// to hit any step of a command and too short to miss the phase.
const longestDelay = 10 * time.Millisecond

// killer picks the moments of a run from its seed.
type killer struct {
	random   *rand.Rand
	workers  int
	messages int
	input    int
	made     int
}

func newKiller(seed uint64, workers int, input []delivery) *killer {
	return &killer{random: rand.New(rand.NewPCG(seed, 0)), workers: workers, messages: messages(input), input: len(input)}
}

// next picks the moment of the next kill. The first is during the feeding and
// the second during the processing; later ones are either. It only picks moments
// that are sure to come: finished is how many messages are known to be finished,
// and as many as there are workers may be finished without being known.
func (k *killer) next(finished int) moment {
	wanted := feeding
	if k.made == 1 || k.made > 1 && k.random.IntN(2) == 1 {
		wanted = processing
	}
	k.made++
	delay := time.Duration(k.random.Int64N(int64(longestDelay)))
	left := k.messages - finished - 2*k.workers
	if wanted == processing && left > 0 {
		return moment{processing, 1 + k.random.IntN((left+1)/2), delay}
	}
	return moment{feeding, k.input/10 + k.random.IntN(k.input*4/10), delay}
}

// reached says that the kill is due, after what this life has reported.
func (m moment) reached(fed, finished int) bool {
	if m.phase == feeding {
		return fed >= m.after
	}
	return finished >= m.after
}
