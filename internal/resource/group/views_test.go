package group

import (
	"fmt"
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

func TestExplainSaysOfEveryPositionWhatStandsInItsWay(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 2, MaxWindow: 7, MaxInFlight: 2})
	b.fill(12)
	b.ack(b.receive(2).Deliveries...) // 1 and 2
	b.must(b.purge(1))
	d := b.receive(2).Deliveries // 3 and 4
	b.terminal(d[1])
	d = append(d, b.one()) // 5
	b.nack(d[2], 10_000)
	b.ack(b.one())                                                           // 6
	b.did(api.CompleteItem{Token: b.one().Token, Action: api.ActionRelease}) // 7
	for position, want := range map[uint64]struct {
		state       api.PositionState
		reason      string
		deliverable bool
	}{
		1: {api.PositionGone, "purged", false}, 2: {api.PositionFinished, "finished", false}, 3: {api.PositionLeased, "leased", false},
		4: {api.PositionDead, "deadLetter", false}, 5: {api.PositionWaiting, "scheduled", false}, 6: {api.PositionFinished, "finished", false},
		7: {api.PositionReady, "ready", true}, 8: {api.PositionPending, "ready", true}, 9: {api.PositionPending, "ready", false},
		12: {api.PositionPending, "ready", false}, 13: {api.PositionFuture, "noEvent", false},
	} {
		e := b.explain(position)
		if e.Position != position || e.State != want.state || e.Reason != want.reason || e.Deliverable != want.deliverable || e.Detail == "" {
			t.Errorf("position %d: %+v, want %+v", position, e, want)
		}
	}
	if e := b.explain(0); e.Position != 3 || e.Until != d[0].LeaseUntil || e.Row == nil || e.Row.Attempts != 1 || e.Row.Holder != b.who {
		t.Errorf("the lowest unfinished one: %+v", e)
	}
	if e := b.explain(5); e.Until != api.Time(start+10_000) || e.Row.Failures != 1 {
		t.Errorf("%+v", e)
	}
	b.one() // 7: both leases are given
	if e := b.explain(8); e.Reason != string(api.ReasonInFlightLimit) || e.Deliverable {
		t.Errorf("%+v", e)
	}
	b.now += 10_000
	if e := b.explain(5); e.State != api.PositionWaiting || e.Reason != string(api.ReasonInFlightLimit) {
		t.Errorf("%+v", e)
	}
	b.now += 20_000
	if e := b.explain(3); e.State != api.PositionLeased || e.Reason != "leaseExpired" || e.Deliverable {
		t.Errorf("%+v", e)
	}
	b.later(1_000)
	if e := b.explain(3); e.State != api.PositionReady || !e.Deliverable {
		t.Errorf("%+v", e)
	}
}

func TestExplainNamesTheFullWindow(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxWindow: 2})
	b.fill(4)
	b.ack(b.receive(2).Deliveries[1])
	if e := b.explain(3); e.State != api.PositionPending || e.Reason != string(api.ReasonWindowFull) || e.ChangedBy != "finishing or skipping position 1" {
		t.Errorf("%+v", e)
	}
}

func TestStatusListsTheFirstRowsAndCountsThemAll(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(200)
	d := b.receive(200).Deliveries
	for i := 1; i < 200; i += 2 {
		b.ack(d[i])
	}
	for _, rows := range []int64{1, 2, 199, 200, 201, 1000} {
		r, err := ask(b, api.SubscriptionsStatus, &api.SubscriptionsStatusRequest{Group: b.ref("g"), Rows: rows})
		b.must(err)
		if int64(len(r.Window)) != min(rows, 200) || r.Counts.Rows != 200 || r.Counts.Runs != 100 || r.Counts.Leased != 100 || r.CompletedAhead != 100 {
			t.Errorf("%d rows asked for: %d listed, %+v", rows, len(r.Window), r.Counts)
		}
	}
	b.now += 5_000
	r, err := b.tryReceive(api.SubscriptionsReceiveRequest{SessionID: "s1"})
	b.must(err)
	if len(r.Deliveries) != 0 {
		t.Fatal("delivered")
	}
	s := b.status()
	if o := s.OldestUnfinished; o == nil || o.From != 1 || o.EventID != "e1" || o.AgeMillis != 5_000 || o.Holder != b.who || o.LeaseUntil != d[0].LeaseUntil || o.IssuedAt != api.Time(start) {
		t.Errorf("%+v", o)
	}
	if s.NextDueAt != d[0].LeaseUntil || s.Reason != api.ReasonEmpty {
		t.Errorf("reason %s, next %s", s.Reason, s.NextDueAt)
	}
}

func TestStatusNamesTheSessionOfEveryLease(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(4)
	for _, session := range []string{"s1", "s2"} {
		_, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: 2, SessionID: session})
		b.must(err)
	}
	var got []string
	for _, r := range b.status().Window {
		got = append(got, r.SessionID)
	}
	if !slices.Equal(got, []string{"s1", "s1", "s2", "s2"}) {
		t.Errorf("sessions %v", got)
	}
}

func TestAWorkerSeesNoMoreThanTheGroupsDataPrincipalAndNoMoreThanItself(t *testing.T) {
	b := emptyBedOf(t)
	b.resource("news", api.KindTopic, func(r *api.Resource) { r.FieldPolicies = []api.FieldPolicy{{Path: "/a"}, {Path: "/b"}} })
	sees := func(paths ...string) (out []api.FieldGrant) {
		for _, p := range paths {
			out = append(out, api.FieldGrant{Database: "*", Resource: "*", Path: p, Rights: []api.FieldRight{api.FieldRawRead}})
		}
		return out
	}
	data := api.Principal{ID: "data", Tenant: "default", Roles: []api.Role{api.RoleReader}, FieldGrants: sees("/a"), PolicyEpoch: 1}
	b.principal(data)
	b.principal(api.Principal{ID: "worker", Tenant: "default", Roles: []api.Role{api.RoleWorker, api.RoleOperator}, FieldGrants: sees("/b"), PolicyEpoch: 1})
	e := event("x")
	e.Payload = api.JSON(`{"a":1,"b":2,"c":3}`)
	b.publish(e)
	b.create("bounded", api.GroupDefinition{DataPrincipal: "data"})
	b.create("open", api.GroupDefinition{})
	for _, c := range []struct{ who, group, payload, redacted string }{
		{"worker", "bounded", `{"c":3}`, "[/a /b]"}, {"worker", "open", `{"b":2,"c":3}`, "[/a]"},
		{"", "bounded", `{"a":1,"c":3}`, "[/b]"}, {"", "open", `{"a":1,"b":2,"c":3}`, "[]"},
	} {
		look := func() {
			d := b.of(c.group, 1).Deliveries[0]
			if string(d.Event.Payload) != c.payload || fmt.Sprint(d.Event.Redacted) != c.redacted {
				t.Errorf("%q of %s sees %s, without %v; want %s, %s", c.who, c.group, d.Event.Payload, d.Event.Redacted, c.payload, c.redacted)
			}
			b.finish(c.group, api.ActionRelease, d)
		}
		if c.who == "" {
			look()
			continue
		}
		b.as(c.who, look)
	}
	d := b.of("bounded", 1).Deliveries[0]
	_, err := b.tryComplete("bounded", api.CompleteItem{Token: d.Token, Action: api.ActionNack, Terminal: true})
	b.must(err)
	b.as("worker", func() {
		r, err := ask(b, api.SubscriptionsDeadLettersList, &api.SubscriptionsDeadLettersListRequest{Group: b.ref("bounded")})
		b.must(err)
		if string(r.DeadLetters[0].Event.Payload) != `{"c":3}` {
			t.Errorf("the dead letter shows %s", r.DeadLetters[0].Event.Payload)
		}
	})
	if r, err := b.cheap(api.SubscriptionsReceiveRequest{Group: b.ref("bounded")}); r == nil || err != nil {
		t.Errorf("not certain: %+v %v", r, err)
	}
	data.Revoked, data.PolicyEpoch = true, 2
	b.principal(data)
	if r, err := b.cheap(api.SubscriptionsReceiveRequest{Group: b.ref("bounded")}); r != nil || err != nil {
		t.Errorf("certain of what the log refuses: %+v %v", r, err)
	}
	b.publish(event("x"))
	before := b.rows()
	_, err = b.tryReceive(api.SubscriptionsReceiveRequest{Group: b.ref("bounded")})
	wants(t, "a receive under a revoked data principal", err, "PermissionDenied/data_principal")
	_, err = ask(b, api.SubscriptionsDeadLettersList, &api.SubscriptionsDeadLettersListRequest{Group: b.ref("bounded")})
	wants(t, "its dead letters", err, "PermissionDenied/data_principal")
	_, err = b.configure("third", api.GroupDefinition{DataPrincipal: "data"}, 0)
	wants(t, "a group with it", err, "PermissionDenied/data_principal")
	b.same("refusals", before)
}

func TestQueriesOfNoGroupSayThatItIsAbsent(t *testing.T) {
	b := emptyBedOf(t)
	_, err := ask(b, api.SubscriptionsStatus, &api.SubscriptionsStatusRequest{Group: b.ref("none")})
	wants(t, "status", err, "NotFound/unknown_group")
	_, err = ask(b, api.SubscriptionsExplain, &api.SubscriptionsExplainRequest{Group: b.ref("none")})
	wants(t, "explain", err, "NotFound/unknown_group")
	_, err = ask(b, api.SubscriptionsDeadLettersList, &api.SubscriptionsDeadLettersListRequest{Group: b.ref("none")})
	wants(t, "dead letters", err, "NotFound/unknown_group")
	r, err := ask(b, api.SubscriptionsList, &api.SubscriptionsListRequest{Source: b.news()})
	if err != nil || len(r.Groups) != 0 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestQueriesChangeNoRow(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(5)
	d := b.receive(3).Deliveries
	b.terminal(d[0])
	b.ack(d[2])
	before, position := b.rows(), b.m.Head().Position
	b.status()
	b.explain(0)
	b.deadLetters()
	if b.same("queries", before); b.m.Head().Position != position {
		t.Error("queries went through the log")
	}
}

// A hole below the checkpoint's next event cannot come about; where a store has
// one, it is said rather than passed over.
func TestAGroupWhoseEventsAreGoneSaysSoAndGoesOnWhereItIsTold(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(20)
	d := b.receive(8).Deliveries
	b.ack(d[:5]...)
	b.lose(15)
	b.broken = true
	for range 2 {
		_, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: 10})
		wants(t, "a receive", err, "HistoryUnavailable/purged")
		if f := facts(err); f["firstAvailable"] != "16" || f["checkpoint"] != "5" {
			t.Errorf("facts %v", f)
		}
	}
	if r, err := b.cheap(api.SubscriptionsReceiveRequest{}); r != nil || err != nil {
		t.Errorf("certain: %+v %v", r, err)
	}
	findings, _ := b.audit()
	if !slices.ContainsFunc(findings, func(f op.Finding) bool { return f.Invariant == "checkpoint" }) {
		t.Errorf("the check finds %v", findings)
	}
	if s := b.status(); s.State.Checkpoint != 5 || s.OldestUnfinished == nil || s.OldestUnfinished.From != 6 {
		t.Errorf("%+v", s)
	}
	b.pause()
	_, err := b.configure("g", typed("a"), 1)
	wants(t, "an update", err, "HistoryUnavailable/purged")
	r := b.seek(16)
	if r.Before != 5 || r.Skipped != 10 {
		t.Errorf("%+v", r)
	}
	if got := positions(b.receive(10)); !slices.Equal(got, upTo(16, 20)) {
		t.Errorf("received %v", got)
	}
	b.broken = false
}

// lose removes events as no purge would: past a pin.
func (b *bed) lose(through uint64) {
	b.t.Helper()
	key := b.key()
	b.write(func(c *op.Ctx) error {
		// Without the definition nothing pins; it is put back below.
		var names []name
		var defs []definition
		err := definitions.Scan(c.Tx, table.Range{Prefix: key.Append(nil)}, func(n name, d *definition) (bool, error) {
			names, defs = append(names, n), append(defs, *d)
			return true, nil
		})
		if err != nil {
			return err
		}
		for _, n := range names {
			definitions.Delete(c.Tx, n)
		}
		res, _, err := source.Topic(&c.Scope, "news", 1)
		if err == nil {
			_, err = source.Purge(c, res, key, through)
		}
		for i := range names {
			definitions.Put(c.Tx, names[i], &defs[i])
		}
		return err
	})
	b.tick()
}
