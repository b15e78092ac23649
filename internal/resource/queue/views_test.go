package queue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// everyState fills the lane with n messages of every state, ids "<state><i>".
func everyState(b *bed, n int) {
	b.t.Helper()
	round := func(s api.MessageState, end func(api.Delivery)) {
		for i := range n {
			m := msg(fmt.Sprintf("%s%d", s, i))
			if s == api.StateExpired {
				m.ExpiresAt = api.Time(b.now + 10)
			}
			b.enqueue(m)
		}
		if s == api.StateExpired {
			b.later(10)
			return
		}
		for _, d := range b.receive(int64(n)).Deliveries {
			end(d)
		}
	}
	round(api.StateAcked, func(d api.Delivery) { b.ack(d) })
	round(api.StateCancelled, func(d api.Delivery) { b.must(b.cancel(d.MessageID)) })
	round(api.StateExpired, nil)
	terminal := func(d api.Delivery) {
		b.complete(api.CompleteItem{Token: d.Token, Action: api.ActionNack, Terminal: true})
	}
	round(api.StateDeadLettered, terminal)
	round(api.StatePendingDeadLetter, terminal)
	round(api.StateScheduled, func(d api.Delivery) { b.nack(d, 5_000) })
	round(api.StateLeased, func(api.Delivery) {})
	for i := range n {
		b.enqueue(msg(fmt.Sprintf("%s%d", api.StateReady, i)))
	}
}

func TestAListingByStateHasEveryMessageOfTheStateOnce(t *testing.T) {
	const n = 7
	b := newBed(t, api.QueuePolicy{DeadLetter: api.DeadLetterPolicy{MaxMessages: n}})
	everyState(b, n)
	b.restart()
	rows := b.rows()
	for _, limit := range []int64{1, 3, 7, 8, 1_000} {
		for _, s := range append(api.MessageStates(), "") {
			var got []string
			cursor := ""
			for {
				r, err := ask(b, api.QueuesList, &api.QueuesListRequest{Lane: b.lane(), State: s, Limit: limit, Cursor: cursor})
				b.must(err)
				for _, m := range r.Messages {
					if s != "" && m.State != s || m.Payload != nil {
						t.Errorf("state %q: %+v", s, m)
					}
					got = append(got, m.MessageID)
				}
				if int64(len(r.Messages)) > limit {
					t.Errorf("a page of %d, at most %d", len(r.Messages), limit)
				}
				if cursor = r.Cursor; cursor == "" {
					break
				}
			}
			var want []string
			for _, x := range api.MessageStates() {
				for i := range n {
					if s == "" || s == x {
						want = append(want, fmt.Sprintf("%s%d", x, i))
					}
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("limit %d state %q: %d messages, want %d: %v", limit, s, len(got), len(want), got)
			}
		}
	}
	if !equalRows(rows, b.rows()) {
		t.Errorf("a listing changed rows")
	}
}

func TestACursorOfAnotherListingOrOlderThanADayIsRefused(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(5)
	list := func(s api.MessageState, cursor string) (*api.QueuesListResponse, error) {
		return ask(b, api.QueuesList, &api.QueuesListRequest{Lane: b.lane(), State: s, Limit: 2, Cursor: cursor})
	}
	r, err := list(api.StateReady, "")
	b.must(err)
	if _, err := list("", r.Cursor); code(err) != "Validation/bad_cursor" {
		t.Errorf("a cursor of another state: %v", err)
	}
	b.now += 86_400_000
	if _, err := list(api.StateReady, r.Cursor); code(err) != "CursorExpired/cursor_expired" {
		t.Errorf("a cursor of yesterday: %v", err)
	}
}

func TestExplainNamesWhatStandsInTheWayOfEveryState(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxInFlightMessages: 2, DeadLetter: api.DeadLetterPolicy{MaxMessages: 2}, MaxAttempts: 3})
	everyState(b, 2)
	b.enqueue(msg("tried"))
	for id, want := range map[string]string{
		"acked0": "acked", "cancelled0": "cancelled", "expired0": "expired", "deadLettered0": "deadLettered",
		"pendingDeadLetter0": "pendingDeadLetter", "scheduled0": "scheduled", "leased0": "leased", "ready1": "inFlightLimit",
	} {
		e := b.explain(id)
		if e.Reason != want || e.Deliverable || e.Detail == "" {
			t.Errorf("%s: %+v", id, e)
		}
	}
	if e := b.explain("scheduled1"); int64(e.Until) != b.now+5_000 {
		t.Errorf("scheduled: %+v", e)
	}
	b.now += 30_000
	if e := b.explain("leased0"); e.Reason != "leaseExpired" {
		t.Errorf("leased: %+v", e)
	}
	b.tick()
	if e := b.explain("ready1"); !e.Deliverable || e.Reason != "ready" || e.ReadyBefore != 1 {
		t.Errorf("ready: %+v", e)
	}
	if _, err := ask(b, api.QueuesExplain, &api.QueuesExplainRequest{Lane: b.lane(), MessageID: "none"}); code(err) != "NotFound/unknown_message" {
		t.Errorf("unknown: %v", err)
	}
}

func TestStatusNamesTheOldestReadyMessageAndTheNextInstant(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	m := msg("later")
	m.NotBefore = api.Time(start + 90_000)
	b.enqueue(m, msg("a"))
	b.now += 1_000
	b.enqueue(msg("b"))
	b.now += 500
	if s := b.status(); s.OldestReadyAt != api.Time(start) || s.OldestReadyAgeMillis != 1_500 || s.NextDueAt != api.Time(start+90_000) {
		t.Errorf("status: %+v", s)
	}
	d := b.one()
	if s := b.status(); s.OldestReadyAt != api.Time(start+1_000) || s.NextDueAt != api.Time(b.now+30_000) {
		t.Errorf("status: %+v", s)
	}
	b.ack(d)
	if s := b.status(); s.NextDueAt != api.Time(start+90_000) {
		t.Errorf("the lease that ended is still next: %+v", s)
	}
}

func TestProtectedFieldsAreHiddenFromWorkersAndRefusedFromProducers(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.configure("work", b.policy(), func(r *api.Resource) { r.FieldPolicies = []api.FieldPolicy{{Path: "/card"}} })
	b.enqueue(api.Message{MessageID: "a", Payload: api.JSON(`{"card":"4111","n":1}`)})
	b.principal(api.Principal{ID: "w", Tenant: "default", Roles: []api.Role{api.RoleWorker}, PolicyEpoch: 1})
	b.tenant, b.who = "default", "w"
	b.refused("PermissionDenied/field_write", func() error {
		return b.tryEnqueue(api.Message{MessageID: "b", Payload: api.JSON(`{"card":"1"}`)})
	})
	req := api.QueuesReceiveRequest{RequestID: b.id()}
	for range 2 {
		r, err := b.tryReceive(req)
		b.must(err)
		if d := r.Deliveries[0]; string(d.Payload) != `{"n":1}` || !slices.Equal(d.Redacted, []string{"/card"}) {
			t.Errorf("delivery: %s %v", d.Payload, d.Redacted)
		}
	}
	b.principal(api.Principal{ID: "w", Tenant: "default", Roles: []api.Role{api.RoleReader}, PolicyEpoch: 2})
	if i := b.inspect("a"); string(i.Payload) != `{"n":1}` || !slices.Equal(i.Redacted, []string{"/card"}) {
		t.Errorf("inspect: %s %v", i.Payload, i.Redacted)
	}
	b.tenant, b.who = "", "root"
}

func TestAPurgeOfLargeMessagesStopsEarlyAndAsksToBeCalledAgain(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for i := range 24 {
		b.enqueue(api.Message{MessageID: fmt.Sprint("m", i), PayloadBase64: make([]byte, 900<<10), ContentType: "x"})
	}
	for steps := 0; ; steps++ {
		n := 0
		b.write(func(c *op.Ctx) (err error) { n, err = purge(c, b.owner(), 1_000); return err })
		if left := len(b.rows()); n < 1_000 {
			if left != 0 || steps != 2 {
				t.Errorf("%d rows are left after %d steps that stopped early", left, steps)
			}
			return
		}
	}
}

func TestAPurgeRemovesEveryRowOfTheLaneInBoundedSteps(t *testing.T) {
	b := newBed(t, api.QueuePolicy{DeadLetter: api.DeadLetterPolicy{MaxMessages: 3}})
	b.configure("other", api.QueuePolicy{}, func(*api.Resource) {})
	_, err := b.commit(api.Mutation{Enqueue: &api.Enqueue{Queue: "other", Message: msg("stays")}})
	b.must(err)
	everyState(b, 3)
	total := len(b.rows())
	removed := 0
	for {
		n := 0
		b.write(func(c *op.Ctx) (err error) {
			n, err = purge(c, b.owner(), 10)
			return err
		})
		if n > 10 {
			t.Fatalf("one step removed %d rows", n)
		}
		if removed += n; n == 0 {
			break
		}
	}
	left := b.rows()
	if len(left) != 4 { // message, body, ready and head of the other queue
		t.Errorf("%d of %d rows are left after removing %d", len(left), total, removed)
	}
	snap := b.store.NewSnapshot()
	defer snap.Close()
	b.must(table.DueRows.Scan(snap, table.Range{Prefix: []byte{0, shard}}, func(k table.DueKey, _ *table.None) (bool, error) {
		if k.Kind == table.DueLane {
			t.Errorf("a due row is left at %d", k.When)
		}
		return true, nil
	}))
}

func TestALaneOfADeletedQueueDoesNothingWhenDue(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(1)
	b.one()
	b.broken = true
	b.write(func(c *op.Ctx) error { // the name is gone, the rows are not yet
		keys := [][]byte{}
		id := []byte{byte(table.ResourceByName)}
		err := c.Tx.Scan(id, []byte{id[0] + 1}, false, func(k, _ []byte) (bool, error) {
			keys = append(keys, append([]byte(nil), k...))
			return true, nil
		})
		for _, k := range keys {
			c.Tx.Delete(k)
		}
		return err
	})
	b.later(40_000)
	if next := b.m.NextDue(); next != 0 && next < b.now+86_400_000 {
		t.Errorf("still due at %d", next)
	}
	snap := b.store.NewSnapshot()
	defer snap.Close()
	h, _, err := heads.Get(snap, b.owner())
	if err != nil || h.Armed != 0 || h.Counts[leased] != 1 {
		t.Errorf("head %+v, %v", h, err)
	}
}
