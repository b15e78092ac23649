package group

import (
	"fmt"
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
)

func TestSeekMovesToEveryKindOfPlaceAndLeavesTheGroupPaused(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	for range 10 { // position p at start + (p-1) s
		b.fill(1)
		b.now += 1_000
	}
	cursor := b.cursorAfter(6)
	b.ack(b.receive(3).Deliveries...)
	b.must(b.purge(2))
	checkpoint := uint64(3)
	for i, c := range []struct {
		req  api.SubscriptionsSeekRequest
		next uint64
	}{
		{api.SubscriptionsSeekRequest{To: api.SeekNow}, 11},
		{api.SubscriptionsSeekRequest{To: api.SeekBeginning}, 3},
		{api.SubscriptionsSeekRequest{To: api.SeekPosition, Position: 3}, 3},
		{api.SubscriptionsSeekRequest{To: api.SeekPosition, Position: 8}, 8},
		{api.SubscriptionsSeekRequest{To: api.SeekPosition, Position: 11}, 11},
		{api.SubscriptionsSeekRequest{To: api.SeekTime, Time: api.Time(start + 4_000)}, 5},
		{api.SubscriptionsSeekRequest{To: api.SeekTime, Time: api.Time(start + 4_001)}, 6},
		{api.SubscriptionsSeekRequest{To: api.SeekTime, Time: api.Time(start - 1)}, 3}, // the first retained one
		{api.SubscriptionsSeekRequest{To: api.SeekTime, Time: api.Time(start + 9_000)}, 10},
		{api.SubscriptionsSeekRequest{To: api.SeekTime, Time: api.Time(start + 9_001)}, 11},
		{api.SubscriptionsSeekRequest{To: api.SeekCursor, Cursor: cursor}, 7},
	} {
		what := fmt.Sprintf("%d: %s %d %d", i, c.req.To, c.req.Position, c.req.Time)
		r, err := b.trySeek(c.req)
		b.must(err)
		s := r.State
		if s.Checkpoint != c.next-1 || s.Issued != c.next-1 || !s.Paused || s.Generation != uint64(i+2) || s.OwnershipEpoch != uint64(i+2) {
			t.Errorf("%s: %+v", what, s)
		}
		skipped, again := int64(c.next-1)-int64(checkpoint), int64(checkpoint)-int64(c.next-1)
		if r.Before != checkpoint || r.Skipped != max(0, skipped) || r.Again != max(0, again) {
			t.Errorf("%s: before %d, skipped %d, again %d", what, r.Before, r.Skipped, r.Again)
		}
		b.check()
		_, err = b.tryReceive(api.SubscriptionsReceiveRequest{})
		wants(t, what, err, "DispatchPaused/group_paused")
		b.resume()
		if got := positions(b.receive(10)); !slices.Equal(got, upTo(c.next, 10)) {
			t.Errorf("%s: received %v", what, got)
		}
		checkpoint = c.next - 1
	}
}

func TestSeekRefusesAPlaceThatIsNotThere(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(5)
	early := b.cursorAfter(1)
	b.ack(b.receive(4).Deliveries...)
	b.must(b.purge(3))
	d := b.one()
	before := b.rows()
	for what, c := range map[string]struct {
		req  api.SubscriptionsSeekRequest
		want string
	}{
		"a purged position":           {api.SubscriptionsSeekRequest{To: api.SeekPosition, Position: 3}, "HistoryUnavailable/purged"},
		"two after the tail":          {api.SubscriptionsSeekRequest{To: api.SeekPosition, Position: 7}, "Validation/invalid_field"},
		"a purged cursor":             {api.SubscriptionsSeekRequest{To: api.SeekCursor, Cursor: early}, "HistoryUnavailable/purged"},
		"no cursor":                   {api.SubscriptionsSeekRequest{To: api.SeekCursor}, "Validation/invalid_field"},
		"nonsense":                    {api.SubscriptionsSeekRequest{To: api.SeekCursor, Cursor: "nonsense"}, "Validation/bad_token"},
		"a position with to: now":     {api.SubscriptionsSeekRequest{To: api.SeekNow, Position: 5}, "Validation/invalid_field"},
		"a generation that is past":   {api.SubscriptionsSeekRequest{To: api.SeekNow, ExpectedGeneration: 9}, "RevisionConflict/group_generation"},
		"no time":                     {api.SubscriptionsSeekRequest{To: api.SeekTime}, "Validation/invalid_field"},
		"a delivery token for cursor": {api.SubscriptionsSeekRequest{To: api.SeekCursor, Cursor: d.Token}, "Validation/bad_token"},
	} {
		_, err := b.trySeek(c.req)
		wants(t, what, err, c.want)
		if f := facts(err); c.want == "HistoryUnavailable/purged" && f["firstAvailable"] != "4" {
			t.Errorf("%s: %v", what, f)
		}
		b.same(what, before)
	}
	b.ack(d) // its token holds still
}

func TestSeekDropsTheWindowAndEveryTokenAndClearsAFailure(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 1, OnExhausted: api.ExhaustedPause})
	b.fill(6)
	d := b.receive(4).Deliveries
	b.ack(d[1], d[2])
	b.nack(d[0], 0) // the group pauses itself
	r, err := b.trySeek(api.SubscriptionsSeekRequest{To: api.SeekPosition, Position: 2})
	b.must(err)
	if s := r.State; s.FailureCode != "" || s.FailedPosition != 0 || !s.Paused {
		t.Errorf("%+v", s)
	}
	b.looks(1, 1, "")
	if out := b.complete(api.CompleteItem{Token: d[3].Token, Action: api.ActionAck})[0]; code(out.Error) != "TokenInvalidated/generation_changed" || facts(out.Error)["tokenGeneration"] != "1" {
		t.Errorf("%+v", out)
	}
	if n := len(b.table(rows.ID)) + len(b.table(readies.ID)) + len(b.table(leases.ID)); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	b.later(60_000)
	b.check()
}

func TestSkipFinishesExactlyOnePositionAndRemembersWhy(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxWindow: 6})
	b.fill(20)
	d := b.receive(4).Deliveries
	b.nack(d[1], 60_000)
	b.must(b.skip(2)) // one that waits
	b.must(b.skip(3)) // one that is leased
	b.looks(0, 4, "1* [2-3] 4*")
	b.must(b.skip(5)) // the next one
	b.looks(0, 5, "1* [2-3] 4* [5-5]")
	if out := b.complete(api.CompleteItem{Token: d[2].Token, Action: api.ActionAck})[0]; code(out.Error) != "NotFound/unknown_delivery" {
		t.Errorf("the holder's ack: %+v", out)
	}
	b.must(b.skip(1))
	b.looks(3, 5, "4* [5-5]")
	for what, c := range map[string]struct {
		position uint64
		want     string
	}{
		"a finished one": {3, "Conflict/finished"}, "one of a run": {5, "Conflict/finished"}, "one after the next": {7, "Conflict/not_issued"},
		"one after the tail": {21, "Validation/invalid_field"},
	} {
		before := b.rows()
		wants(t, what, b.skip(c.position), c.want)
		b.same(what, before)
	}
	for p := uint64(6); p <= 9; p++ {
		b.must(b.skip(p))
	}
	before := b.rows()
	wants(t, "one beyond a full window", b.skip(10), "Conflict/window_full")
	b.same("one beyond a full window", before)
	b.ack(d[3])
	b.looks(9, 9, "")
	for p := uint64(10); p <= 20; p++ {
		b.must(b.skip(p))
	}
	s := b.status()
	if s.Totals.Skipped != 19 || len(s.Skipped) != limits.GroupSkips || len(b.table(skips.ID)) != limits.GroupSkips {
		t.Fatalf("%d skips, %d remembered", s.Totals.Skipped, len(s.Skipped))
	}
	last := append([]uint64{1}, upTo(6, 20)...)
	for i, x := range s.Skipped {
		if x.Position != last[i] || x.Reason != "no handler can take it" || x.Principal != b.who || x.At != api.Time(b.now) {
			t.Errorf("skip %d: %+v", i, x)
		}
	}
}

func TestAPausedGroupDeliversNothingAndItsWorkersFinish(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(5)
	d := b.receive(3).Deliveries
	if r := b.pause(); !r.Changed || !r.State.Paused || r.State.Generation != 1 {
		t.Errorf("%+v", r)
	}
	before := b.rows()
	if r := b.pause(); r.Changed {
		t.Errorf("%+v", r)
	}
	_, err := b.tryReceive(api.SubscriptionsReceiveRequest{})
	wants(t, "a receive", err, "DispatchPaused/group_paused")
	_, err = b.cheap(api.SubscriptionsReceiveRequest{})
	wants(t, "a receive without the log", err, "DispatchPaused/group_paused")
	b.same("a second pause and refused receives", before)
	if e := b.explain(5); e.Reason != string(api.ReasonPaused) || e.Deliverable || e.ChangedBy != "subscriptions.resume" {
		t.Errorf("%+v", e)
	}
	b.ack(d[0])
	b.did(api.CompleteItem{Token: d[1].Token, Action: api.ActionRenew, LeaseSeconds: 60})
	b.nack(d[2], 0)
	b.looks(1, 3, "2* 3")
	for what, err := range map[string]error{
		"pause":  second(call(b, api.SubscriptionsPause, &api.SubscriptionsPauseRequest{CommandID: b.id(), Group: b.ref("g"), ExpectedGeneration: 2})),
		"resume": second(call(b, api.SubscriptionsResume, &api.SubscriptionsResumeRequest{CommandID: b.id(), Group: b.ref("g"), ExpectedGeneration: 2})),
		"skip":   second(call(b, api.SubscriptionsSkip, &api.SubscriptionsSkipRequest{CommandID: b.id(), Group: b.ref("g"), ExpectedGeneration: 2, Position: 2, Reason: "r"})),
	} {
		wants(t, what+" at another generation", err, "RevisionConflict/group_generation")
	}
	if r := b.resume(); !r.Changed || r.State.Paused {
		t.Errorf("%+v", r)
	}
	before = b.rows()
	if r := b.resume(); r.Changed {
		t.Errorf("%+v", r)
	}
	b.same("a second resume", before)
	if got := positions(b.receive(10)); !slices.Equal(got, []uint64{3, 4, 5}) {
		t.Errorf("received %v", got)
	}
}

func second[T any](_ T, err error) error { return err }

func TestNothingIsDeliveredWhileTheSourceIsPaused(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(2)
	d := b.one()
	b.resource("news", api.KindTopic, func(r *api.Resource) { r.Paused = true })
	_, err := b.tryReceive(api.SubscriptionsReceiveRequest{})
	wants(t, "a receive", err, "DispatchPaused/source_paused")
	_, err = b.cheap(api.SubscriptionsReceiveRequest{})
	wants(t, "a receive without the log", err, "DispatchPaused/source_paused")
	if e := b.explain(2); e.Reason != string(api.ReasonPaused) || e.Deliverable || b.status().Reason != api.ReasonPaused {
		t.Errorf("%+v", e)
	}
	b.ack(d)
	b.resource("news", api.KindTopic, nil)
	b.one()
}

func TestAWorkerOfAnOlderGenerationGetsNothing(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(2)
	r, err := b.tryReceive(api.SubscriptionsReceiveRequest{ExpectedGeneration: 1})
	b.must(err)
	b.ack(r.Deliveries...)
	b.seek(2)
	_, err = b.tryReceive(api.SubscriptionsReceiveRequest{ExpectedGeneration: 1})
	wants(t, "a receive", err, "RevisionConflict/group_generation")
	r, err = b.tryReceive(api.SubscriptionsReceiveRequest{ExpectedGeneration: 2})
	b.must(err)
	if !slices.Equal(positions(r), []uint64{2}) {
		t.Errorf("received %v", positions(r))
	}
}
