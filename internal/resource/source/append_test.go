package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

func TestEventsGetPositionsFromOneInOrder(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	a, err := b.publish(numbered(1, 3)...)
	b.must(err)
	if a.First != 1 || a.Last != 3 || a.IDs != nil {
		t.Errorf("first batch: %+v", a)
	}
	a, err = b.publish(numbered(4, 2)...)
	b.must(err)
	if a.First != 4 || a.Last != 5 {
		t.Errorf("second batch: %+v", a)
	}
	p, err := b.read(Read{})
	b.must(err)
	for i, e := range p.Events {
		if e.Position != uint64(i+1) || e.EventID != fmt.Sprintf("e%d", i+1) || string(e.Payload) != fmt.Sprint(i+1) {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if len(p.Events) != 5 {
		t.Errorf("%d events", len(p.Events))
	}
	b.check()
}

func TestARepeatOfAnEventIsDuplicateWithTheSameContentAndConflictWithOther(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	full := api.Event{
		EventID: "e1", Type: "Placed", Payload: api.JSON(`{"n":1}`), SchemaVersion: 1,
		Headers: map[string]string{"a": "1", "b": "2", "c": "3"}, OccurredAt: 5, CorrelationID: "co", CausationID: "ca",
	}
	_, err := b.publish(full)
	b.must(err)
	b.now += 5000 // equality does not depend on logged time
	f := wantCode(t, fault1(b.publish(full)), fault.DuplicateEventID, "same_content")
	if f.Facts["position"] != "1" || f.Facts["eventId"] != "e1" {
		t.Errorf("facts: %v", f.Facts)
	}
	for name, change := range map[string]func(e *api.Event){
		"payload":       func(e *api.Event) { e.Payload = api.JSON(`{"n":2}`) },
		"type":          func(e *api.Event) { e.Type = "Paid" },
		"schemaVersion": func(e *api.Event) { e.SchemaVersion = 2 },
		"occurredAt":    func(e *api.Event) { e.OccurredAt = 6 },
		"no occurredAt": func(e *api.Event) { e.OccurredAt = 0 },
		"correlationId": func(e *api.Event) { e.CorrelationID = "co2" },
		"causationId":   func(e *api.Event) { e.CausationID = "" },
		"header value":  func(e *api.Event) { e.Headers = map[string]string{"a": "1", "b": "2", "c": "4"} },
		"header less":   func(e *api.Event) { e.Headers = map[string]string{"a": "1", "b": "2"} },
		"bytes":         func(e *api.Event) { e.Payload, e.PayloadBase64 = nil, []byte(`{"n":1}`) },
	} {
		e := full
		change(&e)
		_, err := b.publish(e)
		if fault.CodeOf(err) != fault.Conflict {
			t.Errorf("other %s: %v", name, err)
		}
	}
	b.check()
}

func fault1(_ Appended, err error) error { return err }

func TestABatchWithOneRepeatIsRejectedWhole(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 2)...)
	b.must(err)
	before := b.rows()
	wantCode(t, fault1(b.publish(event("x", "1"), event("e2", "2"), event("y", "3"))), fault.DuplicateEventID, "same_content")
	wantCode(t, fault1(b.publish(event("x", "1"), event("e2", "0"))), fault.Conflict, "event_id_taken")
	wantCode(t, fault1(b.publish(event("x", "1"), event("y", "2"), event("x", "1"))), fault.DuplicateEventID, "repeated_in_batch")
	wantCode(t, fault1(b.publish(event("x", "1"), event("y", "2"), event("x", "3"))), fault.Conflict, "repeated_in_batch")
	if b.rows() != before {
		t.Error("a rejected batch left something")
	}
	a, err := b.publish(event("x", "1"))
	if err != nil || a.First != 3 {
		t.Errorf("after the rejections: %+v, %v", a, err)
	}
	b.check()
}

func TestAnEventIDIsUniqueInItsSourceOnly(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(event("e", "1"))
	b.must(err)
	for _, id := range []string{"a", "b", "a\x00b"} {
		_, err := b.append(id, api.ExpectNoStream(), event("e", "1"))
		b.must(err)
	}
	b.must(b.apply(func(c *op.Ctx) error { // another generation is another history
		r, k, err := Stream(&c.Scope, "accounts", "a", 2)
		if err == nil {
			_, err = Append(c, r, k, 0, api.ExpectNoStream(), []api.Event{event("e", "1")})
		}
		return err
	}))
	if counts := b.check(); counts["sources"] != 5 || counts["events"] != 5 {
		t.Errorf("counts: %v", counts)
	}
}

func TestAMissingEventIDIsDerivedFromTheCommandAndThePlaceOfTheEvent(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	var first, second Appended
	b.must(b.apply(func(c *op.Ctx) error {
		want := []string{c.DerivedID(0, 0), "mine", c.DerivedID(0, 2)}
		r, k, err := Topic(&c.Scope, "orders", 1)
		b.must(err)
		first, err = Append(c, r, k, 0, api.ExpectAny(), []api.Event{event("", "1"), event("mine", "2"), event("", "3")})
		if fmt.Sprint(first.IDs) != fmt.Sprint(want) {
			t.Errorf("ids %v, want %v", first.IDs, want)
		}
		b.must(err)
		second, err = Append(c, r, k, 1, api.ExpectAny(), []api.Event{event("", "1")})
		return err
	}))
	if second.IDs[0] == first.IDs[0] {
		t.Error("two mutations of one command derive the same id")
	}
	b.check()
}

func TestAnAppendNeedsTheExpectedRevision(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	wantCode(t, fault1(b.append("a", api.ExpectExact(1), event("e1", "1"))), fault.RevisionConflict, "stream_revision")
	if _, err := b.append("a", api.ExpectNoStream(), event("e1", "1"), event("e2", "2")); err != nil {
		t.Fatal(err)
	}
	wantCode(t, fault1(b.append("a", api.ExpectNoStream(), event("e3", "3"))), fault.RevisionConflict, "stream_exists")
	wantCode(t, fault1(b.append("a", api.ExpectExact(0), event("e3", "3"))), fault.RevisionConflict, "stream_exists")
	wantCode(t, fault1(b.append("a", api.ExpectExact(1), event("e3", "3"))), fault.RevisionConflict, "stream_revision")
	f := wantCode(t, fault1(b.append("a", api.ExpectExact(3), event("e3", "3"))), fault.RevisionConflict, "stream_revision")
	if f.Facts["tail"] != "2" || f.Facts["expected"] != "3" {
		t.Errorf("facts: %v", f.Facts)
	}
	for i, expected := range []api.ExpectedStream{api.ExpectExact(2), api.ExpectAny(), api.ExpectExact(4)} {
		if a, err := b.append("a", expected, event(fmt.Sprintf("f%d", i), "0")); err != nil || a.Last != uint64(3+i) {
			t.Errorf("%+v: %+v, %v", expected, a, err)
		}
	}
	if a, err := b.append("b", api.ExpectExact(0), event("e1", "1")); err != nil || a.Last != 1 {
		t.Errorf("exact 0 of a new stream: %+v, %v", a, err)
	}
	b.check()
}

func TestASourceHoldsExactlyMaxEvents(t *testing.T) {
	b := newBed(t, api.SourcePolicy{MaxEvents: 10})
	_, err := b.publish(numbered(1, 9)...)
	b.must(err)
	f := wantCode(t, fault1(b.publish(numbered(10, 2)...)), fault.ResourceExhausted, "source_full") // one above
	if f.Facts["limit"] != "maxEvents" || f.Facts["max"] != "10" || f.Facts["current"] != "9" || f.Facts["needed"] != "11" {
		t.Errorf("facts: %v", f.Facts)
	}
	_, err = b.publish(numbered(10, 1)...) // at
	b.must(err)
	wantCode(t, fault1(b.publish(event("x", "0"))), fault.ResourceExhausted, "source_full")
	_, err = b.purge(3)
	b.must(err)
	wantCode(t, fault1(b.publish(numbered(20, 4)...)), fault.ResourceExhausted, "source_full")
	_, err = b.publish(numbered(20, 3)...)
	b.must(err)
	b.check()
}

func TestASourceHoldsExactlyMaxBytesAsTheyAreStored(t *testing.T) {
	wide := newBed(t, api.SourcePolicy{})
	_, err := wide.publish(numbered(1, 7)...)
	wide.must(err)
	h := wide.head(wide.orders())
	exact := int64(h.Bytes())
	stored := 0 // what the rows really take
	wide.must(wide.view(func(v *op.View) error {
		return v.R.Scan([]byte{byte(table.Event)}, []byte{byte(table.Event) + 1}, false, func(key, value []byte) (bool, error) {
			stored += len(key) + len(value)
			return true, nil
		})
	}))
	if int64(stored) != exact {
		t.Fatalf("the head says %d bytes, the rows take %d", exact, stored)
	}
	for _, c := range []struct {
		max  int64
		fits bool
	}{{exact - 1, false}, {exact, true}, {exact + 1, true}} {
		b := newBed(t, api.SourcePolicy{MaxBytes: c.max})
		_, err := b.publish(numbered(1, 7)...)
		if c.fits {
			b.must(err)
			b.check()
			continue
		}
		f := wantCode(t, err, fault.ResourceExhausted, "source_full")
		if f.Facts["limit"] != "maxBytes" || f.Facts["needed"] != fmt.Sprint(exact) {
			t.Errorf("facts: %v", f.Facts)
		}
	}
}

func TestARepeatIsNamedEvenWhenTheSourceIsFull(t *testing.T) {
	b := newBed(t, api.SourcePolicy{MaxEvents: 1})
	_, err := b.publish(event("e1", "1"))
	b.must(err)
	wantCode(t, fault1(b.publish(event("e1", "1"))), fault.DuplicateEventID, "same_content")
}

func TestAProtectedFieldNeedsTheRightToWriteIt(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	b.topic.FieldPolicies = []api.FieldPolicy{{Path: "/card"}}
	b.install(b.topic)
	b.who = &api.Principal{ID: "p", Tenant: "default", Roles: []api.Role{api.RoleProducer}}
	wantCode(t, fault1(b.publish(event("a", `{"n":1}`), event("b", `{"card":"4711"}`))), fault.PermissionDenied, "field_write")
	_, err := b.publish(event("a", `{"n":1}`))
	b.must(err)
	b.who.FieldGrants = []api.FieldGrant{{Database: "main", Resource: "orders", Path: "/card", Rights: []api.FieldRight{api.FieldWrite}}}
	_, err = b.publish(event("b", `{"card":"4711"}`))
	b.must(err)
}

func TestNamesResolveToTheirKindAndGeneration(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	resolve := func(ref api.SourceRef) error {
		return b.view(func(v *op.View) error {
			_, _, err := Resolve(&v.Scope, ref)
			return err
		})
	}
	b.must(resolve(api.SourceRef{Resource: "orders", Kind: api.SourceTopic, Generation: 1}))
	b.must(resolve(api.SourceRef{Resource: "accounts", Kind: api.SourceStream, StreamID: "a", Generation: 9}))
	for _, c := range []struct {
		ref  api.SourceRef
		code fault.Code
	}{
		{api.SourceRef{Resource: "none", Kind: api.SourceTopic, Generation: 1}, fault.NotFound},
		{api.SourceRef{Resource: "orders", Kind: api.SourceTopic, Generation: 2}, fault.RevisionConflict},
		{api.SourceRef{Resource: "orders", Kind: api.SourceStream, StreamID: "a", Generation: 1}, fault.Validation},
		{api.SourceRef{Resource: "accounts", Kind: api.SourceTopic, Generation: 1}, fault.Validation},
		{api.SourceRef{Resource: "accounts", Kind: api.SourceStream, Generation: 1}, fault.Validation},
		{api.SourceRef{Resource: "orders", Kind: api.SourceTopic, StreamID: "a", Generation: 1}, fault.Validation},
	} {
		if err := resolve(c.ref); fault.CodeOf(err) != c.code {
			t.Errorf("%+v: %v, want %s", c.ref, err, c.code)
		}
	}
}

func TestPublishingCostsTheSameWhateverTheTopicHolds(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	const n = 100
	for round := range 5 {
		before := b.tx.Work()
		_, err := b.publish(numbered(1+round*n, n)...)
		b.must(err)
		w := b.tx.Work()
		gets, puts := w.Gets-before.Gets, w.Puts-before.Puts
		if round == 0 { // definition, its number and head are read once and stay in memory
			continue
		}
		if gets != n || puts != 2*n+1 || w.Scans != before.Scans || w.Deletes != before.Deletes {
			t.Errorf("round %d: %d reads and %d writes, want %d and %d; %d scans", round, gets, puts, n, 2*n+1, w.Scans-before.Scans)
		}
	}
	h := b.head(b.orders())
	before := b.tx.Work()
	_, err := b.publish(numbered(10_000, n)...)
	b.must(err)
	w := b.tx.Work()
	grown := b.head(b.orders())
	perEvent := (w.Bytes - before.Bytes) / n
	stored := (grown.Bytes() - h.Bytes()) / n
	if perEvent > stored+90 { // the identity: key, digest, position
		t.Errorf("an event of %d stored bytes writes %d", stored, perEvent)
	}
}

func TestPublishingWakesThoseWhoWaitForTheSource(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	b.must(b.apply(func(c *op.Ctx) error {
		r, k, err := Topic(&c.Scope, "orders", 1)
		b.must(err)
		_, err = Append(c, r, k, 0, api.ExpectAny(), numbered(1, 2))
		hints := c.Hints()
		if len(hints) != 1 || hints[0].Key != WakeKey(k) || hints[0].Count != 2 {
			t.Errorf("hints: %+v", hints)
		}
		other := k
		other.StreamID = "x"
		if WakeKey(other) == WakeKey(k) || !strings.HasPrefix(WakeKey(k), "s") {
			t.Error("the wake key does not tell sources apart")
		}
		return err
	}))
}
