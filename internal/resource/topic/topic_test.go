package topic

import (
	"reflect"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
)

func TestPublishedEventsAreReadByPosition(t *testing.T) {
	b := newBed(t)
	resp, f := b.commit(publishing(event("a"), event("b")), publishing(event("c")))
	if f != nil {
		t.Fatal(f)
	}
	want := []api.MutationResult{{Kind: "publish", FirstPosition: 1, Position: 2}, {Kind: "publish", FirstPosition: 3, Position: 3}}
	if !reflect.DeepEqual(resp.Results, want) {
		t.Errorf("results %+v", resp.Results)
	}
	page, f := b.read(api.EventsReadRequest{Source: ofOrders, Limit: 2})
	if f != nil {
		t.Fatal(f)
	}
	if len(page.Events) != 2 || page.Tail != 3 || page.FirstAvailable != 1 || page.Examined.Records != 2 {
		t.Errorf("first page %+v", page)
	}
	page, f = b.read(api.EventsReadRequest{Source: ofOrders, Cursor: page.Cursor})
	if f != nil || len(page.Events) != 1 || page.Events[0].EventID != "c" || int64(page.Events[0].PublishedAt) != b.now {
		t.Errorf("second page %+v, %v", page, f)
	}
	b.check()
}

func TestAReadAtTheTailWaitsForThePublish(t *testing.T) {
	b := newBed(t)
	req := &api.EventsReadRequest{Source: ofOrders, WaitMillis: 500}
	b.complete(req)
	var keys []string
	var class string
	var empty any
	err := b.view(func(v *op.View, h *op.Handler) (err error) {
		if empty, err = h.Run(v, req); err != nil {
			return err
		}
		if h.WaitMillis(req) != 500 || !h.WaitAgain(empty) || h.WaitUntil(empty) != 0 {
			t.Errorf("an empty page does not wait")
		}
		keys, class, err = h.WaitKeys(v, req)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, hints := b.entry(b.batch(request(b.id(), publishing(event("a")))))
	if len(hints) != 1 || len(keys) != 1 || class != "" || hints[0].Key != keys[0] {
		t.Errorf("waits for %q, woken by %+v", keys, hints)
	}
	page, f := b.read(*req)
	if f != nil || len(page.Events) != 1 {
		t.Fatalf("after the publish: %+v, %v", page, f)
	}
	b.view(func(_ *op.View, h *op.Handler) error {
		if h.WaitAgain(page) {
			t.Error("a page with an event waits")
		}
		return nil
	})
}

func TestAPurgeOfATopicNeedsItsGenerationAndAPositionWithinIt(t *testing.T) {
	b := newBed(t)
	b.commit(publishing(event("a"), event("b"), event("c")))
	other := purging(1)
	other.PurgeTopic.Generation = 2
	if _, f := b.commit(other); f == nil || f.Code != fault.RevisionConflict || f.Facts["generation"] != "1" {
		t.Errorf("another generation: %v", f)
	}
	if _, f := b.commit(purging(4)); f == nil || f.Code != fault.Validation {
		t.Errorf("above the tail: %v", f)
	}
	for _, through := range []uint64{2, 2, 1} {
		resp, f := b.commit(purging(through))
		if f != nil || resp.Results[0].Position != 2 {
			t.Errorf("purge through %d: %+v, %v", through, resp, f)
		}
	}
	if _, f := b.read(api.EventsReadRequest{Source: ofOrders}); f == nil || f.Code != fault.HistoryUnavailable || f.Facts["firstAvailable"] != "3" {
		t.Errorf("read of what was purged: %v", f)
	}
	if _, f := b.commit(publishing(event("b"))); f == nil || f.Code != fault.DuplicateEventID {
		t.Errorf("repeat of a purged event: %v", f)
	}
	b.tick()
	b.check()
}

func TestABatchOfPublishesIsStoredWholeOrNotAtAll(t *testing.T) {
	b := newBed(t)
	b.commit(publishing(event("a")))
	_, f := b.commit(publishing(event("b")), publishing(event("a")))
	if f == nil || f.Code != fault.DuplicateEventID || f.Facts["mutation"] != "1" || f.Facts["eventId"] != "a" {
		t.Fatalf("batch with a repeat: %v", f)
	}
	page, _ := b.read(api.EventsReadRequest{Source: ofOrders})
	if page.Tail != 1 {
		t.Errorf("tail %d after a refused batch", page.Tail)
	}
	if _, f := b.commit(purging(1), publishing(event("b")), purging(2), publishing(event("c"))); f != nil {
		t.Fatal(f)
	}
	page, f = b.read(api.EventsReadRequest{Source: ofOrders, AfterPosition: 2})
	if f != nil || len(page.Events) != 1 || page.Events[0].EventID != "c" || page.FirstAvailable != 3 {
		t.Errorf("purges and publishes in one batch: %+v, %v", page, f)
	}
	b.tick()
	b.check()
}

func TestAnUnknownTopicIsNotFoundAndATopicIsNoStream(t *testing.T) {
	b := newBed(t)
	unknown := publishing(event("a"))
	unknown.Publish.Topic = "none"
	if _, f := b.commit(unknown); f == nil || f.Code != fault.NotFound {
		t.Errorf("publish: %v", f)
	}
	ref := ofOrders
	ref.Resource = "none"
	if _, f := b.read(api.EventsReadRequest{Source: ref}); f == nil || f.Code != fault.NotFound {
		t.Errorf("read: %v", f)
	}
	ref = ofOrders
	ref.Kind, ref.StreamID = api.SourceStream, "s"
	if _, f := b.read(api.EventsReadRequest{Source: ref}); f == nil || f.Code != fault.Validation || f.Reason != "wrong_kind" {
		t.Errorf("read of a topic as a stream: %v", f)
	}
}
