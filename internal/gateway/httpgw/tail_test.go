package httpgw_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
)

// stream is one open tail.
type stream struct {
	t      *testing.T
	lines  *bufio.Scanner
	cancel context.CancelFunc
}

// event is one server-sent event.
type event struct{ id, name, data string }

func (b *bed) tail(query, lastID string) *stream {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	b.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/v1/events/tail?"+query, nil)
	check(b.t, err)
	req.Header.Set("Authorization", "Bearer "+b.key)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := http.DefaultClient.Do(req)
	check(b.t, err)
	b.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		b.t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	return &stream{b.t, bufio.NewScanner(resp.Body), cancel}
}

// next is the next event; comments and the retry line are passed over.
func (s *stream) next() event {
	s.t.Helper()
	var e event
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if e != (event{}) {
				return e
			}
		}
	}
	s.t.Fatalf("the stream ended: %v", s.lines.Err())
	return e
}

func (e event) position(t *testing.T) uint64 {
	t.Helper()
	var stored api.StoredEvent
	check(t, json.Unmarshal([]byte(e.data), &stored))
	return stored.Position
}

func (b *bed) publish(n int) {
	b.t.Helper()
	events := make([]api.Event, n)
	for i := range events {
		events[i] = keyload.Event("Added", map[string]int{"n": i})
	}
	_, err := b.db.Commit(b.t.Context(), api.PartitionRef{}, keyload.Publish("news", events...))
	check(b.t, err)
}

func TestATailGivesEveryEventInOrderAndThoseThatComeLater(t *testing.T) {
	b := newBed(t)
	b.publish(150)
	s := b.tail("resource=news", "")
	for want := uint64(1); want <= 150; want++ {
		if got := s.next().position(t); got != want {
			t.Fatalf("position %d, want %d", got, want)
		}
	}
	b.publish(2)
	for want := uint64(151); want <= 152; want++ {
		if got := s.next().position(t); got != want {
			t.Fatalf("position %d, want %d", got, want)
		}
	}
}

func TestATailContinuesAfterWhicheverEventWasSeenLast(t *testing.T) {
	b := newBed(t)
	b.publish(5)
	s := b.tail("resource=news", "")
	ids := make([]string, 6)
	for i := 1; i <= 5; i++ {
		ids[i] = s.next().id
	}
	b.publish(1)
	for i := 1; i <= 5; i++ {
		again := b.tail("resource=news", ids[i])
		if got := again.next().position(t); got != uint64(i)+1 {
			t.Errorf("after event %d: position %d", i, got)
		}
		again.cancel()
	}
	for query, want := range map[string]uint64{
		"resource=news&afterPosition=3": 4, "resource=news&cursor=" + url.QueryEscape(ids[5]): 6,
		"partition=default%2Fmain%2Fmain%2Fmain&resource=news&kind=topic&generation=1": 1,
	} {
		again := b.tail(query, "")
		if got := again.next().position(t); got != want {
			t.Errorf("%s: position %d, want %d", query, got, want)
		}
		again.cancel()
	}
}

func TestATailThatCannotBeginIsAProblem(t *testing.T) {
	b := newBed(t)
	for query, want := range map[string]string{
		"resource=nowhere":               "NotFound",
		"resource=jobs":                  "Validation",
		"":                               "Validation",
		"resource=news&colour=red":       "Validation",
		"resource=news&resource=news":    "Validation",
		"resource=news&afterPosition=-1": "Validation",
		"resource=news&afterPosition=1":  "Validation", // after the tail
		"resource=news&generation=9999999999999999999": "Validation",
		"resource=news&partition=a%2Fb%2Fc%2Fd%2Fe":    "Validation",
		"resource=news&cursor=x":                       "Validation",
	} {
		a := b.send(http.MethodGet, "/v1/events/tail?"+query, nil)
		if p := a.problem(t); p.Code != want || a.status != p.Status {
			t.Errorf("%s: %d %+v", query, a.status, p)
		}
	}
	a := b.send(http.MethodGet, "/v1/events/tail?resource=news", nil, "Last-Event-ID", "x~y")
	if p := a.problem(t); p.Reason != "last_event_id" {
		t.Errorf("%+v", p)
	}
}

func TestATailEndsWhenItsKeyIsRevoked(t *testing.T) {
	b := newBed(t)
	admin := b.key
	key, id := b.newKey(api.Principal{ID: "reader", Roles: []api.Role{api.RoleReader}, PolicyEpoch: 1})
	b.key = key
	b.publish(1)
	s := b.tail("resource=news", "")
	s.next()
	b.key = admin
	_, err := b.db.RevokeAPIKey(t.Context(), &api.APIKeysRevokeRequest{KeyID: id})
	check(t, err)
	b.publish(1) // may still be seen by the read that waits
	for {
		e := s.next()
		if e.name == "problem" {
			if !strings.Contains(e.data, `"code":"Unauthenticated"`) || !strings.Contains(e.data, `"status":401`) {
				t.Errorf("%+v", e)
			}
			break
		}
		if e.position(t) != 2 {
			t.Fatalf("%+v", e)
		}
	}
	for s.lines.Scan() {
		if text := s.lines.Text(); text != "" {
			t.Errorf("the stream goes on: %q", text)
		}
	}
}
