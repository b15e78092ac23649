package source

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

func encodeEvent(e *api.Event, before uint64, now int64) []byte {
	return appendContent(appendRecordHead(nil, before, e.EventID, now), e)
}

func TestTheStoredFormsDoNotChange(t *testing.T) {
	full := api.Event{
		EventID: "e1", Type: "T", Payload: api.JSON(`{"n":1}`), Headers: map[string]string{"b": "2", "a": "1"},
		SchemaVersion: 3, OccurredAt: 1000, CorrelationID: "co", CausationID: "ca",
	}
	raw := api.Event{EventID: "e2", Type: "T", PayloadBase64: []byte{1, 2}, ContentType: "x/y", SchemaVersion: 1}
	k := Key{Owner: table.Owner{Space: table.Space{Shard: 1, Partition: [16]byte{2}}, Resource: 3}, StreamID: "s", Generation: 4}
	h := Head{Tail: 9, Cut: 5, Removed: 4, Forgotten: 3, TailBytes: 900, CutBytes: 500, KeepIDsUntil: 70, ArmedPurge: 60, ArmedIDs: 70, PinFloor: 7, ArmedAge: 80}
	for _, c := range []struct {
		name, want string
		got        []byte
	}{
		{"event", "018001026531d00f" + "1f01540309020161013101620132" + "d00f02636f026361" + "077b226e223a317d", encodeEvent(&full, 128, 1000)},
		{"byte event", "0100026532020001540103782f79020102", encodeEvent(&raw, 0, 1)},
		{"event key", "28" + "0001" + "02000000000000000000000000000000" + "00000003" + "730001" + "0000000000000004" + "0000000000000007", events.Bytes(eventKey{k, 7})},
		{"id key", "29" + "0001" + "02000000000000000000000000000000" + "00000003" + "730001" + "0000000000000004" + "6531", identities.Bytes(idKey{k, "e1"})},
		{"identity", "01" + "05000000000000000000000000000000" + "07", (&identity{[16]byte{5}, 7}).encode(nil)},
		{"id list", "01" + "8c01" + "02" + "026531" + "026532", (&idList{Until: 70, IDs: []string{"e1", "e2"}}).encode(nil)},
		{"head", "02" + "09050403" + "8407" + "f403" + "8c01" + "78" + "8c01" + "07" + "a001", h.encode(nil)},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// A head written before there were pins and ages says nothing of either.
func TestAHeadOfTheFirstVersionStillReads(t *testing.T) {
	old, err := hex.DecodeString("01" + "09050403" + "8407" + "f403" + "8c01" + "78" + "8c01")
	if err != nil {
		t.Fatal(err)
	}
	var h Head
	if err := h.decode(old); err != nil {
		t.Fatal(err)
	}
	want := Head{Tail: 9, Cut: 5, Removed: 4, Forgotten: 3, TailBytes: 900, CutBytes: 500, KeepIDsUntil: 70, ArmedPurge: 60, ArmedIDs: 70}
	if h != want {
		t.Errorf("it reads as %+v", h)
	}
	if new(Head).decode(append(old, 7)) == nil || new(Head).decode(append([]byte{3}, old[1:]...)) == nil {
		t.Error("a byte too many, or a version yet unknown, decodes")
	}
}

func drawEvent(t *rapid.T) api.Event {
	text := rapid.StringN(1, 20, 256)
	e := api.Event{
		EventID: text.Draw(t, "id"), Type: text.Draw(t, "type"),
		SchemaVersion: rapid.Int64Range(1, 1<<31-1).Draw(t, "schema"),
		OccurredAt:    api.Time(rapid.Int64Range(-1<<40, int64(api.MaxTime)).Draw(t, "occurred")),
		CorrelationID: rapid.StringN(0, 5, 256).Draw(t, "correlation"),
		CausationID:   rapid.StringN(0, 5, 256).Draw(t, "causation"),
	}
	if rapid.Bool().Draw(t, "json") {
		e.Payload = api.Of(rapid.StringN(0, 300, -1).Draw(t, "payload"))
	} else {
		e.ContentType = text.Draw(t, "contentType")
		e.PayloadBase64 = rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "bytes")
	}
	if h := rapid.MapOfN(rapid.StringN(0, 10, 200), rapid.StringN(0, 10, 200), 0, 8).Draw(t, "headers"); len(h) > 0 {
		e.Headers = h
	}
	return e
}

func TestAnEventReadsBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEvent(t)
		before, now := rapid.Uint64().Draw(t, "before"), rapid.Int64().Draw(t, "now")
		b := encodeEvent(&e, before, now)
		if len(b) > recordBound(&e) {
			t.Fatalf("%d bytes, the bound is %d", len(b), recordBound(&e))
		}
		var r Record
		if err := r.decode(b); err != nil {
			t.Fatal(err)
		}
		want := api.StoredEvent{
			Position: 7, EventID: e.EventID, Type: e.Type, Payload: e.Payload, PayloadBase64: e.PayloadBase64, ContentType: e.ContentType,
			Headers: e.Headers, SchemaVersion: e.SchemaVersion, OccurredAt: e.OccurredAt,
			CorrelationID: e.CorrelationID, CausationID: e.CausationID, PublishedAt: api.Time(now),
		}
		if got := r.Stored(7); !reflect.DeepEqual(got, want) || r.Before != before {
			t.Fatalf("got %+v (before %d), want %+v (before %d)", got, r.Before, want, before)
		}
		var at stamp
		if err := at.decode(b); err != nil || at != (stamp{before, now}) {
			t.Fatalf("its front reads as %+v, %v", at, err)
		}
		for n := range b { // every cut is noticed
			if err := new(Record).decode(b[:n]); err == nil {
				t.Fatalf("the first %d of %d bytes decode", n, len(b))
			}
		}
		if err := new(Record).decode(append(b, 0)); err == nil {
			t.Fatal("a byte too many decodes")
		}
	})
}

func TestHeadersOfAnyOrderAndSizeAreOneContent(t *testing.T) {
	e := api.Event{EventID: "e", Type: "T", ContentType: "x", SchemaVersion: 1, Headers: map[string]string{}}
	for i := range 64 {
		e.Headers[fmt.Sprintf("name-%02d", i)] = strings.Repeat("v", i*9)
	}
	want := appendContent(nil, &e)
	for range 20 { // map order differs from run to run
		again := map[string]string{}
		for k, v := range e.Headers {
			again[k] = v
		}
		e2 := e
		e2.Headers = again
		if string(appendContent(nil, &e2)) != string(want) {
			t.Fatal("the order of headers reaches the content")
		}
	}
	var r Record
	if err := r.decode(encodeEvent(&e, 0, 1)); err != nil {
		t.Fatal(err)
	}
	if got := r.Stored(1).Headers; !reflect.DeepEqual(got, e.Headers) {
		t.Errorf("headers read back: %v", got)
	}
}

func TestEncodingAnEventAllocatesNothing(t *testing.T) {
	e := event("e1", strings.Repeat("7", 256))
	buf := make([]byte, 0, 1024)
	var r Record
	n := testing.AllocsPerRun(100, func() {
		b := appendContent(appendRecordHead(buf, 5, e.EventID, 9), &e)
		digestOf(b)
		if err := r.decode(b); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for encode, digest and decode", n)
	}
}

func FuzzDecodeOfAnyBytesFailsOrReadsWhole(f *testing.F) {
	e := api.Event{EventID: "e", Type: "T", Payload: api.JSON("1"), Headers: map[string]string{"a": "b"}, OccurredAt: 3, SchemaVersion: 1}
	f.Add(encodeEvent(&e, 1, 2))
	f.Add((&idList{Until: 1, IDs: []string{"a"}}).encode(nil))
	f.Add((&Head{Tail: 300}).encode(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Record
		if r.decode(b) == nil {
			r.Stored(1)
			r.EachHeader(func(_, _ []byte) bool { return true })
		}
		var l idList
		if l.decode(b) == nil && len(l.IDs) > maxListIDs {
			t.Errorf("a list of %d ids decodes", len(l.IDs))
		}
		var h Head
		_ = h.decode(b)
		var i identity
		_ = i.decode(b)
		kr := codec.NewKeyReader(b)
		ReadKey(&kr)
	})
}
