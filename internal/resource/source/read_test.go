package source

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/token"
)

func TestPagesFollowOneAnotherByCursorForwardAndBackward(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.append("a", api.ExpectAny(), numbered(1, 10)...)
	b.must(err)
	k := b.account("a")
	for _, backward := range []bool{false, true} {
		var all []uint64
		q := Read{Backward: backward, Limit: 4}
		for range 4 {
			p, err := b.readOf(b.set, k, q)
			b.must(err)
			if p.Tail != 10 || p.First != 1 || p.Cursor == "" {
				t.Errorf("page %+v", p)
			}
			all = append(all, positions(p.Events)...)
			q.Cursor = p.Cursor
		}
		want := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
		if backward {
			slices.Reverse(want)
		}
		if !slices.Equal(all, want) {
			t.Errorf("backward %t: %v", backward, all)
		}
	}
}

func TestACursorOfAnEmptyPageGoesOnWithWhatComesLater(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	p, err := b.read(Read{}) // nobody has published yet
	b.must(err)
	if len(p.Events) != 0 || p.Events == nil || p.Tail != 0 || p.First != 1 || p.Cursor == "" {
		t.Fatalf("page of an empty topic: %+v", p)
	}
	_, err = b.publish(numbered(1, 2)...)
	b.must(err)
	p, err = b.read(Read{Cursor: p.Cursor})
	b.must(err)
	if got := positions(p.Events); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("after the empty page: %v", got)
	}
	back, err := b.readOf(b.set, b.account("a"), Read{Backward: true})
	b.must(err)
	_, err = b.append("a", api.ExpectAny(), numbered(1, 2)...)
	b.must(err)
	back, err = b.readOf(b.set, b.account("a"), Read{Backward: true, Cursor: back.Cursor})
	b.must(err)
	if len(back.Events) != 0 {
		t.Errorf("backward from before the first event: %v", positions(back.Events))
	}
}

func TestAReadBeginsWithinWhatIsRetained(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 10)...)
	b.must(err)
	_, err = b.purge(4)
	b.must(err)
	for _, c := range []struct {
		after uint64
		code  fault.Code
		want  []uint64
	}{
		{0, fault.HistoryUnavailable, nil}, {3, fault.HistoryUnavailable, nil},
		{4, "", []uint64{5, 6, 7, 8, 9, 10}}, {5, "", []uint64{6, 7, 8, 9, 10}},
		{9, "", []uint64{10}}, {10, "", []uint64{}},
		{11, fault.Validation, nil}, {math.MaxUint64, fault.Validation, nil},
	} {
		p, err := b.read(Read{After: c.after})
		if fault.CodeOf(err) != c.code {
			t.Errorf("after %d: %v, want %q", c.after, err, c.code)
			continue
		}
		if err != nil {
			f := fault.From(err)
			if c.code == fault.HistoryUnavailable && (f.Facts["firstAvailable"] != "5" || f.Facts["afterPosition"] != "4") {
				t.Errorf("after %d: facts %v", c.after, f.Facts)
			}
			continue
		}
		if got := positions(p.Events); !slices.Equal(got, c.want) {
			t.Errorf("after %d: %v, want %v", c.after, got, c.want)
		}
	}
}

func TestABackwardReadBeginsWithinWhatIsRetained(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 6)...)
	b.must(err)
	_, err = b.purge(2)
	b.must(err)
	for _, c := range []struct {
		before uint64
		code   fault.Code
		want   []uint64
	}{
		{0, "", []uint64{6, 5, 4, 3}}, {7, "", []uint64{6, 5, 4, 3}}, {6, "", []uint64{5, 4, 3}},
		{4, "", []uint64{3}}, {3, "", []uint64{}},
		{2, fault.HistoryUnavailable, nil}, {8, fault.Validation, nil}, {math.MaxUint64, fault.Validation, nil},
	} {
		p, err := b.read(Read{After: c.before, Backward: true})
		if fault.CodeOf(err) != c.code {
			t.Errorf("before %d: %v, want %q", c.before, err, c.code)
		} else if err == nil && !slices.Equal(positions(p.Events), c.want) {
			t.Errorf("before %d: %v, want %v", c.before, positions(p.Events), c.want)
		}
	}
}

func TestAPageEndsAtItsRecordsAndAtItsStoredBytes(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 9)...)
	b.must(err)
	size := int64(b.head(b.orders()).Bytes()) / 9 // equal up to the bytes before it, see below
	all, err := b.read(Read{})
	b.must(err)
	if all.Examined.Records != 9 || all.Examined.Bytes != int64(b.head(b.orders()).Bytes()) {
		t.Errorf("examined %+v", all.Examined)
	}
	three, err := b.read(Read{Limit: 3})
	b.must(err)
	bytes := three.Examined.Bytes
	for _, c := range []struct {
		q        Read
		events   int
		examined int64
	}{
		{Read{Limit: 1}, 1, 1}, {Read{Limit: 8}, 8, 8}, {Read{Limit: 9}, 9, 9}, {Read{Limit: 10}, 9, 9},
		{Read{MaxBytes: bytes - 1}, 2, 3}, {Read{MaxBytes: bytes}, 3, 4}, {Read{MaxBytes: bytes + 1}, 3, 4},
		{Read{MaxBytes: 1}, 1, 2}, // one event is always returned
		{Read{MaxBytes: size * 100}, 9, 9},
	} {
		p, err := b.read(c.q)
		b.must(err)
		if len(p.Events) != c.events || p.Examined.Records != c.examined {
			t.Errorf("%+v: %d events, %d examined; want %d, %d", c.q, len(p.Events), p.Examined.Records, c.events, c.examined)
		}
	}
}

func TestAPageCostsItsEventsWhateverTheSourceHolds(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	for _, held := range []int{10, 1000} {
		for b.head(b.orders()).Tail < uint64(held) {
			_, err := b.publish(numbered(1+int(b.head(b.orders()).Tail), 10)...)
			b.must(err)
		}
		for _, backward := range []bool{false, true} {
			var w kv.Work
			b.must(b.view(func(v *op.View) error {
				_, err := ReadPage(v, b.topic, b.orders(), Read{Limit: 10, MaxBytes: 8 << 20, Backward: backward})
				w = v.R.Work()
				return err
			}))
			if w.Gets != 1 || w.Scans != 1 || w.Scanned != 10 {
				t.Errorf("%d held, backward %t: %+v", held, backward, w)
			}
		}
	}
}

func TestACursorLivesForADay(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	p, err := b.read(Read{})
	b.must(err)
	begin := b.now
	for _, c := range []struct {
		age  int64
		code fault.Code
	}{{cursorLife - 1, ""}, {cursorLife, fault.CursorExpired}, {cursorLife + 1, fault.CursorExpired}, {-5, ""}} {
		b.now = begin + c.age
		if _, err := b.read(Read{Cursor: p.Cursor}); fault.CodeOf(err) != c.code {
			t.Errorf("age %d: %v, want %q", c.age, err, c.code)
		}
	}
	if cursorLife != limits.CursorSeconds*1000 {
		t.Errorf("a cursor lives %d ms", cursorLife)
	}
	b.now = begin + cursorLife - 1 // each page has a fresh one
	next, err := b.read(Read{Cursor: p.Cursor})
	b.must(err)
	b.now += cursorLife - 1
	_, err = b.read(Read{Cursor: next.Cursor})
	b.must(err)
}

func TestACursorIsOfOneSourceAndOneDirection(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.append("a", api.ExpectAny(), numbered(1, 3)...)
	b.must(err)
	k := b.account("a")
	p, err := b.readOf(b.set, k, Read{Limit: 2})
	b.must(err)
	other := map[string]Key{"stream": b.account("b"), "topic": b.orders(), "generation": k, "partition": k, "shard": k}
	change := func(name string, fn func(k *Key)) {
		k := other[name]
		fn(&k)
		other[name] = k
	}
	change("generation", func(k *Key) { k.Generation = 2 })
	change("partition", func(k *Key) { k.Owner.Partition[3] = 1 })
	change("shard", func(k *Key) { k.Owner.Shard = 2 })
	for name, k := range other {
		_, err := b.readOf(b.set, k, Read{Cursor: p.Cursor})
		if f := fault.From(err); f == nil || f.Code != fault.TokenInvalidated || f.Reason != "other_source" {
			t.Errorf("cursor in another %s: %v", name, err)
		}
	}
	_, err = b.readOf(b.set, k, Read{Cursor: p.Cursor, Backward: true})
	wantCode(t, err, fault.TokenInvalidated, "other_direction")
	sealed, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	b.must(err)
	for i := range sealed { // no changed cursor is accepted
		sealed[i] ^= 1
		if _, err := b.readOf(b.set, k, Read{Cursor: base64.RawURLEncoding.EncodeToString(sealed)}); err == nil {
			t.Fatalf("a cursor with byte %d changed is accepted", i)
		}
		sealed[i] ^= 1
	}
	b.sealer = token.NewSealer([16]byte{2}, token.Keys{[]byte(strings.Repeat("\x09", 32))})
	_, err = b.readOf(b.set, k, Read{Cursor: p.Cursor})
	wantCode(t, err, fault.TokenInvalidated, "other_incarnation")
}

func TestACursorFitsATokenForTheLongestStreamID(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	k := b.account(strings.Repeat("\x7f", 256))
	k.Generation = math.MaxUint64
	p, err := b.readOf(b.set, k, Read{})
	b.must(err)
	if len(p.Cursor) > token.MaxBytes {
		t.Errorf("the cursor has %d bytes", len(p.Cursor))
	}
	_, err = b.readOf(b.set, k, Read{Cursor: p.Cursor})
	b.must(err)
}

func TestACursorBelowAPurgeSaysThatHistoryIsGone(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 6)...)
	b.must(err)
	p, err := b.read(Read{Limit: 2})
	b.must(err)
	_, err = b.purge(3)
	b.must(err)
	_, err = b.read(Read{Cursor: p.Cursor})
	f := wantCode(t, err, fault.HistoryUnavailable, "purged")
	if f.Facts["firstAvailable"] != "4" {
		t.Errorf("facts %v", f.Facts)
	}
}

func TestProtectedFieldsOfJSONPayloadsAreTakenOut(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	b.topic.FieldPolicies = []api.FieldPolicy{{Path: "/card"}}
	_, err := b.publish(event("a", `{"card":"4711","n":1}`), event("b", `{"n":2}`),
		api.Event{EventID: "c", Type: "Raw", PayloadBase64: []byte("4711"), ContentType: "text/plain", SchemaVersion: 1})
	b.must(err)
	b.who = &api.Principal{ID: "p", Tenant: "default", Roles: []api.Role{api.RoleReader}}
	p, err := b.read(Read{})
	b.must(err)
	if got := string(p.Events[0].Payload); got != `{"n":1}` || !slices.Equal(p.Events[0].Redacted, []string{"/card"}) {
		t.Errorf("protected event: %s, redacted %v", got, p.Events[0].Redacted)
	}
	if got := string(p.Events[1].Payload); got != `{"n":2}` || p.Events[1].Redacted != nil {
		t.Errorf("event without the field: %s, redacted %v", got, p.Events[1].Redacted)
	}
	if got := string(p.Events[2].PayloadBase64); got != "4711" || p.Events[2].ContentType != "text/plain" {
		t.Errorf("byte payload: %q", got)
	}
	b.who.FieldGrants = []api.FieldGrant{{Database: "*", Resource: "orders", Path: "/card", Rights: []api.FieldRight{api.FieldRawRead}}}
	p, err = b.read(Read{})
	b.must(err)
	if got := string(p.Events[0].Payload); got != `{"card":"4711","n":1}` || p.Events[0].Redacted != nil {
		t.Errorf("with the right: %s, redacted %v", got, p.Events[0].Redacted)
	}
}

func TestOneEventAndARunOfEventsAreReadByPosition(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	e := event("e1", "1")
	e.Headers = map[string]string{"region": "eu", "tier": "gold"}
	_, err := b.publish(append([]api.Event{e}, numbered(2, 4)...)...)
	b.must(err)
	b.must(b.view(func(v *op.View) error {
		r, err := At(&v.Scope, b.orders(), 1)
		b.must(err)
		headers := ""
		r.EachHeader(func(name, value []byte) bool { headers += fmt.Sprintf("%s=%s;", name, value); return true })
		if string(r.Type) != "Placed" || string(r.ID) != "e1" || headers != "region=eu;tier=gold;" {
			t.Errorf("event 1: %+v, headers %s", r, headers)
		}
		headers = ""
		r.EachHeader(func(name, _ []byte) bool { headers += string(name); return false })
		if headers != "region" {
			t.Errorf("headers until the first: %s", headers)
		}
		var seen []uint64
		err = Each(&v.Scope, b.orders(), 2, 5, func(p uint64, r *Record) (bool, error) {
			if string(r.ID) != fmt.Sprintf("e%d", p) {
				t.Errorf("position %d has id %s", p, r.ID)
			}
			seen = append(seen, p)
			return p < 4, nil
		})
		if !slices.Equal(seen, []uint64{2, 3, 4}) {
			t.Errorf("seen %v", seen)
		}
		return err
	}))
}
