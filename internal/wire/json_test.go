package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// nested is n arrays inside each other.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// publish is a batch with one event that has the given fields beside its type.
func publish(fields string) string {
	return `{"mutations":[{"kind":"publish","topic":"t","events":[{"type":"x",` + fields + `}]}]}`
}

func TestMalformedJSONIsRefusedAtItsPlaceWithoutItsValue(t *testing.T) {
	const event = "/mutations/0/events/0"
	receive := func() any { return new(api.QueuesReceiveRequest) }
	commit := func() any { return new(api.CommandsCommitRequest) }
	for _, c := range []struct {
		name   string
		into   func() any
		body   string
		reason string
		path   string
	}{
		{"empty", receive, " \n", "malformed_json", ""},
		{"not an object", receive, `["SECRET"]`, "malformed_json", ""},
		{"null", receive, `null`, "malformed_json", ""},
		{"truncated", receive, `{"requestId":"SECRET`, "malformed_json", "/requestId"},
		{"truncated in a payload", commit, `{"mutations":[{"kind":"enqueue","message":{"payload":{"SECRET":`, "malformed_json", "/mutations/0/message/payload"},
		{"trailing garbage", receive, `{"requestId":"a"} SECRET`, "malformed_json", ""},
		{"a second value", receive, `{} {}`, "malformed_json", ""},
		{"single quotes", receive, `{'requestId':'SECRET'}`, "malformed_json", ""},
		{"a comment", receive, `{/*SECRET*/}`, "malformed_json", ""},
		{"invalid UTF-8", receive, "{\"requestId\":\"SECRET\xff\"}", "malformed_json", "/requestId"},
		{"invalid UTF-8 in a payload", commit, publish("\"payload\":\"SECRET\xff\""), "malformed_json", event + "/payload"},
		{"half a surrogate pair", receive, `{"requestId":"\ud800"}`, "malformed_json", "/requestId"},
		{"unknown field", receive, `{"maxMesages":1}`, "unknown_field", "/maxMesages"},
		{"wrong case", receive, `{"RequestId":"SECRET"}`, "unknown_field", "/RequestId"},
		{"unknown field below", receive, `{"lane":{"queu":"SECRET"}}`, "unknown_field", "/lane/queu"},
		{"unknown field of a mutation", commit, `{"mutations":[{"kind":"publish","queue":"SECRET"}]}`, "unknown_field", "/mutations/0/queue"},
		{"field without a JSON form", func() any { return new(api.APIKeysCreateRequest) }, `{"secretHash":"U0VDUkVU"}`, "unknown_field", "/secretHash"},
		{"repeated name", receive, `{"requestId":"SECRET","requestId":"b"}`, "repeated_field", "/requestId"},
		{"repeated name below", receive, `{"lane":{"queue":"SECRET","queue":"b"}}`, "repeated_field", "/lane/queue"},
		{"repeated name in a mutation", commit, `{"mutations":[{"kind":"publish","topic":"SECRET","topic":"u"}]}`, "repeated_field", "/mutations/0/topic"},
		{"repeated kind", commit, `{"mutations":[{"kind":"publish","kind":"publish"}]}`, "repeated_field", "/mutations/0/kind"},
		{"repeated name in a payload", commit, publish(`"payload":{"SECRET":1,"SECRET":2}`), "repeated_field", event + "/payload"},
		{"repeated header", commit, publish(`"headers":{"h":"SECRET","h":"2"}`), "repeated_field", event + "/headers/h"},
		{"text for a number", receive, `{"maxMessages":"SECRET"}`, "invalid_field", "/maxMessages"},
		{"number for a text", receive, `{"requestId":7777}`, "invalid_field", "/requestId"},
		{"list for an object", receive, `{"lane":["SECRET"]}`, "invalid_field", "/lane"},
		{"object for a list", commit, `{"mutations":{}}`, "invalid_field", "/mutations"},
		{"number for a boolean", func() any { return new(api.DocumentsQueryRequest) }, `{"allowFullScan":1}`, "invalid_field", "/allowFullScan"},
		{"number for a header", commit, publish(`"headers":{"h":7777}`), "invalid_field", event + "/headers/h"},
		{"fraction", receive, `{"maxMessages":1.5}`, "invalid_field", "/maxMessages"},
		{"whole number written as a fraction", receive, `{"maxMessages":1.0}`, "invalid_field", "/maxMessages"},
		{"exponent", receive, `{"maxMessages":1e2}`, "invalid_field", "/maxMessages"},
		{"signed 2^63", receive, `{"maxMessages":9223372036854775808}`, "invalid_field", "/maxMessages"},
		{"unsigned 2^64", commit, `{"mutations":[{"kind":"putDocument","expectedRevision":18446744073709551616}]}`, "invalid_field", "/mutations/0/expectedRevision"},
		{"negative unsigned", commit, `{"mutations":[{"kind":"putDocument","expectedRevision":-1}]}`, "invalid_field", "/mutations/0/expectedRevision"},
		{"payload of 33 levels", commit, publish(`"payload":` + nested(33)), "invalid_field", event + "/payload"},
		{"not base64", commit, publish(`"payloadBase64":"SECRET!"`), "invalid_field", event + "/payloadBase64"},
		{"not a time", commit, publish(`"occurredAt":"SECRET"`), "invalid_field", event + "/occurredAt"},
		{"number for a time", commit, publish(`"occurredAt":7777`), "invalid_field", event + "/occurredAt"},
		{"a day that does not exist", commit, publish(`"occurredAt":"2026-02-30T00:00:00Z"`), "invalid_field", event + "/occurredAt"},
		{"unknown kind", commit, `{"mutations":[{"kind":"SECRET"}]}`, "invalid_field", "/mutations/0/kind"},
		{"no kind", commit, `{"mutations":[{"topic":"SECRET"}]}`, "invalid_field", "/mutations/0/kind"},
		{"kind is no text", commit, `{"mutations":[{"kind":7777}]}`, "invalid_field", "/mutations/0/kind"},
		{"mutation is no object", commit, `{"mutations":["SECRET"]}`, "invalid_field", "/mutations/0"},
		{"mutation is null", commit, `{"mutations":[null]}`, "invalid_field", "/mutations/0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := DecodeJSON([]byte(c.body), c.into())
			if e == nil {
				t.Fatal("was accepted")
			}
			if e.Code != fault.Validation || e.Reason != c.reason || len(e.Violations) != 1 || e.Violations[0].Path != c.path {
				t.Errorf("got %s %s %v, want %s at %q", e.Code, e.Reason, e.Violations, c.reason, c.path)
			}
			told, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(told), "SECRET") || strings.Contains(string(told), "7777") {
				t.Errorf("the error repeats the value: %s", told)
			}
		})
	}
}

func TestTheNameOfAnUnknownFieldIsToldShortened(t *testing.T) {
	long := strings.Repeat("n", 63) + "éé" // cut inside a character
	e := DecodeJSON([]byte(`{"`+long+`":1}`), new(api.QueuesReceiveRequest))
	if e == nil || e.Violations[0].Path != "/"+strings.Repeat("n", 63)+"…" {
		t.Errorf("got %v", e)
	}
}

func TestDeepGarbageIsRefusedWithoutRecursion(t *testing.T) {
	const depth = 4 << 20
	for _, body := range []string{`{"x":` + strings.Repeat("[", depth), publish(`"payload":` + strings.Repeat(`{"a":`, depth/5))} {
		if e := DecodeJSON([]byte(body), new(api.CommandsCommitRequest)); e == nil || e.Code != fault.Validation {
			t.Errorf("got %v", e)
		}
	}
}

func TestAPayloadOf32LevelsIsAccepted(t *testing.T) {
	var r api.CommandsCommitRequest
	if e := DecodeJSON([]byte(publish(`"payload":`+nested(32))), &r); e != nil {
		t.Fatal(e)
	}
	if got := string(r.Mutations[0].Publish.Events[0].Payload); got != nested(32) {
		t.Errorf("payload became %s", got)
	}
}

func TestAZeroThatIsWrittenIsRefusedAndAnAbsentFieldTakesItsDefault(t *testing.T) {
	const head = `{"requestId":"0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e","lane":{"queue":"q"}`
	var absent, zero, null api.QueuesReceiveRequest
	for body, into := range map[string]*api.QueuesReceiveRequest{
		head + `}`:                      &absent,
		head + `,"maxMessages":0}`:      &zero,
		head + `,"leaseSeconds": null}`: &null,
	} {
		if e := DecodeJSON([]byte(body), into); e != nil {
			t.Fatal(e)
		}
	}
	if absent.MaxMessages != 1 || absent.LeaseSeconds != 30 || absent.Lane.Partition.Key != "main" || api.Validate(&absent) != nil {
		t.Errorf("absent fields became %+v: %v", absent, api.Validate(&absent))
	}
	if v := api.Validate(&zero); len(v) != 1 || v[0].Path != "/maxMessages" {
		t.Errorf("a written zero gives %v", v)
	}
	if v := api.Validate(&null); len(v) != 1 || v[0].Path != "/leaseSeconds" {
		t.Errorf("a written null gives %v", v)
	}
}

func TestElementsOfListsGetTheirDefaults(t *testing.T) {
	var r api.CommandsCommitRequest
	body := `{"mutations":[{"kind":"enqueue","queue":"q","message":{"payload":null}},{"kind":"publish","topic":"t","events":[{"type":"x","payload":1}]}]}`
	if e := DecodeJSON([]byte(body), &r); e != nil {
		t.Fatal(e)
	}
	q, p := r.Mutations[0].Enqueue, r.Mutations[1].Publish
	if q.Message.Priority == nil || *q.Message.Priority != 4 || q.IfExists != "fail" || p.Generation != 1 || p.Events[0].SchemaVersion != 1 {
		t.Errorf("got %+v and %+v", q, p)
	}
	if string(q.Message.Payload) != "null" {
		t.Errorf("a null payload became %q", q.Message.Payload)
	}
}

func TestIntegersAbove2To53KeepEveryDigit(t *testing.T) {
	const body = `{"expectedRevision":9007199254740993,"collection":"c","id":"i","document":{"n":9007199254740993,"m":18446744073709551617}}`
	var r api.CommandsCommitRequest
	if e := DecodeJSON([]byte(`{"mutations":[{"kind":"putDocument",`+body[1:]+`]}`), &r); e != nil {
		t.Fatal(e)
	}
	b, err := EncodeJSON(r.Mutations[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{`"expectedRevision":9007199254740993`, `"n":9007199254740993`, `"m":18446744073709551617`} {
		if !strings.Contains(string(b), n) {
			t.Errorf("%s is not in %s", n, b)
		}
	}
}

func TestTheStandardLibraryWritesAndReadsTheSameJSON(t *testing.T) {
	r := api.CommandsCommitRequest{CommandID: "c", Mutations: []api.Mutation{
		{Enqueue: &api.Enqueue{Queue: "q", Message: api.Message{Payload: api.Of(map[string]int{"a": 1}), NotBefore: 1}}},
	}}
	api.ApplyDefaults(&r)
	want, err := EncodeJSON(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(r)
	if err != nil || string(got) != string(want) {
		t.Errorf("wrote %s, %v; want %s", got, err, want)
	}
	var back api.CommandsCommitRequest
	if err := json.Unmarshal(want, &back); err != nil || back.Mutations[0].Enqueue.Message.NotBefore != 1 {
		t.Errorf("read %+v, %v", back, err)
	}
}
