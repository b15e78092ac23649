package group

import (
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/table"
)

func TestDeliveriesComeInOrderAndAcksMoveTheCheckpointThroughThePrefix(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(5)
	b.looks(0, 0, "")
	r := b.receive(3)
	if !slices.Equal(positions(r), []uint64{1, 2, 3}) || r.Generation != 1 || r.Examined.Positions != 3 {
		t.Fatalf("received %+v", r)
	}
	d := r.Deliveries[1]
	if d.Attempt != 1 || d.LeaseUntil != api.Time(start+30_000) || d.Event.EventID != "e2" || string(d.Event.Payload) != "1" || d.Redriven || d.LeaseVersion == 0 {
		t.Errorf("delivery %+v", d)
	}
	b.looks(0, 3, "1* 2* 3*")
	b.ack(r.Deliveries[0])
	b.looks(1, 3, "2* 3*")
	b.ack(r.Deliveries[1:]...)
	b.looks(3, 3, "")
	b.ack(b.receive(2).Deliveries...)
	b.looks(5, 5, "")
}

func TestAcksOutOfOrderJoinIntoRunsAndTheHeadReleasesThemAll(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(13)
	d := b.receive(12).Deliveries
	for _, step := range []struct {
		ack    []int
		at     uint64
		window string
	}{
		{[]int{1, 2, 3}, 3, "4* 5* 6* 7* 8* 9* 10* 11* 12*"},
		{[]int{6}, 3, "4* 5* [6-6] 7* 8* 9* 10* 11* 12*"},
		{[]int{5}, 3, "4* [5-6] 7* 8* 9* 10* 11* 12*"},
		{[]int{10, 8}, 3, "4* [5-6] 7* [8-8] 9* [10-10] 11* 12*"},
		{[]int{9}, 3, "4* [5-6] 7* [8-10] 11* 12*"}, // the picture of messaging §3
		{[]int{7}, 3, "4* [5-10] 11* 12*"},
		{[]int{12, 4}, 10, "11* [12-12]"},
		{[]int{11}, 12, ""},
	} {
		for _, p := range step.ack {
			b.ack(d[p-1])
		}
		b.looks(step.at, 12, step.window)
		b.check()
	}
}

func TestAcksOfOneCommandInAnyOrderAreAsThoseOfMany(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(12)
	d := b.receive(12).Deliveries
	b.ack(d[9], d[1], d[7], d[0], d[8], d[4], d[2])
	b.looks(3, 12, "4* [5-5] 6* 7* [8-10] 11* 12*")
	b.ack(d[10], d[3], d[6], d[5])
	b.looks(11, 12, "12*")
}

func TestARestartInTheMiddleChangesNothing(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(20)
	d := b.receive(10).Deliveries
	b.ack(d[2], d[3], d[7])
	b.nack(d[0], 60_000)
	before, status := b.rows(), *b.status()
	b.restart()
	b.same("a restart", before)
	if now := b.status(); now.State != status.State || now.Counts != status.Counts || now.Totals != status.Totals {
		t.Errorf("%+v, want %+v", now, status)
	}
	b.looks(0, 10, "1 2* [3-4] 5* 6* 7* [8-8] 9* 10*")
	b.ack(d[1]) // its lease is live still
	b.looks(0, 10, "1 [2-4] 5* 6* 7* [8-8] 9* 10*")
	if r := b.receive(3); !slices.Equal(positions(r), []uint64{11, 12, 13}) {
		t.Errorf("received %v", positions(r))
	}
}

func TestAHeldHeadCostsThreeRowsAndReleasesTheWholeWindowInOneCommit(t *testing.T) {
	const window = 64
	b := newBed(t, api.GroupPolicy{MaxWindow: window})
	b.fill(3 * window)
	head := b.one()
	for range window - 1 {
		b.ack(b.one())
		if s := b.status(); s.Counts.Rows > 3 || len(b.table(rows.ID)) > 3 {
			t.Fatalf("%d rows: %s", s.Counts.Rows, b.window())
		}
	}
	b.looks(0, window, "1* [2-64]")
	r := b.receive(5)
	if len(r.Deliveries) != 0 || r.Reason != api.ReasonWindowFull || r.BlockedBy != 1 || r.NextDueAt != head.LeaseUntil {
		t.Errorf("answered %+v", r)
	}
	if s := b.status(); s.Reason != api.ReasonWindowFull || s.BlockedBy != 1 || s.CompletedAhead != window-1 || s.Counts.Matched != window ||
		s.OldestUnfinished == nil || s.OldestUnfinished.From != 1 || s.OldestUnfinished.Holder != b.who || s.Lag != 3*window {
		t.Errorf("status %+v", s)
	}
	position := b.m.Head().Position
	b.ack(head)
	if b.m.Head().Position != position+1 {
		t.Error("it took more than one command")
	}
	b.looks(window, window, "")
	if r := b.receive(5); !slices.Equal(positions(r), upTo(window+1, window+5)) {
		t.Errorf("received %v", positions(r))
	}
}

func TestTheWindowTakesMaxWindowPositionsAndNotOneMore(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxWindow: 8})
	b.fill(20)
	if r := b.receive(7); len(r.Deliveries) != 7 {
		t.Fatalf("received %d", len(r.Deliveries))
	}
	if r := b.receive(2); !slices.Equal(positions(r), []uint64{8}) {
		t.Fatalf("received %v", positions(r))
	}
	if r := b.receive(1); len(r.Deliveries) != 0 || r.Reason != api.ReasonWindowFull || r.BlockedBy != 1 {
		t.Errorf("answered %+v", r)
	}
	b.later(31_000) // retries of the window come whatever its size
	if r := b.receive(20); !slices.Equal(positions(r), upTo(1, 8)) {
		t.Errorf("received %v, %s", positions(r), r.Reason)
	}
}

func TestAWindowOfOneGoesOnOneByOne(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxWindow: 1})
	b.fill(3)
	for p := uint64(1); p <= 3; p++ {
		r := b.receive(3)
		if !slices.Equal(positions(r), []uint64{p}) {
			t.Fatalf("received %v, want %d", positions(r), p)
		}
		if r := b.receive(1); p < 3 && r.Reason != api.ReasonWindowFull {
			t.Errorf("answered %+v", r)
		}
		b.ack(r.Deliveries...)
		b.looks(p, p, "")
	}
}

func TestLeasesAreBoundedByMaxInFlight(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxInFlight: 3})
	b.fill(10)
	d := b.receive(2).Deliveries
	d = append(d, b.receive(5).Deliveries...)
	if len(d) != 3 {
		t.Fatalf("%d leases", len(d))
	}
	if r := b.receive(1); len(r.Deliveries) != 0 || r.Reason != api.ReasonInFlightLimit || r.NextDueAt != d[0].LeaseUntil {
		t.Errorf("answered %+v", r)
	}
	b.nack(d[2], 60_000) // what waits takes no lease
	if r := b.receive(5); !slices.Equal(positions(r), []uint64{4}) {
		t.Errorf("received %v", positions(r))
	}
}

// table is the rows of one table by key.
func (b *bed) table(id table.ID) map[string]string {
	out := map[string]string{}
	for k, v := range b.rows() {
		if k[0] == byte(id) {
			out[k] = v
		}
	}
	return out
}
