package group

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
)

func (p *pair) manage(t *rapid.T) {
	s := p.side(t)
	ref, w := p.b.ref(s.name), s.w
	position := rapid.Uint64Range(1, p.src.tail()+2).Draw(t, "position")
	generation := w.generation
	if rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
		generation++
	}
	fresh := func(refused string) string {
		if generation != w.generation {
			return "RevisionConflict/group_generation"
		}
		return refused
	}
	switch rapid.SampledFrom([]string{"skip", "pause", "resume", "resume", "seek", "delete"}).Draw(t, "verb") {
	case "skip":
		_, err := call(p.b, api.SubscriptionsSkip, &api.SubscriptionsSkipRequest{CommandID: p.b.id(), Group: ref, ExpectedGeneration: generation, Position: position, Reason: "r"})
		if want := fresh(""); want != "" {
			agree(t, "skip", err, want)
			return
		}
		agree(t, "skip", err, w.skip(position))
	case "pause":
		r, err := call(p.b, api.SubscriptionsPause, &api.SubscriptionsPauseRequest{CommandID: p.b.id(), Group: ref, ExpectedGeneration: generation})
		if agree(t, "pause", err, fresh("")); err == nil {
			if r.Changed == w.paused {
				t.Fatalf("paused, changed %t", r.Changed)
			}
			w.paused = true
		}
	case "resume":
		r, err := call(p.b, api.SubscriptionsResume, &api.SubscriptionsResumeRequest{CommandID: p.b.id(), Group: ref, ExpectedGeneration: generation})
		if agree(t, "resume", err, fresh("")); err == nil {
			if r.Changed != w.paused {
				t.Fatalf("resumed, changed %t", r.Changed)
			}
			w.paused, w.failed = false, 0
		}
	case "seek":
		before := w.checkpoint
		r, err := call(p.b, api.SubscriptionsSeek, &api.SubscriptionsSeekRequest{CommandID: p.b.id(), Group: ref, ExpectedGeneration: generation, To: api.SeekPosition, Position: position})
		if want := fresh(""); want != "" {
			agree(t, "seek", err, want)
			return
		}
		if agree(t, "seek", err, w.seek(position)); err == nil && (r.Before != before || r.Skipped-r.Again != int64(w.checkpoint)-int64(before)) {
			t.Fatalf("seek from %d to %d: %+v", before, w.checkpoint, r)
		}
	case "delete": // with a checkpoint that is not the group's
		agree(t, "delete", p.b.delete(s.name, w.checkpoint+1), "RevisionConflict/checkpoint")
	}
}

func (p *pair) update(t *rapid.T) {
	s := p.side(t)
	w, d := s.w, drawDefinition(t)
	if rapid.IntRange(0, 4).Draw(t, "identical") == 0 {
		d = s.def
	}
	same := fmt.Sprint(d) == fmt.Sprint(s.def)
	want, again, below := "", len(w.ends), w.passed
	if !w.paused {
		want = "Conflict/not_paused"
	}
	r, err := p.b.configure(s.name, d, w.generation)
	if agree(t, "update", err, want); err != nil {
		return
	}
	if !same {
		w.moved(w.checkpoint)
		s.def, w.policy, w.types = d, d.Policy, d.Filter.EventTypes
	} else {
		again, below = 0, 0
	}
	if r.Changed == same || r.EvaluatedAgain != int64(again) || r.SkippedBelow != int64(below) || r.State.Generation != w.generation {
		t.Fatalf("update: changed %t, %d again, %d below; want %t, %d, %d", r.Changed, r.EvaluatedAgain, r.SkippedBelow, !same, again, below)
	}
}

func (p *pair) deadLetter(t *rapid.T) {
	s := p.side(t)
	candidates := slices.Sorted(maps.Keys(s.w.dead))
	for _, x := range s.w.in(api.PositionHeld) {
		candidates = append(candidates, x.position)
	}
	if len(candidates) == 0 {
		t.Skip("nothing waits for a person")
	}
	if rapid.IntRange(0, 9).Draw(t, "any") == 0 {
		candidates = []uint64{rapid.Uint64Range(1, p.src.tail()+1).Draw(t, "which")}
	}
	position, version := rapid.SampledFrom(candidates).Draw(t, "position"), uint64(0)
	if r := s.w.dead[position]; r != nil {
		version = rapid.SampledFrom([]uint64{0, r.version, r.version + 1}).Draw(t, "version")
	}
	if rapid.IntRange(0, 3).Draw(t, "discard") == 0 {
		_, err := call(p.b, api.SubscriptionsDeadLettersDiscard, &api.SubscriptionsDeadLettersDiscardRequest{CommandID: p.b.id(), Group: p.b.ref(s.name), Position: position, ExpectedVersion: version})
		agree(t, "discard", err, s.w.discard(position, version))
		return
	}
	_, err := call(p.b, api.SubscriptionsDeadLettersRedrive, &api.SubscriptionsDeadLettersRedriveRequest{CommandID: p.b.id(), Group: p.b.ref(s.name), Position: position, ExpectedVersion: version})
	agree(t, "redrive", err, s.w.redrive(position, version))
}

func (p *pair) purge(t *rapid.T) {
	through := rapid.Uint64Range(1, p.src.tail()+1).Draw(t, "through")
	lowest := min(p.groups["g"].w.checkpoint, p.groups["h"].w.checkpoint)
	want := ""
	switch {
	case through > p.src.tail():
		want = "Validation/invalid_field"
	case through > p.src.cut && through > lowest:
		want = "ResourceExhausted/retention_pin"
	}
	if agree(t, "purge", p.b.purge(through), want); want == "" {
		p.src.cut = max(p.src.cut, through)
	}
}

// compare looks at everything both sides know.
func (p *pair) compare(t *rapid.T) {
	for _, name := range []string{"g", "h"} {
		s := p.groups[name]
		got, want := p.shown(s), s.expected()
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: %s\n  want %s", name, got[i], want[i])
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%s shows %v, want %v", name, got, want)
		}
	}
	p.b.check()
}

// shown is what a group tells of itself, line by line.
func (p *pair) shown(s *side) (out []string) {
	r := p.b.statusOf(s.name)
	out = append(out, fmt.Sprint("state ", r.State, " lag ", r.Lag, " ahead ", r.CompletedAhead),
		fmt.Sprint("counts ", r.Counts.Ready, r.Counts.Leased, r.Counts.Waiting, r.Counts.Blocked, r.Counts.Held, r.Counts.Matched, r.Counts.Runs, r.Counts.DeadLetters),
		fmt.Sprint("totals ", r.Totals))
	switch {
	case r.Reason == "": // it may be said too early that something is due, never too late
		out = append(out, "reason "+s.reason())
	case r.Reason != api.ReasonPaused && s.w.may():
		out = append(out, fmt.Sprintf("nothing can be claimed (%s) and something can", r.Reason))
	default:
		out = append(out, "reason "+string(r.Reason))
	}
	out = append(out, fmt.Sprint("next ", int64(r.NextDueAt)))
	for i := range r.Window {
		x := &r.Window[i]
		if x.State == api.PositionFinished {
			out = append(out, fmt.Sprint("run ", x.From, x.To, x.Matched))
			continue
		}
		out = append(out, fmt.Sprint("row ", x.From, " ", x.State, x.Attempts, x.Failures, x.LeaseLosses, int64(x.LeaseUntil), int64(x.NotBefore), x.LastFailure, x.SessionID))
	}
	dead, err := ask(p.b, api.SubscriptionsDeadLettersList, &api.SubscriptionsDeadLettersListRequest{Group: p.b.ref(s.name), WithoutEvents: true})
	p.b.must(err)
	for _, x := range dead.DeadLetters {
		out = append(out, fmt.Sprint("dead ", x.Position, " ", x.State, x.Version, x.Attempts, x.Failures, x.LeaseLosses, x.Redrives, x.LastFailure))
	}
	return out
}

func (s *side) reason() string {
	if s.w.paused {
		return string(api.ReasonPaused)
	}
	return string(s.w.why())
}

// expected is the same of the twin.
func (s *side) expected() (out []string) {
	w := s.w
	state := api.GroupState{
		Generation: w.generation, OwnershipEpoch: w.generation, Checkpoint: w.checkpoint, Issued: w.issued, Tail: w.src.tail(), Paused: w.paused, FailedPosition: w.failed,
	}
	if w.failed != 0 {
		state.FailureCode = failedAttempts
	}
	var lines []string
	runs := 0
	for p := w.checkpoint + 1; p <= w.issued; p++ {
		if r := w.rows[p]; r != nil {
			lines = append(lines, fmt.Sprint("row ", p, " ", r.state, r.attempts, r.failures, r.losses, r.until, r.notBefore, r.failure, r.session))
			continue
		}
		from, matched := p, 0
		for {
			m, finished := w.ends[p]
			if !finished {
				break
			}
			if p++; m {
				matched++
			}
		}
		p--
		runs++
		lines = append(lines, fmt.Sprint("run ", from, p, matched))
	}
	out = append(out, fmt.Sprint("state ", state, " lag ", w.src.tail()-w.checkpoint, " ahead ", len(w.ends)),
		fmt.Sprint("counts ", len(w.in(api.PositionReady)), len(w.in(api.PositionLeased)), len(w.in(api.PositionWaiting)), w.count(api.PositionBlocked), w.count(api.PositionHeld), w.matched(), runs, len(w.dead)),
		fmt.Sprint("totals ", w.totals), "reason "+s.reason(), fmt.Sprint("next ", w.nextDue()))
	out = append(out, lines...)
	for _, p := range slices.Sorted(maps.Keys(w.dead)) {
		r := w.dead[p]
		out = append(out, fmt.Sprint("dead ", p, " ", r.state, r.version, r.attempts, r.failures, r.losses, r.redrives, r.failure))
	}
	return out
}

func TestAGroupBehavesAsItsTwinUnderAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		defer p.b.close()
		t.Repeat(map[string]func(*rapid.T){
			"":          p.compare,
			"publish":   p.publish,
			"receive":   p.receive,
			"receive2":  p.receive,
			"receive3":  p.receive,
			"repeat":    p.repeat,
			"complete":  p.complete,
			"complete2": p.complete,
			"process":   p.process,
			"manage":    p.manage,
			"update":    p.update,
			"dead":      p.deadLetter,
			"purge":     p.purge,
			"tick": func(*rapid.T) {
				p.b.tick()
				p.groups["g"].w.tick()
				p.groups["h"].w.tick()
			},
			"wait": func(t *rapid.T) {
				d := rapid.SampledFrom([]int64{1, 499, 500, 1_000, 5_000, 31_000}).Draw(t, "wait")
				p.b.now += d
				p.groups["g"].w.now += d
				p.groups["h"].w.now += d
			},
			"crash": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "really") == 0 {
					p.b.crash(rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "survives"), uint64(p.b.ids))
				}
			},
		})
	})
}
