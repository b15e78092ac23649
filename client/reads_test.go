package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
)

func TestIteratorsGiveEveryPageOnce(t *testing.T) {
	b := newBed(t)
	c := b.client(b.server.URL())
	const total = 1_200 // more than a page
	for from := 0; from < total; from += 200 {
		ms := make([]api.Mutation, 200)
		events := make([]api.Event, 200)
		for i := range ms {
			ms[i] = put(fmt.Sprintf("d%05d", from+i), map[string]int{"n": from + i})
			events[i] = client.Event("Added", from+i)
		}
		_, err := c.Commit(t.Context(), home, append(ms, client.Publish("news", events...), client.Append("orders", "o", events...))...)
		check(t, err)
	}
	n := 0
	for d, err := range c.Documents(t.Context(), home, "docs", "d") {
		check(t, err)
		if want := fmt.Sprintf("d%05d", n); d.ID != want {
			t.Fatalf("document %s, want %s", d.ID, want)
		}
		n++
	}
	if n != total {
		t.Errorf("%d documents", n)
	}
	n = 0
	for d, err := range c.Query(t.Context(), api.DocumentsQueryRequest{Collection: "docs", AllowFullScan: true, Limit: 500}) {
		check(t, err)
		if d.Revision != 1 {
			t.Errorf("%+v", d)
		}
		n++
	}
	if n != total {
		t.Errorf("%d documents found", n)
	}
	source := api.SourceRef{Resource: "news"}
	for after, want := range map[uint64]int{0: total, 100: total - 100, total: 0} {
		next := after
		for e, err := range c.Events(t.Context(), source, after) {
			check(t, err)
			if next++; e.Position != next {
				t.Fatalf("event %d, want %d", e.Position, next)
			}
		}
		if got := int(next - after); got != want {
			t.Errorf("after %d: %d events, want %d", after, got, want)
		}
	}
	n = 0
	for _, err := range c.Stream(t.Context(), api.StreamRef{StreamSet: "orders", StreamID: "o"}, 0) {
		check(t, err)
		if n++; n == 1_100 {
			break // on the second page
		}
	}
	if n != 1_100 {
		t.Errorf("%d events of the stream", n)
	}
	names := ""
	for r, err := range c.Resources(t.Context(), "", "") {
		check(t, err)
		names += r.Name + " "
	}
	if names != "docs jobs news orders " {
		t.Errorf("resources %s", names)
	}
}

func TestAnIteratorThatFailsSaysSoOnce(t *testing.T) {
	b := newBed(t)
	c := b.client(b.server.URL())
	n := 0
	for m, err := range c.Messages(t.Context(), api.LaneRef{Queue: "nowhere"}, "") {
		if n++; fault.CodeOf(err) != fault.NotFound || m.MessageID != "" {
			t.Errorf("%+v, %v", m, err)
		}
	}
	if n != 1 {
		t.Errorf("%d times", n)
	}
}

func TestATailGivesWhatComesUntilItsContextEnds(t *testing.T) {
	b := newBed(t)
	c := b.client(b.server.URL())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	publish := func() {
		_, err := b.db.Commit(t.Context(), home, client.Publish("news", client.Event("Added", 1), client.Event("Added", 2)))
		check(t, err)
	}
	publish()
	seen := uint64(0)
	var end error
	for e, err := range c.Tail(ctx, api.SourceRef{Resource: "news"}, 0) {
		if err != nil {
			end = err
			continue
		}
		if seen++; e.Position != seen {
			t.Fatalf("position %d, want %d", e.Position, seen)
		}
		switch seen {
		case 2, 4:
			publish()
		case 6:
			cancel()
		}
	}
	if seen != 6 || !errors.Is(end, context.Canceled) {
		t.Errorf("%d events, %v", seen, end)
	}
}
