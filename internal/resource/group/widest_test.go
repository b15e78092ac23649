package group

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/table"
)

// widest makes a group whose window is as large as any may be, every matched
// position of it leased.
func widest(t *testing.T, d api.GroupDefinition, types ...string) (b *bed, deliveries []api.GroupDelivery) {
	t.Helper()
	b = emptyBedOf(t)
	d.Policy.MaxWindow, d.Policy.MaxInFlight, d.Policy.MaxLeaseSeconds = limits.GroupWindow, limits.GroupWindow, 43_200
	b.create("g", d)
	b.kinds(len(types)*limits.GroupWindow+1, types...)
	for len(deliveries) < limits.GroupWindow {
		r, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: 256, LeaseSeconds: 43_200})
		b.must(err)
		deliveries = append(deliveries, r.Deliveries...)
	}
	return b, deliveries
}

// everyOther acknowledges every second one of a list.
func everyOther(b *bed, d []api.GroupDelivery) {
	b.t.Helper()
	for from := 0; from < len(d); from += 512 {
		var half []api.GroupDelivery
		for i := from + 1; i < min(len(d), from+512); i += 2 {
			half = append(half, d[i])
		}
		b.ack(half...)
	}
}

// sizes are the count of a table's rows and the bytes of the longest one.
func (b *bed) sizes(id table.ID) (n, longest int) {
	for k, v := range b.table(id) {
		n, longest = n+1, max(longest, len(k)+len(v))
	}
	return n, longest
}

// commitBytes is what dropping the largest window may write at once.
const commitBytes = 8 << 20

func TestCase002_AlternatingGapsInTheWidestWindowFitAndAreDroppedInOneCommit(t *testing.T) {
	b, d := widest(t, api.GroupDefinition{}, "a")
	everyOther(b, d)
	n, longest := b.sizes(rows.ID)
	if n != limits.GroupWindow || longest > 96 {
		t.Errorf("%d rows, the longest has %d bytes", n, longest)
	}
	if n, longest := b.sizes(leases.ID); n != limits.GroupWindow/256 || longest > 1<<10 {
		t.Errorf("%d lease rows, the longest has %d bytes", n, longest)
	}
	if _, longest := b.sizes(heads.ID); longest > 256 {
		t.Errorf("the head has %d bytes", longest)
	}
	s := b.status()
	if s.Counts.Matched != limits.GroupWindow || s.Counts.Runs != limits.GroupWindow/2 || s.CompletedAhead != limits.GroupWindow/2 || len(s.Window) != 1000 ||
		s.Reason != api.ReasonWindowFull || s.BlockedBy != 1 {
		t.Errorf("%+v, %s", s.Counts, s.Reason)
	}
	for range 3 { // later ones are refused, and nothing grows
		if r := b.receive(256); r.Reason != api.ReasonWindowFull || r.BlockedBy != 1 {
			t.Errorf("answered %+v", r)
		}
	}
	b.restart()
	b.pause()
	r, err := b.configure("g", typed("b"), 1)
	b.must(err)
	if r.EvaluatedAgain != limits.GroupWindow/2 || r.State.Checkpoint != 0 || b.committed > commitBytes {
		t.Errorf("evaluated again %d, checkpoint %d, a commit of %d bytes", r.EvaluatedAgain, r.State.Checkpoint, b.committed)
	}
	if n := len(b.table(rows.ID)) + len(b.table(leases.ID)); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	b.check()
}

func TestPassedOverRunsBetweenAllPositionsOfTheWidestWindowFitToo(t *testing.T) {
	b, d := widest(t, typed("a"), "a", "b")
	n, longest := b.sizes(rows.ID)
	if n != 2*limits.GroupWindow-1 || n > maxRows(limits.GroupWindow) || longest > 96 {
		t.Errorf("%d rows, the longest has %d bytes", n, longest)
	}
	if s := b.status(); s.Counts.Rows != int64(n) || s.Counts.Runs != limits.GroupWindow-1 || s.Reason != api.ReasonWindowFull || s.BlockedBy != 1 {
		t.Errorf("%+v, %s", s.Counts, s.Reason)
	}
	b.ack(d[len(d)-1], d[1000], d[0])
	if s := b.status().State; s.Checkpoint != 2 {
		t.Errorf("checkpoint %d", s.Checkpoint)
	}
	r, err := b.trySeek(api.SubscriptionsSeekRequest{To: api.SeekBeginning})
	b.must(err)
	if r.Before != 2 || b.committed > commitBytes {
		t.Errorf("before %d, a commit of %d bytes", r.Before, b.committed)
	}
	b.looks(0, 0, "")
	b.check()
}

// keyedCommitBytes is the same where every position has a key of its own, as long
// as keys may be.
const keyedCommitBytes = 32 << 20

func TestTheWidestWindowOfTheLongestRowsIsDropped(t *testing.T) {
	if os.Getenv("KEYLOAD_LONG") == "" {
		t.Skip("it holds 200 MiB of rows; KEYLOAD_LONG=1 runs it")
	}
	b := emptyBedOf(t)
	b.create("g", api.GroupDefinition{Policy: api.GroupPolicy{
		MaxWindow: limits.GroupWindow, MaxInFlight: limits.GroupWindow, Ordered: api.OrderPerKey, OrderingHeader: "h",
	}})
	failure, delay := strings.Repeat("f", limits.FailureBytes), int64(3_600_000)
	for p := 0; p < limits.GroupWindow; p += 256 {
		list := make([]api.Event, 256)
		for i := range list {
			list[i] = event("a")
			list[i].Headers = map[string]string{"h": strings.Repeat("k", maxKeyBytes-8) + fmt.Sprintf("%08d", p+i)}
		}
		b.publish(list...)
		var items []api.CompleteItem
		for _, x := range b.receive(256).Deliveries {
			items = append(items, api.CompleteItem{Token: x.Token, Action: api.ActionNack, Failure: failure, DelayMillis: &delay})
		}
		for _, r := range b.complete(items...) {
			if r.Error != nil {
				t.Fatal(r.Error)
			}
		}
	}
	n, longest := b.sizes(rows.ID)
	if n != limits.GroupWindow || longest > 2<<10 {
		t.Errorf("%d rows, the longest has %d bytes", n, longest)
	}
	if n, _ := b.sizes(waits.ID); n != limits.GroupWindow {
		t.Errorf("%d wait", n)
	}
	b.must(second(b.trySeek(api.SubscriptionsSeekRequest{To: api.SeekNow})))
	t.Logf("a commit of %d bytes", b.committed)
	if b.committed > keyedCommitBytes {
		t.Errorf("a commit of %d bytes", b.committed)
	}
	b.check()
}
