package keyload_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
)

var ctx = context.Background()

// past is a store with one of everything a restore must keep, and what its
// callers held when it was copied.
type past struct {
	t     *testing.T
	clock atomic.Int64
	files *vfs.MemFS
	db    *keyload.DB

	gapped, handled api.GroupRef
	lane            api.LaneRef
	publish         *api.CommandsCommitResponse
	publishID       string
	events          []api.GroupDelivery // of gapped: 1 and 3 are unfinished
	message         api.Delivery
	effects         *api.SubscriptionsProcessResponse
	cursor          string
}

const handler = "projection"

func newPast(t *testing.T) *past {
	t.Helper()
	p := &past{
		t: t, files: vfs.NewCrashableMem(), lane: api.LaneRef{Queue: "jobs"}, publishID: api.NewCommandID(),
		gapped:  api.GroupRef{Source: api.SourceRef{Resource: "news"}, Group: "gapped"},
		handled: api.GroupRef{Source: api.SourceRef{Resource: "news"}, Group: "handled"},
	}
	p.clock.Store(time.Now().UnixMilli())
	p.open()
	for name, kind := range map[string]api.ResourceKind{"news": api.KindTopic, "jobs": api.KindQueue, "emails": api.KindQueue, "seen": api.KindCollection} {
		_, err := p.db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: name, Kind: kind})
		must(t, err)
	}
	for _, g := range []api.GroupRef{p.gapped, p.handled} {
		_, err := p.db.ConfigureGroup(ctx, &api.SubscriptionsConfigureRequest{Group: g})
		must(t, err)
	}
	p.work()
	return p
}

func (p *past) open() {
	p.t.Helper()
	store, err := kv.Open("store", kv.Options{FS: p.files})
	must(p.t, err)
	p.db, err = keyload.OpenStore(store, keyload.Options{Shards: 2, Clock: func() time.Time { return time.UnixMilli(p.clock.Load()) }})
	must(p.t, err)
}

// work leaves three events, a group with a gap, an input that was processed with
// a document and a message, a leased message and a scheduled one.
func (p *past) work() {
	t, db := p.t, p.db
	t.Helper()
	var err error
	p.publish, err = db.CommitAs(ctx, p.publishID, api.PartitionRef{}, keyload.Publish("news",
		api.Event{EventID: "e1", Type: "made", Payload: api.Of(1)}, api.Event{EventID: "e2", Type: "made", Payload: api.Of(2)},
		api.Event{EventID: "e3", Type: "made", Payload: api.Of(3)}))
	must(t, err)
	got, err := db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: p.gapped, MaxEvents: 3, LeaseSeconds: 300})
	must(t, err)
	p.events = got.Deliveries
	_, err = db.CompleteEvents(ctx, p.gapped, api.CompleteItem{Token: p.events[1].Token, Action: api.ActionAck})
	must(t, err)

	got, err = db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: p.handled, MaxEvents: 1})
	must(t, err)
	p.effects, err = db.ProcessEvent(ctx, p.process(&got.Deliveries[0]))
	must(t, err)

	_, err = db.Commit(ctx, api.PartitionRef{}, keyload.Enqueue("jobs", api.Message{MessageID: "held", Payload: api.Of(1)}),
		keyload.Enqueue("jobs", api.Message{MessageID: "later", Payload: api.Of(2), NotBefore: api.Time(p.clock.Load() + 3_600_000)}))
	must(t, err)
	r, err := db.Receive(ctx, &api.QueuesReceiveRequest{Lane: p.lane, LeaseSeconds: 300})
	must(t, err)
	p.message = r.Deliveries[0]
	page, err := db.ReadEvents(ctx, &api.EventsReadRequest{Source: p.gapped.Source, Limit: 1})
	must(t, err)
	p.cursor = page.Cursor
}

func (p *past) process(d *api.GroupDelivery) *api.SubscriptionsProcessRequest {
	return &api.SubscriptionsProcessRequest{Group: p.handled, Token: d.Token, HandlerScope: handler, Effects: []api.Mutation{
		keyload.Put("seen", d.Event.EventID, map[string]string{"by": handler}),
		keyload.Enqueue("emails", api.Message{MessageID: "mail-" + d.Event.EventID, Payload: api.Of(d.Event.EventID)}),
	}}
}

// restore makes a copy of the store as a power loss would find it, which is what
// a backup has, and restores it so much later; p is the restored store then.
func (p *past) restore(later time.Duration) engine.Restored {
	p.t.Helper()
	copied := p.files.CrashClone(vfs.CrashCloneCfg{})
	must(p.t, p.db.Close())
	p.clock.Add(later.Milliseconds())
	store, err := kv.Open("store", kv.Options{FS: copied})
	must(p.t, err)
	r, err := engine.Restore(p.t.Context(), store, engine.RestoreOptions{Now: p.clock.Load()})
	must(p.t, err)
	must(p.t, store.Close())
	p.files = copied
	p.open()
	return r
}

// seen is what callers can see of the store, without what a restore is to change.
func (p *past) seen() string {
	p.t.Helper()
	var all []any
	add := func(v any, err error) {
		p.t.Helper()
		must(p.t, err)
		all = append(all, v)
	}
	for _, g := range []api.GroupRef{p.gapped, p.handled} {
		st, err := p.db.GroupStatus(ctx, g, 100)
		must(p.t, err)
		st.State.Paused, st.State.FailureCode, st.Reason = false, "", ""
		add(st, nil)
	}
	for _, q := range []string{"jobs", "emails"} {
		add(p.db.QueueStatus(ctx, api.LaneRef{Queue: q}))
	}
	for _, id := range []string{"held", "later"} {
		add(p.db.InspectMessage(ctx, p.lane, id))
	}
	add(p.db.Get(ctx, api.PartitionRef{}, "seen", "e1"))
	page, err := p.db.ReadEvents(ctx, &api.EventsReadRequest{Source: p.gapped.Source, Limit: 10})
	must(p.t, err)
	page.Cursor = ""
	add(page, nil)
	b, err := json.MarshalIndent(all, "", " ")
	must(p.t, err)
	return ages.ReplaceAllString(string(b), "")
}

// difference is the first line in which two texts differ.
func difference(before, after string) string {
	b, a := strings.Split(before, "\n"), strings.Split(after, "\n")
	for i := range b {
		if i >= len(a) || a[i] != b[i] {
			return fmt.Sprintf("line %d was %s and is %s", i, b[i], a[min(i, len(a)-1)])
		}
	}
	return "it is longer"
}

// ages are what the clock changes.
var ages = regexp.MustCompile(`,?\n *"[a-zA-Z]*[aA]geMillis": \d+`)

// settle does what is due now.
func (p *past) settle() {
	p.t.Helper()
	e := engine.Chores{Engine: p.db.Engine()}
	for shard := range e.Shards() + 1 {
		for due, _ := e.NextDue(shard); due != 0 && due <= e.Millis(); due, _ = e.NextDue(shard) {
			_, err := e.Tick(ctx, shard)
			must(p.t, err)
		}
	}
}

func (p *past) generation(g api.GroupRef) uint64 {
	p.t.Helper()
	st, err := p.db.GroupStatus(ctx, g, 0)
	must(p.t, err)
	return st.State.Generation
}

func TestARestoredStoreHasEverythingAsItWasAndDeliversNothing(t *testing.T) {
	p := newPast(t)
	before := p.seen()
	r := p.restore(0)
	defer func() { must(t, p.db.Close()) }()
	if after := p.seen(); after != before {
		t.Errorf("restored: %s", difference(before, after))
	}
	if r.PausedGroups != 2 || r.Earlier == r.Incarnation || r.Earlier != p.publish.Receipt.Token.Incarnation {
		t.Errorf("restored: %+v", r)
	}
	_, err := p.db.Receive(ctx, &api.QueuesReceiveRequest{Lane: p.lane})
	is(t, err, fault.DispatchPaused, "restored")
	_, err = p.db.Receive(ctx, &api.QueuesReceiveRequest{Lane: api.LaneRef{Queue: "emails"}, WaitMillis: 20_000})
	is(t, err, fault.DispatchPaused, "restored")
	_, err = p.db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: p.gapped})
	is(t, err, fault.DispatchPaused, "restored")
	for _, m := range []api.Mutation{
		keyload.Publish("news", api.Event{EventID: "e4", Type: "made", Payload: api.Of(4)}),
		keyload.Enqueue("jobs", api.Message{Payload: api.Of(4)}),
	} {
		_, err = p.db.Commit(ctx, api.PartitionRef{}, m)
		is(t, err, fault.DispatchPaused, "intake_refused")
	}
	st, err := p.db.RestoreStatus(ctx)
	must(t, err)
	if !st.Dispatch.Paused || !st.Dispatch.Restored || !st.Dispatch.RefuseIntake || st.PausedGroups != 2 || len(st.Groups) != 2 ||
		st.Groups[0].FailureCode != "restored" || len(st.Earlier) != 1 || st.Earlier[0].Incarnation != r.Earlier || len(st.Earlier[0].Positions) != 3 {
		t.Errorf("restore status: %+v", st)
	}
	// What is due waits, however late it is: nothing is lost before a person looked.
	p.clock.Add(90 * 24 * 3_600_000)
	if after := p.seen(); after != before {
		t.Errorf("90 days later: %s", difference(before, after))
	}
}

func TestNothingThatAnEarlierHistoryGaveHoldsAfterARestore(t *testing.T) {
	p := newPast(t)
	p.restore(0)
	defer func() { must(t, p.db.Close()) }()
	acked, err := p.db.Complete(ctx, p.lane, api.CompleteItem{Token: p.message.Token, Action: api.ActionAck})
	must(t, err)
	is(t, acked.Results[0].Error, fault.TokenInvalidated, "other_incarnation")
	finished, err := p.db.CompleteEvents(ctx, p.gapped, api.CompleteItem{Token: p.events[0].Token, Action: api.ActionAck})
	must(t, err)
	is(t, finished.Results[0].Error, fault.TokenInvalidated, "other_incarnation")
	_, err = p.db.ReadEvents(ctx, &api.EventsReadRequest{Source: p.gapped.Source, Cursor: p.cursor})
	is(t, err, fault.TokenInvalidated, "other_incarnation")
	token := p.publish.Receipt.Token
	_, err = p.db.ReadEvents(ctx, &api.EventsReadRequest{Source: p.gapped.Source, MinToken: &token})
	is(t, err, fault.TokenInvalidated, "other_incarnation")
	// A repeated command of that history is neither done again nor answered as new.
	_, err = p.db.CommitAs(ctx, p.publishID, api.PartitionRef{}, keyload.Publish("news",
		api.Event{EventID: "e1", Type: "made", Payload: api.Of(1)}, api.Event{EventID: "e2", Type: "made", Payload: api.Of(2)},
		api.Event{EventID: "e3", Type: "made", Payload: api.Of(3)}))
	is(t, err, fault.TokenInvalidated, "earlier_history")
	if f := fault.From(err); f == nil || f.Facts["outcome"] != "committed" || f.Facts["incarnation"] != token.Incarnation || f.Recorded {
		t.Errorf("it says %+v", f)
	}
	_, err = p.db.Outcome(ctx, api.PartitionRef{}, p.publishID)
	is(t, err, fault.TokenInvalidated, "earlier_history")
	if st, err := p.db.GroupStatus(ctx, p.gapped, 0); err != nil || st.Lag != 3 {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestAfterARestoreWorkGoesOnByPublicOperationsAndNothingIsDoneTwice(t *testing.T) {
	p := newPast(t)
	p.restore(0)
	defer func() { must(t, p.db.Close()) }()
	db := p.db
	_, err := db.SeekGroup(ctx, &api.SubscriptionsSeekRequest{Group: p.handled, ExpectedGeneration: p.generation(p.handled), To: api.SeekBeginning})
	must(t, err)
	_, err = db.ResumeGroup(ctx, p.handled, p.generation(p.handled))
	must(t, err)
	_, err = db.ResumeGroup(ctx, p.gapped, p.generation(p.gapped))
	must(t, err)
	_, err = db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: p.handled})
	is(t, err, fault.DispatchPaused, "restored")
	resumed, err := db.ResumeDispatch(ctx)
	must(t, err)
	if d := resumed.Dispatch; !resumed.Changed || d.Paused || d.Restored || d.RefuseIntake || d.Revision != 2 {
		t.Errorf("resumed: %+v", resumed)
	}

	// The input that was processed answers from the inbox, with the token of then.
	got, err := db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: p.handled, MaxEvents: 1})
	must(t, err)
	again, err := db.ProcessEvent(ctx, p.process(&got.Deliveries[0]))
	must(t, err)
	if !again.AlreadyProcessed || again.EffectsToken != p.effects.EffectsToken {
		t.Errorf("processed again: %+v, first %+v", again, p.effects.EffectsToken)
	}
	if st, err := db.QueueStatus(ctx, api.LaneRef{Queue: "emails"}); err != nil || st.Totals.Enqueued != 1 {
		t.Errorf("emails: %+v, %v", st, err)
	}

	// The gap closes by real acknowledgements, once the leases of then are over.
	p.clock.Add(301_000)
	got, err = db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: p.gapped, MaxEvents: 10, WaitMillis: 5_000})
	must(t, err)
	p.clock.Add(60_000) // retries wait a moment
	more, err := db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: p.gapped, MaxEvents: 10, WaitMillis: 5_000})
	must(t, err)
	for _, d := range append(got.Deliveries, more.Deliveries...) {
		if d.Event.Position == 2 {
			t.Error("what was acknowledged is delivered again")
		}
		_, err = db.CompleteEvents(ctx, p.gapped, api.CompleteItem{Token: d.Token, Action: api.ActionAck})
		must(t, err)
	}
	st, err := db.GroupStatus(ctx, p.gapped, 10)
	must(t, err)
	if st.State.Checkpoint != 3 || st.Counts.Rows != 0 {
		t.Errorf("the group stands at %+v, %+v", st.State, st.Counts)
	}

	// Positions go on from the cut.
	next, err := db.Commit(ctx, api.PartitionRef{}, keyload.Publish("news", api.Event{EventID: "e4", Type: "made", Payload: api.Of(4)}))
	must(t, err)
	if next.Results[0].Position != 4 {
		t.Errorf("the next event is at %d", next.Results[0].Position)
	}
	p.settle()
	before := p.seen()
	must(t, p.db.Close())
	p.open()
	if after := p.seen(); after != before {
		t.Errorf("opened again: %s", difference(before, after))
	}
}

func TestInputsThatARestoreBroughtBackAreRememberedAFullHorizonMore(t *testing.T) {
	const day = 24 * time.Hour
	p := newPast(t)
	p.restore(40 * day) // the inbox remembers 30
	defer func() { must(t, p.db.Close()) }()
	// Ids that carry no time: the clock here is not the one they are made by.
	_, err := api.Call(ctx, p.db, api.AdminDispatch, &api.AdminDispatchRequest{CommandID: uuid.NewString(), State: api.DispatchRunning})
	must(t, err)
	for _, step := range []struct {
		later time.Duration
		known bool
	}{{0, true}, {30*day - time.Minute, true}, {2 * time.Minute, false}} {
		p.clock.Add(step.later.Milliseconds())
		_, err := p.db.SeekGroup(ctx, &api.SubscriptionsSeekRequest{CommandID: uuid.NewString(), Group: p.handled, ExpectedGeneration: p.generation(p.handled), To: api.SeekBeginning})
		must(t, err)
		_, err = api.Call(ctx, p.db, api.SubscriptionsResume, &api.SubscriptionsResumeRequest{
			CommandID: uuid.NewString(), Group: p.handled, ExpectedGeneration: p.generation(p.handled),
		})
		must(t, err)
		p.settle()
		got, err := p.db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{RequestID: uuid.NewString(), Group: p.handled, MaxEvents: 1})
		must(t, err)
		req := p.process(&got.Deliveries[0])
		req.Effects = req.Effects[:1] // the message of then is remembered for a day
		if step.known {
			req = p.process(&got.Deliveries[0])
		}
		req.CommandID = uuid.NewString()
		done, err := p.db.ProcessEvent(ctx, req)
		must(t, err)
		if done.AlreadyProcessed != step.known {
			t.Errorf("after %s more: already processed %v", step.later, done.AlreadyProcessed)
		}
	}
}

func TestIntakeGoesOnAfterARestoreWhereItIsAllowedAndWhatIsDueStillWaits(t *testing.T) {
	p := newPast(t)
	p.restore(0)
	defer func() { must(t, p.db.Close()) }()
	d, err := api.Call(ctx, p.db, api.AdminDispatch, &api.AdminDispatchRequest{State: api.DispatchPaused, Reason: "looking"})
	must(t, err)
	if !d.Dispatch.Restored || d.Dispatch.RefuseIntake || d.Dispatch.Revision != 2 {
		t.Errorf("%+v", d.Dispatch)
	}
	_, err = p.db.Commit(ctx, api.PartitionRef{}, keyload.Publish("news", api.Event{EventID: "e4", Type: "made", Payload: api.Of(4)}),
		keyload.Enqueue("jobs", api.Message{MessageID: "new", Payload: api.Of(4)}))
	must(t, err)
	p.clock.Add(10 * 3_600_000)
	for shard := range uint16(3) {
		if due, _ := (engine.Chores{Engine: p.db.Engine()}).NextDue(shard); due != 0 {
			t.Errorf("shard %d would do what is due at %d", shard, due)
		}
	}
	m, err := p.db.InspectMessage(ctx, p.lane, "later")
	must(t, err)
	if m.State != api.StateScheduled {
		t.Errorf("the scheduled message is %s", m.State)
	}
	_, err = p.db.ResumeDispatch(ctx)
	must(t, err)
	got, err := p.db.Receive(ctx, &api.QueuesReceiveRequest{Lane: p.lane, MaxMessages: 10})
	must(t, err)
	if len(got.Deliveries) == 0 {
		t.Error("nothing is delivered after dispatch was resumed")
	}
}

func TestCase096PositionsGoOnFromTheCutAndEveryGroupGetsTheNext(t *testing.T) {
	p := newPast(t)
	for i := range 97 {
		_, err := p.db.Commit(ctx, api.PartitionRef{}, keyload.Publish("news", keyload.Event("made", i)))
		must(t, err)
	}
	for _, g := range []api.GroupRef{p.gapped, p.handled} { // both are done with all of it
		_, err := p.db.SeekGroup(ctx, &api.SubscriptionsSeekRequest{Group: g, ExpectedGeneration: p.generation(g), To: api.SeekNow})
		must(t, err)
	}
	p.restore(0)
	defer func() { must(t, p.db.Close()) }()
	_, err := p.db.ResumeDispatch(ctx)
	must(t, err)
	next, err := p.db.Commit(ctx, api.PartitionRef{}, keyload.Publish("news", keyload.Event("made", "after")))
	must(t, err)
	if next.Results[0].Position != 101 {
		t.Errorf("the event after the restore is at %d", next.Results[0].Position)
	}
	for _, g := range []api.GroupRef{p.gapped, p.handled} {
		_, err := p.db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: g})
		if fault.CodeOf(err) != fault.DispatchPaused {
			t.Errorf("group %s delivers before it was resumed: %v", g.Group, err)
		}
		_, err = p.db.ResumeGroup(ctx, g, p.generation(g))
		must(t, err)
		got, err := p.db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: g, MaxEvents: 10})
		must(t, err)
		if len(got.Deliveries) != 1 || got.Deliveries[0].Event.Position != 101 {
			t.Errorf("group %s got %+v", g.Group, got.Deliveries)
		}
	}
}

// The machine that restores may be one whose clock nobody has set yet.
func TestARestoreOnAMachineWhoseClockIsBehindSucceedsAndWaitsForTheClock(t *testing.T) {
	const day = 24 * time.Hour
	for _, behind := range []time.Duration{time.Minute, 23 * time.Hour, 25 * time.Hour, 7*day + time.Hour, 30 * day, 400 * day} {
		p := newPast(t)
		was := p.clock.Load()
		p.restore(-behind)
		st, err := p.db.RestoreStatus(ctx)
		must(t, err)
		if !st.Dispatch.Paused || st.PausedGroups == 0 {
			t.Errorf("%s behind: %+v", behind, st)
		}
		_, err = p.db.ResumeDispatch(ctx)
		if fault.CodeOf(err) != fault.ClockUncertain {
			t.Errorf("%s behind: a command gets %v", behind, err)
		}
		p.clock.Store(was)
		_, err = p.db.ResumeDispatch(ctx)
		must(t, err)
		must(t, p.db.Close())
	}
}
