package demo

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func TestEveryProcessOfARunDerivesTheSameIDs(t *testing.T) {
	d := identity{seed: 7, started: time.Now().UnixMilli()}
	seen := map[string]bool{}
	for _, kind := range []string{"feed", "configure", "group", "totals"} {
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
	ids := make([]string, 60)
	for i := range ids {
		ids[i] = fmt.Sprint("delivery ", i)
	}
	mix := trouble{crashes: 4, late: 6, long: 2, failOnce: 12, failTwice: 5}
	deal := func(seed uint64, place string) (n [6]int, order map[string]fate) {
		order = identity{seed: seed}.fates(place, ids, mix)
		for _, f := range order {
			switch {
			case f.crash:
				n[0]++
			case f.late:
				n[1]++
			case f.long:
				n[2]++
			default:
				n[3+f.failures]++
			}
			if f.work < 0 || f.work >= longestWork {
				t.Errorf("work takes %v", f.work)
			}
		}
		return n, order
	}
	n, one := deal(1, "a")
	if want := [6]int{4, 6, 2, 60 - 29, 12, 5}; n != want {
		t.Errorf("dealt %v, want %v", n, want)
	}
	_, same := deal(1, "a")
	_, two := deal(2, "a")
	_, elsewhere := deal(1, "b")
	differ, apart := 0, 0
	for id, f := range one {
		if same[id] != f {
			t.Errorf("%s has two fates under one seed", id)
		}
		if two[id] != f {
			differ++
		}
		if elsewhere[id] != f {
			apart++
		}
	}
	if differ == 0 || apart == 0 {
		t.Error("another seed or another place deals the same fates")
	}
}

func TestEveryPlaceHasMoreDeliveriesThanTrouble(t *testing.T) {
	input, err := readInput()
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]int{"notify": messages(input)}
	mixes := map[string]trouble{"notify": noticeTrouble}
	for i := range groups {
		g := &groups[i]
		places[g.name], mixes[g.name] = len(g.work(input)), g.trouble
	}
	if want := map[string]int{"notify": 78, "audit": 329, "reviews": 41}; !maps.Equal(places, want) {
		t.Errorf("deliveries by place: %v, want %v", places, want)
	}
	for name, m := range mixes {
		if sum := m.crashes + m.late + m.long + m.failOnce + m.failTwice; sum >= places[name] || m.crashes == 0 || m.failOnce == 0 {
			t.Errorf("%s: %+v among %d deliveries", name, m, places[name])
		}
	}
}

func TestEveryMomentIsSureToComeAndBothPhasesAreHit(t *testing.T) {
	input, err := readInput()
	if err != nil {
		t.Fatal(err)
	}
	total := messages(input)
	reviews := groups[1].work(input)
	// Whatever is fed after the last moment of the feeding keeps the child busy.
	if at := int(reviews[40].position); at > len(input)*9/10 {
		t.Fatalf("the last event for the reviews is number %d", at)
	}
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
			case i == 2 && (m.phase != feeding || m.group != "reviews" || m.after < int(reviews[0].position) ||
				m.after >= int(reviews[20].position) || m.last != int(reviews[40].position)):
				t.Fatalf("the third kill comes at %+v", m)
			case i != 2 && m.group != "":
				t.Fatalf("kill %d waits for group %s", i+1, m.group)
			case i != 2 && m.phase == feeding && (m.after < len(input)/10 || m.after >= len(input)/2):
				t.Fatalf("kill %d after %d deliveries", i+1, m.after)
			case m.phase == feeding && (m.last < m.after || m.last > len(input)*9/10):
				t.Fatalf("kill %d after %d deliveries, at %d in any case", i+1, m.after, m.last)
			case m.phase == processing && (m.after < 1 || m.after > m.last || m.last > left-workers):
				t.Fatalf("kill %d after %d messages, at %d in any case, %d are left for sure", i+1, m.after, m.last, left)
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

func TestAKillWaitsForAGapAndNotForever(t *testing.T) {
	gap := window{Runs: 1, Leased: 1}
	for _, c := range []struct {
		phase         phase
		group         string
		fed, finished int
		audit         window
		want          bool
	}{
		{feeding, "", 9, 99, gap, false},
		{feeding, "", 10, 0, gap, true},
		{feeding, "audit", 10, 0, gap, true},
		{feeding, "reviews", 10, 0, gap, false},
		{feeding, "", 10, 0, window{Runs: 1}, false},
		{feeding, "", 10, 0, window{Leased: 1}, false},
		{feeding, "reviews", 19, 99, gap, false},
		{feeding, "reviews", 20, 0, gap, true},
		{feeding, "", 20, 0, window{}, true},
		{processing, "", 99, 9, gap, false},
		{processing, "", 0, 10, gap, true},
		{processing, "", 99, 19, window{}, false},
		{processing, "", 0, 20, window{}, true},
	} {
		now := &tally{fed: c.fed, finished: c.finished, windows: map[string]window{"audit": c.audit, "reviews": {}}}
		if got := (moment{phase: c.phase, group: c.group, after: 10, last: 20}).reached(now); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// A slow machine opens the store after the leases of the dead have ended.
func TestAKillThatLeftAGapCountsHoweverLateItsSuccessorLooks(t *testing.T) {
	for _, c := range []struct {
		left window
		want int
	}{
		{window{Checkpoint: 3, Issued: 6, Tail: 9, Runs: 1, Leased: 1}, 1},
		{window{Checkpoint: 3, Issued: 6, Tail: 9, Runs: 1, Waiting: 1}, 1},
		{window{Checkpoint: 3, Issued: 4, Tail: 9, Leased: 1}, 0},
	} {
		r := &run{show: newProgress(Options{Plain: true, Out: t.Output()}, 9, 1), summary: Summary{Kills: 1}}
		r.leftBehind(map[string]window{groups[0].name: {}, groups[1].name: c.left})
		if got := r.summary.KillsInGaps; got != c.want {
			t.Errorf("%+v: %d", c.left, got)
		}
	}
}
