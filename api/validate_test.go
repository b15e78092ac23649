package api

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

const someUUID = "0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e"

func ptr[T any](v T) *T { return &v }

// valid requests, complete, to spoil one field at a time.
func validReceive() *QueuesReceiveRequest {
	r := &QueuesReceiveRequest{RequestID: someUUID, Lane: LaneRef{Queue: "emails"}}
	ApplyDefaults(r)
	return r
}

func validCommit(ms ...Mutation) *CommandsCommitRequest {
	r := &CommandsCommitRequest{CommandID: someUUID, Mutations: ms}
	ApplyDefaults(r)
	return r
}

func validEvent() Event { return Event{Type: "OrderCreated", Payload: JSON(`{"a":1}`)} }

func commitOfEvent(e Event) *CommandsCommitRequest {
	return validCommit(Mutation{Publish: &Publish{Topic: "t", Events: []Event{e}}})
}

func commitOfMessage(m Message) *CommandsCommitRequest {
	return validCommit(Mutation{Enqueue: &Enqueue{Queue: "q", Message: m}})
}

// wantOnly checks that a request has exactly the one violation at path, or none
// where path is "ok".
func wantOnly(t *testing.T, name string, req any, path string) {
	t.Helper()
	v := Validate(req)
	switch {
	case path == "ok" && len(v) != 0:
		t.Errorf("%s: refused: %v", name, v)
	case path != "ok" && (len(v) != 1 || v[0].Path != path):
		t.Errorf("%s: got %v, want one violation at %s", name, v, path)
	}
}

func TestNumbersAreAcceptedUpToTheirBoundsAndNotBeyond(t *testing.T) {
	for _, c := range []struct {
		field    string
		min, max int64
	}{
		{"MaxMessages", 1, 256}, {"MaxBytes", 1, 8 << 20}, {"LeaseSeconds", 1, 43_200}, {"WaitMillis", 0, 20_000},
	} {
		path := "/" + strings.ToLower(c.field[:1]) + c.field[1:]
		for n, want := range map[int64]string{c.min: "ok", c.max: "ok", c.max + 1: path, c.min - 1: path, math.MinInt64: path, math.MaxInt64: path} {
			r := validReceive()
			reflect.ValueOf(r).Elem().FieldByName(c.field).SetInt(n)
			wantOnly(t, c.field, r, want)
		}
	}
}

func TestPositionsAndRevisionsAreAcceptedUpTo2To63(t *testing.T) {
	for n, want := range map[uint64]string{0: "ok", math.MaxInt64: "ok", 1 << 63: "/mutations/0/expectedRevision", math.MaxUint64: "/mutations/0/expectedRevision"} {
		wantOnly(t, "expectedRevision", validCommit(Mutation{DeleteDocument: &DeleteDocument{Collection: "c", ID: "i", ExpectedRevision: &n}}), want)
	}
	for n, want := range map[uint64]string{0: "/mutations/0/throughPosition", 1: "ok", math.MaxInt64: "ok", 1 << 63: "/mutations/0/throughPosition"} {
		wantOnly(t, "throughPosition", validCommit(Mutation{PurgeTopic: &PurgeTopic{Topic: "t", ThroughPosition: n}}), want)
	}
}

func TestPriorityZeroIsAPriorityAndAbsentIsFour(t *testing.T) {
	for n, want := range map[int]string{-1: "/mutations/0/message/priority", 0: "ok", 9: "ok", 10: "/mutations/0/message/priority"} {
		wantOnly(t, "priority", commitOfMessage(Message{Payload: JSON("1"), Priority: &n}), want)
	}
	r := commitOfMessage(Message{Payload: JSON("1")})
	if p := r.Mutations[0].Enqueue.Message.Priority; p == nil || *p != 4 {
		t.Errorf("default priority is %v", p)
	}
}

func TestIdentifiersAreOneTo256BytesNotBlankWithoutControlCharacters(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"one byte":              {"a", true},
		"256 bytes":             {strings.Repeat("a", 256), true},
		"257 bytes":             {strings.Repeat("a", 257), false},
		"256 bytes of é":        {strings.Repeat("é", 128), true},
		"258 bytes of é":        {strings.Repeat("é", 129), false},
		"empty":                 {"", false},
		"a space":               {" ", false},
		"an ideographic space":  {"\u3000", false},
		"a space inside":        {"a b", true},
		"slash and percent":     {"a/b%c", true},
		"emoji":                 {"😀", true},
		"NUL":                   {"a\x00", false},
		"new line":              {"a\n", false},
		"DEL":                   {"a\x7f", false},
		"a C1 control":          {"a\u0085", false},
		"invalid UTF-8":         {"a\xff", false},
		"half a surrogate pair": {"\xed\xa0\x80", false},
	} {
		r := validReceive()
		r.Lane.Queue = c.text
		want := "/lane/queue"
		if c.ok {
			want = "ok"
		}
		wantOnly(t, name, r, want)
		r = validReceive()
		r.Lane.Partition.Tenant = c.text
		if want != "ok" {
			want = "/lane/partition/tenant"
		}
		wantOnly(t, name+" as tenant", r, want)
	}
}

func TestACommandIDIsALowerCaseUUID(t *testing.T) {
	for text, ok := range map[string]bool{
		someUUID: true, NewCommandID(): true, "": false, strings.ToUpper(someUUID): false,
		"{" + someUUID + "}": false, strings.ReplaceAll(someUUID, "-", ""): false, someUUID[:35]: false, someUUID + "0": false,
		"0190b6a0_5c1e-7c3a-9d5e-2f1b8a6c4d3e": false, "g190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e": false,
		"00000000-0000-0000-0000-000000000000": false,
	} {
		r := validReceive()
		r.RequestID = text
		want := "/requestId"
		if ok {
			want = "ok"
		}
		wantOnly(t, text, r, want)
	}
}

func TestAPayloadIsJSONOrBytesButNeverBothOrNeither(t *testing.T) {
	const at = "/mutations/0/events/0"
	for name, c := range map[string]struct {
		e    Event
		path string
	}{
		"JSON":                           {Event{Payload: JSON(`{}`)}, "ok"},
		"null":                           {Event{Payload: JSON(`null`)}, "ok"},
		"bytes":                          {Event{PayloadBase64: []byte{0}}, "ok"},
		"bytes with a type":              {Event{PayloadBase64: []byte{0}, ContentType: "image/png"}, "ok"},
		"no bytes with a type":           {Event{ContentType: "text/plain"}, "ok"},
		"nothing":                        {Event{}, at + "/payload"},
		"both":                           {Event{Payload: JSON(`1`), PayloadBase64: []byte{0}}, at + "/payloadBase64"},
		"JSON with a type":               {Event{Payload: JSON(`1`), ContentType: "text/plain"}, at + "/contentType"},
		"malformed JSON":                 {Event{Payload: JSON(`{"a":}`)}, at + "/payload"},
		"two values":                     {Event{Payload: JSON(`1 2`)}, at + "/payload"},
		"repeated names":                 {Event{Payload: JSON(`{"a":1,"\u0061":2}`)}, at + "/payload"},
		"invalid UTF-8":                  {Event{Payload: JSON("\"\xff\"")}, at + "/payload"},
		"32 levels":                      {Event{Payload: JSON(strings.Repeat("[", 32) + strings.Repeat("]", 32))}, "ok"},
		"33 levels":                      {Event{Payload: JSON(strings.Repeat("[", 33) + strings.Repeat("]", 33))}, at + "/payload"},
		"33 levels of objects":           {Event{Payload: JSON(strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33))}, at + "/payload"},
		"brackets in a text":             {Event{Payload: JSON(`"` + strings.Repeat(`[\"{`, 40) + `"`)}, "ok"},
		"JSON of 1 MiB":                  {Event{Payload: JSON(`"` + strings.Repeat("x", 1<<20-2) + `"`)}, "ok"},
		"JSON of 1 MiB + 1":              {Event{Payload: JSON(`"` + strings.Repeat("x", 1<<20-1) + `"`)}, at + "/payload"},
		"bytes of 1 MiB":                 {Event{PayloadBase64: make([]byte, 1<<20)}, "ok"},
		"bytes of 1 MiB + 1":             {Event{PayloadBase64: make([]byte, 1<<20+1)}, at + "/payloadBase64"},
		"content type of 257 bytes":      {Event{ContentType: strings.Repeat("x", 257)}, at + "/contentType"},
		"content type of invalid UTF-8":  {Event{ContentType: "\xff"}, at + "/contentType"},
		"schema version below 1":         {Event{Payload: JSON(`1`), SchemaVersion: -1}, at + "/schemaVersion"},
		"occurred before 1970":           {Event{Payload: JSON(`1`), OccurredAt: -1}, at + "/occurredAt"},
		"occurred at the last instant":   {Event{Payload: JSON(`1`), OccurredAt: MaxTime}, "ok"},
		"occurred after the last":        {Event{Payload: JSON(`1`), OccurredAt: MaxTime + 1}, at + "/occurredAt"},
		"blank correlation id":           {Event{Payload: JSON(`1`), CorrelationID: " "}, at + "/correlationId"},
		"event id of 257 bytes":          {Event{Payload: JSON(`1`), EventID: strings.Repeat("x", 257)}, at + "/eventId"},
		"white space around the payload": {Event{Payload: JSON(" 1\n")}, "ok"},
	} {
		c.e.Type = "x"
		wantOnly(t, name, commitOfEvent(c.e), c.path)
	}
}

func TestADocumentIsAnObject(t *testing.T) {
	for doc, want := range map[string]string{
		`{}`: "ok", ` {"a":[1]}`: "ok", `[]`: "/mutations/0/document", `"x"`: "/mutations/0/document",
		`null`: "/mutations/0/document", ``: "/mutations/0/document",
	} {
		wantOnly(t, doc, validCommit(Mutation{PutDocument: &PutDocument{Collection: "c", ID: "i", Document: JSON(doc)}}), want)
	}
}

func TestHeadersAreAtMost64And32KiBTogether(t *testing.T) {
	const at = "/mutations/0/events/0/headers"
	many := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[strings.Repeat("h", i+1)] = ""
		}
		return m
	}
	for name, c := range map[string]struct {
		headers map[string]string
		path    string
	}{
		"64":                     {many(64), "ok"},
		"65":                     {many(65), at},
		"32 KiB":                 {map[string]string{"h": strings.Repeat("v", 32<<10-1)}, "ok"},
		"32 KiB + 1":             {map[string]string{"h": strings.Repeat("v", 32<<10)}, at},
		"empty name":             {map[string]string{"": "v"}, at},
		"name with a control":    {map[string]string{"h\n": "v"}, at},
		"name of 257 bytes":      {map[string]string{strings.Repeat("h", 257): "v"}, at},
		"value of invalid UTF-8": {map[string]string{"a/b": "\xff"}, at + "/a~1b"},
		"empty value":            {map[string]string{"h": ""}, "ok"},
	} {
		e := validEvent()
		e.Headers = c.headers
		wantOnly(t, name, commitOfEvent(e), c.path)
	}
}

func TestListsAreAcceptedUpToTheirBoundsAndNotBeyond(t *testing.T) {
	events := func(n int) []Event {
		out := make([]Event, n)
		for i := range out {
			out[i] = validEvent()
		}
		return out
	}
	for n, want := range map[int]string{0: "/mutations/0/events", 1: "ok", 256: "ok", 257: "/mutations/0/events"} {
		wantOnly(t, "events", validCommit(Mutation{Publish: &Publish{Topic: "t", Events: events(n)}}), want)
	}
	for n, want := range map[int]string{0: "/mutations", 1: "ok", 256: "ok", 257: "/mutations"} {
		ms := make([]Mutation, n)
		for i := range ms {
			ms[i] = Mutation{DeleteDocument: &DeleteDocument{Collection: "c", ID: "i"}}
		}
		wantOnly(t, "mutations", validCommit(ms...), want)
	}
	for n, want := range map[int]string{0: "/items", 1: "ok", 256: "ok", 257: "/items"} {
		r := &QueuesCompleteRequest{CommandID: someUUID, Lane: LaneRef{Queue: "q"}}
		for range n {
			r.Items = append(r.Items, CompleteItem{Token: "t", Action: ActionAck})
		}
		ApplyDefaults(r)
		wantOnly(t, "items", r, want)
	}
	for n, want := range map[int]string{0: "ok", 256: "ok", 257: "/effects"} {
		r := &QueuesProcessRequest{CommandID: someUUID, Lane: LaneRef{Queue: "q"}, Token: "t", HandlerScope: "h"}
		for range n {
			r.Effects = append(r.Effects, Mutation{DeleteDocument: &DeleteDocument{Collection: "c", ID: "i"}})
		}
		ApplyDefaults(r)
		wantOnly(t, "effects", r, want)
	}
	for n, want := range map[int]string{0: "/collection/indexes/0/paths", 1: "ok", 8: "ok", 9: "/collection/indexes/0/paths"} {
		r := validCollection()
		r.Collection.Indexes[0].Paths = strings.Split(strings.Repeat("/a,", n), ",")[:n]
		wantOnly(t, "paths", r, want)
	}
}

func validCollection() *ResourcesConfigureRequest {
	r := &ResourcesConfigureRequest{
		CommandID: someUUID, Name: "orders", Kind: KindCollection,
		Collection: &CollectionPolicy{Indexes: []IndexDefinition{{Name: "byState", Paths: []string{"/state"}}}},
	}
	ApplyDefaults(r)
	return r
}

func TestAViolationBelowAMutationIsNamedByItsFlatPath(t *testing.T) {
	e := validEvent()
	e.Type = ""
	wantOnly(t, "type", validCommit(
		Mutation{DeleteDocument: &DeleteDocument{Collection: "c", ID: "i"}},
		Mutation{AppendEvents: &AppendEvents{StreamSet: "s", StreamID: "i", Expected: ExpectAny(), Events: []Event{validEvent(), e}}},
	), "/mutations/1/events/1/type")
}

func TestAtMostTwentyViolationsAreTold(t *testing.T) {
	r := validCommit(make([]Mutation, 200)...)
	if v := Validate(r); len(v) != 20 {
		t.Errorf("%d violations", len(v))
	}
	e := ValidationError(Validate(r))
	if e == nil || e.Detail != "mutations/0/kind: exactly one kind of mutation is required (and 19 more)" {
		t.Errorf("got %v", e)
	}
	if ValidationError(nil) != nil {
		t.Error("no violations are an error")
	}
}

func TestValidationOfAValidRequestIsFreeOfAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools drop what they are given")
	}
	receive, commit := validReceive(), commitOfEvent(validEvent())
	Validate(receive)
	Validate(commit)
	for name, req := range map[string]any{"receive": receive, "commit": commit} {
		if n := testing.AllocsPerRun(100, func() { Validate(req) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkValidateAReceive(b *testing.B) {
	r := validReceive()
	b.ReportAllocs()
	for b.Loop() {
		Validate(r)
	}
}

func BenchmarkValidateABatchOf100Events(b *testing.B) {
	r := validCommit(Mutation{Publish: &Publish{Topic: "t"}})
	for range 100 {
		r.Mutations[0].Publish.Events = append(r.Mutations[0].Publish.Events,
			Event{Type: "OrderCreated", Payload: Of(map[string]string{"text": strings.Repeat("x", 245)})})
	}
	ApplyDefaults(r)
	if v := Validate(r); v != nil {
		b.Fatal(v)
	}
	b.ReportAllocs()
	for b.Loop() {
		Validate(r)
	}
}
