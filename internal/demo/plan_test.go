package demo

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func TestEveryProcessOfARunDerivesTheSameIDs(t *testing.T) {
	d := identity{seed: 7, started: time.Now().UnixMilli()}
	seen := map[string]bool{}
	for _, kind := range []string{"feed", "configure", "totals"} {
		for i := range 400 {
			id := d.commandID(kind, i)
			if id != (identity{d.seed, d.started}).commandID(kind, i) {
				t.Fatalf("%s %d has two ids", kind, i)
			}
			if seen[id] {
				t.Fatalf("%s %d has the id of another command", kind, i)
			}
			seen[id] = true
			u, err := uuid.Parse(id)
			if err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 {
				t.Fatalf("%s: version %d, variant %v, %v", id, u.Version(), u.Variant(), err)
			}
			if s, n := u.Time().UnixTime(); s*1000+n/1_000_000 != d.started {
				t.Fatalf("%s was made at %d s %d ns, the run began at %d ms", id, s, n, d.started)
			}
		}
	}
	for _, other := range []identity{{8, d.started}, {7, d.started + 1}} {
		if id := other.commandID("feed", 0); seen[id] {
			t.Errorf("another run has the id %s too", id)
		}
	}
}

func TestTheFatesAreDealtInFullAndBySeed(t *testing.T) {
	input, err := readInput()
	if err != nil {
		t.Fatal(err)
	}
	deal := func(seed uint64) (n [5]int, order map[string]fate) {
		order = identity{seed: seed}.fates(input)
		for _, f := range order {
			switch {
			case f.crash:
				n[0]++
			case f.late:
				n[1]++
			default:
				n[2+f.failures]++
			}
			if f.work < 0 || f.work >= longestWork {
				t.Errorf("work takes %v", f.work)
			}
		}
		return n, order
	}
	n, one := deal(1)
	if want := [5]int{crashes, latecomers, 78 - crashes - latecomers - failOnce - failTwice, failOnce, failTwice}; n != want {
		t.Errorf("dealt %v, want %v", n, want)
	}
	_, same := deal(1)
	_, two := deal(2)
	differ := 0
	for id, f := range one {
		if same[id] != f {
			t.Errorf("%s has two fates under one seed", id)
		}
		if two[id] != f {
			differ++
		}
	}
	if differ == 0 {
		t.Error("another seed deals the same fates")
	}
}

func TestEveryMomentIsSureToComeAndBothPhasesAreHit(t *testing.T) {
	input, err := readInput()
	if err != nil {
		t.Fatal(err)
	}
	total := messages(input)
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, maxWorkers).Draw(t, "workers")
		k := newKiller(rapid.Uint64().Draw(t, "seed"), workers, input)
		kills := rapid.IntRange(1, maxKills).Draw(t, "kills")
		finished := 0
		for i := range kills {
			m := k.next(finished)
			if m.delay < 0 || m.delay >= longestDelay {
				t.Fatalf("delay %v", m.delay)
			}
			// What is unfinished for sure: every worker may have finished one more
			// than it could report.
			left := total - finished - workers
			switch {
			case i == 0 && m.phase != feeding, i == 1 && m.phase != processing:
				t.Fatalf("kill %d comes while %s", i+1, m.phase)
			case m.phase == feeding && (m.after < len(input)/10 || m.after >= len(input)/2):
				t.Fatalf("kill %d after %d deliveries", i+1, m.after)
			case m.phase == processing && (m.after < 1 || m.after > left-workers):
				t.Fatalf("kill %d after %d messages, %d are left for sure", i+1, m.after, left)
			}
			// The first life has enqueued at most the messages of half the input when
			// it is killed; later ones may find any number to finish.
			most := total
			if i == 0 {
				most = messages(input[:len(input)/2])
			}
			finished = rapid.IntRange(finished, most).Draw(t, "finished")
		}
	})
}
