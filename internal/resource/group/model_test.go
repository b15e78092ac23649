package group

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
)

// Two groups of one topic and their twins live through random histories. After
// every step the answers, what the groups show and every invariant must agree.

// TestMain sets how many histories there are and how long they get, unless the
// flags of rapid say so. A history that fails prints the flag that replays it.
func TestMain(m *testing.M) {
	flag.Parse()
	set := map[string]string{"rapid.checks": "200", "rapid.steps": "40"}
	if os.Getenv("KEYLOAD_LONG") != "" {
		set["rapid.checks"] = "10000"
	}
	flag.Visit(func(f *flag.Flag) { delete(set, f.Name) })
	for name, value := range set {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// pair is the real groups "g" and "h", their twins, and every token that was ever
// given.
type pair struct {
	b      *bed
	src    *twinSource
	groups map[string]*side
	inbox  map[uint64]int // by position: which effects were committed
	outs   int64
}

type side struct {
	name   string
	w      *twin
	def    api.GroupDefinition
	grips  []grip
	tokens []string
	last   api.SubscriptionsReceiveRequest // the last receive that delivered something
	given  []grip                          // by it
}

func drawDefinition(t *rapid.T) api.GroupDefinition {
	d := api.GroupDefinition{
		Filter: api.GroupFilter{EventTypes: rapid.SampledFrom([][]string{nil, {"a"}, {"b", "a"}, {"c"}, {"*"}}).Draw(t, "types")},
		Policy: api.GroupPolicy{
			MaxWindow: rapid.Int64Range(1, 12).Draw(t, "maxWindow"), MaxInFlight: rapid.Int64Range(1, 8).Draw(t, "maxInFlight"),
			MaxLeaseSeconds: 60, MaxLeaseAgeSeconds: 90, MaxAttempts: rapid.Int64Range(1, 3).Draw(t, "maxAttempts"),
			Retry:       api.RetryPolicy{BaseMillis: 500, Factor: 2, MaxMillis: 3_000},
			OnExhausted: rapid.SampledFrom([]api.OnExhausted{api.ExhaustedDeadLetter, api.ExhaustedDeadLetter, api.ExhaustedHold, api.ExhaustedPause}).Draw(t, "onExhausted"),
			DeadLetter:  api.GroupDeadLetters{MaxEvents: rapid.Int64Range(1, 3).Draw(t, "maxDead")},
			Ordered:     rapid.SampledFrom([]api.GroupOrder{api.OrderNone, api.OrderPerKey}).Draw(t, "ordered"),
		},
	}
	return defined(d)
}

func newPair(t *rapid.T) *pair {
	p := &pair{b: emptyBed(t, crashable(), true), src: &twinSource{}, groups: map[string]*side{}, inbox: map[uint64]int{}}
	for _, name := range []string{"g", "h"} {
		d := drawDefinition(t)
		made := p.b.create(name, d)
		p.groups[name] = &side{name: name, def: d, w: &twin{
			src: p.src, now: start, policy: d.Policy, types: d.Filter.EventTypes, generation: made.State.Generation,
			rows: map[uint64]*twinRow{}, ends: map[uint64]bool{}, dead: map[uint64]*twinRow{},
		}}
	}
	p.publish(t)
	return p
}

func (p *pair) side(t *rapid.T) *side {
	return p.groups[rapid.SampledFrom([]string{"g", "g", "h"}).Draw(t, "group")]
}

// agree fails unless a refusal is the one the twin gives.
func agree(t *rapid.T, what string, err error, want string) {
	t.Helper()
	if got := code(err); got != want {
		t.Fatalf("%s: %q, want %q (%v)", what, got, want, err)
	}
}

func (p *pair) publish(t *rapid.T) {
	var list []api.Event
	for range rapid.IntRange(1, 6).Draw(t, "events") {
		e := event(rapid.SampledFrom([]string{"a", "a", "b", "c"}).Draw(t, "kind"))
		e.CorrelationID = rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "key")
		e.Payload = api.JSON(rapid.SampledFrom([]string{"1", "1", `"twelve bytes"`, `"` + fmt.Sprintf("%030d", 0) + `"`}).Draw(t, "payload"))
		list = append(list, e)
		p.src.events = append(p.src.events, twinEvent{e.Type, e.CorrelationID, len(e.Payload)})
	}
	p.b.publish(list...)
}

func (p *pair) receive(t *rapid.T) {
	s := p.side(t)
	req := api.SubscriptionsReceiveRequest{
		RequestID: p.b.id(), Group: p.b.ref(s.name), MaxEvents: rapid.Int64Range(1, 5).Draw(t, "n"), LeaseSeconds: rapid.SampledFrom([]int64{1, 10, 60}).Draw(t, "lease"),
		MaxBytes: rapid.SampledFrom([]int64{1, 14, 33, 1000, 1000}).Draw(t, "bytes"), SessionID: rapid.SampledFrom([]string{"", "s"}).Draw(t, "session"),
	}
	cheap, err := p.b.cheap(req)
	before := s.w.clone()
	claims, reason, refused := s.w.receive(req.MaxEvents, req.LeaseSeconds, int(req.MaxBytes), req.SessionID)
	if err == nil && cheap != nil && (refused != "" || len(claims) > 0 || cheap.Reason != reason || show(before) != show(s.w)) {
		t.Fatalf("said to be certain: %s; want %q %s", cheap.Reason, refused, reason)
	}
	r, err := p.b.tryReceive(req)
	if agree(t, "receive", err, refused); err != nil {
		return
	}
	var got, want []string
	for i := range r.Deliveries {
		d := &r.Deliveries[i]
		got = append(got, fmt.Sprint(d.Event.Position, d.Redriven, d.Attempt, int64(d.LeaseUntil), d.LeaseVersion, d.Event.Type))
		s.tokens = append(s.tokens, d.Token)
		s.grips = append(s.grips, grip{!d.Redriven, d.Event.Position, d.LeaseVersion, r.Generation})
	}
	if len(got) > 0 {
		s.last, s.given = req, s.grips[len(s.grips)-len(got):]
	}
	for _, x := range claims {
		want = append(want, fmt.Sprint(x.position, !x.window, x.row.attempts, x.row.until, x.row.batch, p.src.at(x.position).kind))
	}
	if !slices.Equal(got, want) || r.Reason != reason || r.Generation != s.w.generation {
		t.Fatalf("received %v %s, want %v %s", got, r.Reason, want, reason)
	}
	full := reason == api.ReasonWindowFull || reason == api.ReasonParkedHead || reason == api.ReasonInFlightLimit
	if full && r.BlockedBy != s.w.lowest() || !full && r.BlockedBy != 0 {
		t.Fatalf("%s by %d, want %d", reason, r.BlockedBy, s.w.lowest())
	}
	if len(got) == 0 && reason != api.ReasonScanLimit && int64(r.NextDueAt) != s.w.nextDue() {
		t.Fatalf("%s until %d, want %d", reason, r.NextDueAt, s.w.nextDue())
	}
}

// repeat sends the last receive again: it answers the same, or that it is over.
func (p *pair) repeat(t *rapid.T) {
	s := p.side(t)
	if s.given == nil {
		t.Skip("nothing was received yet")
	}
	want := ""
	for _, g := range s.given {
		if _, refused := s.w.held(g); want == "" {
			want = refused
		}
	}
	if want == "NotFound/unknown_delivery" {
		want = "StaleLease/lease_replaced"
	}
	r, err := p.b.tryReceive(s.last)
	if agree(t, "repeat", err, want); err != nil {
		return
	}
	for i, g := range s.given {
		d := &r.Deliveries[i]
		if (grip{!d.Redriven, d.Event.Position, d.LeaseVersion, r.Generation}) != g || !slices.Contains(s.tokens, d.Token) {
			t.Fatalf("repeated %d: %+v, want %+v", i, d, g)
		}
	}
}

// item draws something to do with one of the last tokens.
func (s *side) item(t *rapid.T) (item api.CompleteItem, g grip) {
	i := max(0, len(s.grips)-1-rapid.IntRange(0, 12).Draw(t, "back"))
	item = api.CompleteItem{
		Token:  s.tokens[i],
		Action: rapid.SampledFrom([]api.CompleteAction{api.ActionAck, api.ActionAck, api.ActionNack, api.ActionRenew, api.ActionRelease}).Draw(t, "action"),
	}
	switch item.Action {
	case api.ActionRenew:
		item.LeaseSeconds = rapid.SampledFrom([]int64{5, 60, 61}).Draw(t, "renew")
	case api.ActionNack:
		item.Failure = rapid.SampledFrom([]string{"", "why"}).Draw(t, "failure")
		item.Terminal = rapid.IntRange(0, 3).Draw(t, "terminal") == 0
		if d := rapid.SampledFrom([]int64{-1, 0, 4_000}).Draw(t, "delay"); d >= 0 && !item.Terminal {
			item.DelayMillis = &d
		}
	}
	return item, s.grips[i]
}

func (p *pair) complete(t *rapid.T) {
	s := p.side(t)
	if len(s.grips) == 0 {
		t.Skip("no token yet")
	}
	req := &api.SubscriptionsCompleteRequest{CommandID: p.b.id(), Group: p.b.ref(s.name)}
	var grips []grip
	for range rapid.IntRange(1, 4).Draw(t, "items") {
		item, g := s.item(t)
		req.Items, grips = append(req.Items, item), append(grips, g)
	}
	if rapid.IntRange(0, 9).Draw(t, "power") == 0 {
		p.lost(t, req)
	}
	r, err := call(p.b, api.SubscriptionsComplete, req)
	p.b.must(err)
	var made []renewed
	for i := range req.Items {
		want := s.w.complete(grips[i], &req.Items[i], &made)
		got := r.Results[i]
		if code(got.Error) != want {
			t.Fatalf("item %d %s of %+v: %v, want %s", i, req.Items[i].Action, grips[i], code(got.Error), want)
		}
		if want == "" && got.State != s.w.result(grips[i]) {
			t.Fatalf("item %d %s of %+v: %s, want %s", i, req.Items[i].Action, grips[i], got.State, s.w.result(grips[i]))
		}
		if got.Token != "" {
			x := s.w.rows[grips[i].position]
			if !grips[i].window {
				x = s.w.dead[grips[i].position]
			}
			s.tokens = append(s.tokens, got.Token)
			s.grips = append(s.grips, grip{grips[i].window, grips[i].position, x.batch, s.w.generation})
		}
	}
	s.w.settle()
	if r.Checkpoint != s.w.checkpoint {
		t.Fatalf("checkpoint %d, want %d", r.Checkpoint, s.w.checkpoint)
	}
}

// lost sends a command and takes the power before anybody is told. Whether it
// survived or not, the same command settles it.
func (p *pair) lost(t *rapid.T, req *api.SubscriptionsCompleteRequest) {
	h, _ := p.b.registry.Handler(api.SubscriptionsComplete.Name)
	again := *req
	api.ApplyDefaults(&again)
	_, err := h.Prepare(p.b.door(), &again)
	p.b.must(err)
	percent := rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "survives")
	p.b.powerLoss(p.b.command(api.SubscriptionsComplete.Operation, &again), percent)
}

func (p *pair) process(t *rapid.T) {
	s := p.side(t)
	if len(s.grips) == 0 {
		t.Skip("no token yet")
	}
	i := max(0, len(s.grips)-1-rapid.IntRange(0, 8).Draw(t, "back"))
	variant := rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "variant")
	g := s.grips[i]
	r, err := call(p.b, api.SubscriptionsProcess, &api.SubscriptionsProcessRequest{
		CommandID: p.b.id(), Group: p.b.ref(s.name), Token: s.tokens[i], HandlerScope: "view",
		Effects: []api.Mutation{output(fmt.Sprintf("o%d-%d", g.position, variant))},
	})
	x, refused := s.w.held(g)
	known := p.inbox[g.position]
	switch {
	case g.generation != s.w.generation:
	case known != 0 && known != variant:
		refused = "Conflict/processed_differently"
	case known != 0 && refused != "":
		refused = "" // its work is done; nothing changes
	case refused == "":
		s.w.ack(x)
		s.w.settle()
		if known == 0 {
			p.inbox[g.position] = variant
			p.outs++
		}
	}
	if agree(t, "process", err, refused); err == nil && (r.AlreadyProcessed != (known != 0) || r.Checkpoint != s.w.checkpoint || r.Position != g.position) {
		t.Fatalf("processed %+v, known %d, checkpoint %d", r, known, s.w.checkpoint)
	}
	if got := p.b.outputs(); got != p.outs {
		t.Fatalf("%d outputs, want %d", got, p.outs)
	}
}

// show is everything a twin knows, to compare.
func show(w *twin) string {
	out := fmt.Sprint(w.generation, w.checkpoint, w.issued, w.batch, w.passed, w.failed, w.paused, w.ends, w.totals)
	for _, list := range []map[uint64]*twinRow{w.rows, w.dead} {
		for _, p := range slices.Sorted(maps.Keys(list)) {
			out += fmt.Sprint("\n", p, *list[p])
		}
	}
	return out
}
