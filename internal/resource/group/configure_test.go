package group

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
)

func typed(types ...string) api.GroupDefinition {
	return api.GroupDefinition{Filter: api.GroupFilter{EventTypes: types}}
}

// cursorAfter is the cursor of the topic after a position.
func (b *bed) cursorAfter(n uint64) string {
	b.t.Helper()
	r, err := ask(b, api.EventsRead, &api.EventsReadRequest{Source: b.news(), Limit: 1, AfterPosition: n - 1})
	b.must(err)
	return r.Cursor
}

func TestAGroupStartsWhereItsDefinitionSays(t *testing.T) {
	b := emptyBedOf(t)
	b.fill(5)
	b.must(b.purge(2))
	cursor := b.cursorAfter(4)
	for name, c := range map[string]struct {
		def  api.GroupDefinition
		want uint64
	}{
		"beginning": {api.GroupDefinition{}, 2}, "now": {api.GroupDefinition{Start: api.StartNow}, 5},
		"cursor": {api.GroupDefinition{Start: api.StartCursor, Cursor: cursor}, 4},
	} {
		r := b.create(name, c.def)
		if s := r.State; s.Checkpoint != c.want || s.Issued != c.want || s.Generation == 0 || s.OwnershipEpoch != s.Generation || s.Paused || s.Tail != 5 || !r.Changed {
			t.Errorf("%s: %+v", name, r.State)
		}
		if got := positions(b.of(name, 10)); !slices.Equal(got, upTo(c.want+1, 5)) {
			t.Errorf("%s: received %v", name, got)
		}
	}
	b.fill(1)
	if got := positions(b.of("now", 10)); !slices.Equal(got, []uint64{6}) {
		t.Errorf("received %v", got)
	}
}

func TestAGroupOfASourceWithoutEventsWaitsForTheFirst(t *testing.T) {
	b := emptyBedOf(t)
	for i, start := range []api.GroupStart{api.StartBeginning, api.StartNow} {
		if r := b.create(fmt.Sprint("g", i), api.GroupDefinition{Start: start}); r.State.Checkpoint != 0 || r.State.Tail != 0 {
			t.Errorf("%+v", r.State)
		}
	}
	b.fill(1)
	for i := range 2 {
		if got := positions(b.of(fmt.Sprint("g", i), 1)); !slices.Equal(got, []uint64{1}) {
			t.Errorf("received %v", got)
		}
	}
}

func TestAStartCursorMustBeOfThisSourceAndRetained(t *testing.T) {
	b := emptyBedOf(t)
	b.fill(5)
	early, late := b.cursorAfter(1), b.cursorAfter(5)
	other, err := ask(b, api.EventsRead, &api.EventsReadRequest{Source: b.stream("s")})
	b.must(err)
	b.must(b.purge(3))
	before := b.rows()
	for name, c := range map[string]struct{ cursor, want string }{
		"purged": {early, "HistoryUnavailable/purged"}, "of another source": {other.Cursor, "TokenInvalidated/other_source"},
		"nonsense": {"nonsense", "Validation/bad_token"}, "missing": {"", "Validation/invalid_field"},
		"altered": {early[:len(early)-2] + "AA", "Validation/bad_token"},
	} {
		_, err := b.configure("new", api.GroupDefinition{Start: api.StartCursor, Cursor: c.cursor}, 0)
		wants(t, "a cursor that is "+name, err, c.want)
	}
	_, err = b.configure("new", api.GroupDefinition{Cursor: late}, 0)
	wants(t, "a cursor without start: cursor", err, "Validation/invalid_field")
	b.same("refused configurations", before)
	b.later(24 * 3_600_000)
	_, err = b.configure("new", api.GroupDefinition{Start: api.StartCursor, Cursor: late}, 0)
	wants(t, "a cursor of yesterday", err, "CursorExpired/cursor_life")
}

func TestAnIdenticalConfigureWritesNothingAndAnotherIsAConflict(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxWindow: 10})
	b.fill(3)
	b.receive(2)
	before := b.rows()
	r, err := b.configure("g", api.GroupDefinition{Policy: api.GroupPolicy{MaxWindow: 10}}, 0)
	b.must(err)
	if r.Changed || r.State.Issued != 2 || r.Definition.Policy.MaxWindow != 10 || r.Definition.Policy.MaxAttempts != 5 {
		t.Errorf("%+v", r)
	}
	for name, d := range map[string]api.GroupDefinition{
		"policy": {Policy: api.GroupPolicy{MaxWindow: 11}},
		"filter": {Policy: api.GroupPolicy{MaxWindow: 10}, Filter: api.GroupFilter{EventTypes: []string{"a"}}},
	} {
		_, err := b.configure("g", d, 0)
		wants(t, "another "+name, err, "Conflict/group_exists")
		if facts(err)["generation"] != "1" {
			t.Errorf("facts %v", facts(err))
		}
	}
	// Where a group begins is asked of a new one only: whoever configures it at every
	// start may do so with a cursor that has grown old.
	for _, d := range []api.GroupDefinition{
		{Policy: api.GroupPolicy{MaxWindow: 10}, Start: api.StartNow},
		{Policy: api.GroupPolicy{MaxWindow: 10}, Start: api.StartCursor, Cursor: "nonsense"},
	} {
		if r, err := b.configure("g", d, 0); err != nil || r.Changed || r.State.Checkpoint != 0 || r.Definition.Start != "" {
			t.Errorf("start %s: %+v, %v", d.Start, r, err)
		}
	}
	b.same("an identical configure and refused ones", before)
}

func TestAnUpdateIsRefusedUnlessEverythingIsAsItMustBe(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(4)
	b.ack(b.receive(2).Deliveries[1])
	cursor := b.cursorAfter(4)
	refused := func(what string, d api.GroupDefinition, generation uint64, want string) {
		t.Helper()
		before := b.rows()
		_, err := b.configure("g", d, generation)
		wants(t, what, err, want)
		b.same(what, before)
	}
	refused("an update of a group that delivers", typed("b"), 1, "Conflict/not_paused")
	refused("an identical update of a group that delivers", api.GroupDefinition{}, 1, "Conflict/not_paused")
	b.pause()
	refused("an update at a later generation", typed("b"), 2, "RevisionConflict/group_generation")
	refused("an update that would move to now", api.GroupDefinition{Start: api.StartNow}, 1, "Validation/invalid_field")
	refused("an update that would move to a cursor", api.GroupDefinition{Start: api.StartCursor, Cursor: cursor}, 1, "Validation/invalid_field")
	refused("an update for a principal that is not there", api.GroupDefinition{DataPrincipal: "nobody"}, 1, "PermissionDenied/data_principal")
	before := b.rows()
	_, err := b.configure("other", typed("b"), 1)
	wants(t, "an update of no group", err, "NotFound/unknown_group")
	b.same("an update of no group", before)
	r, err := b.configure("g", api.GroupDefinition{}, 1)
	b.must(err)
	if r.Changed || r.State.Generation != 1 || !r.State.Paused {
		t.Errorf("identical: %+v", r)
	}
	b.same("an identical update", before)
}

func TestAnUpdateKeepsTheCheckpointAndTheNewFilterSeesEverythingAboveIt(t *testing.T) {
	b := emptyBedOf(t)
	b.create("g", typed("a"))
	b.kinds(30, "b", "a", "c")
	d := b.receive(6).Deliveries // 2 5 8 11 14 17
	b.ack(d[0], d[1], d[3], d[4])
	b.looks(7, 17, "8* [9-16] 17*")
	b.pause()
	r, err := b.configure("g", typed("b", "a"), 1)
	b.must(err)
	if s := r.State; s.Generation != 2 || s.OwnershipEpoch != 2 || s.Checkpoint != 7 || s.Issued != 7 || !s.Paused || !r.Changed {
		t.Errorf("%+v", s)
	}
	if r.EvaluatedAgain != 8 || r.SkippedBelow != 5 { // 9–16 above; 1, 3, 4, 6 and 7 below
		t.Errorf("evaluated again %d, skipped below %d", r.EvaluatedAgain, r.SkippedBelow)
	}
	if !slices.Equal(r.Definition.Filter.EventTypes, []string{"b", "a"}) || !slices.Equal(b.status().Definition.Filter.EventTypes, []string{"b", "a"}) {
		t.Errorf("the definition in force is %+v", r.Definition)
	}
	b.looks(7, 7, "")
	b.check()
	for _, x := range d {
		if out := b.complete(api.CompleteItem{Token: x.Token, Action: api.ActionAck})[0]; code(out.Error) != "TokenInvalidated/generation_changed" {
			t.Errorf("an old token: %+v", out)
		}
	}
	b.resume()
	var got []uint64
	for {
		r := b.receive(5)
		if len(r.Deliveries) == 0 {
			break
		}
		got = append(got, positions(r)...)
		b.ack(r.Deliveries...)
	}
	want := slices.DeleteFunc(upTo(8, 30), func(p uint64) bool { return p%3 == 0 })
	if !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
	b.looks(30, 30, "")
}

func TestAnUpdateLeavesDeadLettersAndEndsTheirLeases(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(4)
	d := b.receive(3).Deliveries
	b.terminal(d[0])
	b.nack(d[1], 60_000)
	_, err := b.redrive(1, 0)
	b.must(err)
	again := b.receive(2).Deliveries // the dead letter 1, and 4
	if len(again) != 2 || !again[0].Redriven {
		t.Fatalf("%+v", again)
	}
	b.reconfigure(typed("a"))
	if s := b.status(); s.Counts.DeadLetters != 1 || s.Counts.Leased != 1 || s.Counts.Rows != 0 || s.State.Checkpoint != 1 {
		t.Errorf("%+v", s)
	}
	if out := b.complete(api.CompleteItem{Token: again[0].Token, Action: api.ActionAck})[0]; code(out.Error) != "TokenInvalidated/generation_changed" {
		t.Errorf("%+v", out)
	}
	b.check()
	b.later(31_000) // its lease ends by itself
	b.later(1_000)
	r := b.receive(10)
	if !slices.Equal(positions(r), []uint64{1, 2, 3, 4}) || !r.Deliveries[0].Redriven {
		t.Errorf("received %v", positions(r))
	}
}

func TestASourceHasNoMoreGroupsThanItsBound(t *testing.T) {
	b := emptyBedOf(t)
	b.write(func(c *op.Ctx) error {
		wanted := defined(api.GroupDefinition{})
		for i := range limits.GroupsPerSource - 2 {
			def := &definition{ID: uint64(1_000_000 + i), Wanted: wanted, Fingerprint: fingerprintOf(&wanted), CreatedAt: b.now, Tenant: "default"}
			n := name{b.key(), fmt.Sprint("filler", i)}
			definitions.Put(c.Tx, n, def)
			heads.Put(c.Tx, def.ref(n), &head{Generation: def.ID, Epoch: def.ID})
		}
		return nil
	})
	b.create("one below", api.GroupDefinition{})
	b.create("at", api.GroupDefinition{})
	before := b.rows()
	_, err := b.configure("above", api.GroupDefinition{}, 0)
	wants(t, "one above", err, "ResourceExhausted/group_limit")
	b.same("a refused configure", before)
	b.must(b.delete("at", 0))
	b.create("above", api.GroupDefinition{})
	var names []string
	cursor := ""
	for {
		r, err := ask(b, api.SubscriptionsList, &api.SubscriptionsListRequest{Source: b.news(), Limit: 300, Cursor: cursor})
		b.must(err)
		for _, g := range r.Groups {
			names = append(names, g.Group)
		}
		if cursor = r.Cursor; cursor == "" {
			break
		}
	}
	if len(names) != limits.GroupsPerSource || !slices.IsSorted(names) {
		t.Errorf("%d groups are listed", len(names))
	}
}

func TestEqualDefinitionsAreStoredAsEqualBytesWhateverTheOrderOfTheirMaps(t *testing.T) {
	var first []byte
	for range 20 {
		headers := map[string][]string{}
		for i := range 16 {
			headers[fmt.Sprint("h", i)] = []string{"x"}
		}
		d := defined(api.GroupDefinition{Filter: api.GroupFilter{Headers: headers}})
		record := encodeDefinition(nil, &definition{Wanted: d, Fingerprint: fingerprintOf(&d)})
		if first == nil {
			first = record
		}
		if !bytes.Equal(record, first) {
			t.Fatal("the records differ")
		}
	}
}
