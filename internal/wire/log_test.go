package wire

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

func TestStoredBytesThatWeWouldNotWriteAreCorruption(t *testing.T) {
	long := func(n int) string { return strings.Repeat("81", n) + "80" }
	for name, input := range map[string]string{
		"empty":                  "",
		"truncated":              "a20161",
		"bytes after the end":    "a000",
		"unknown integer key":    "a1186300",
		"unknown text key":       "a1697265717565737449646161",
		"text key for a number":  "a161316161",
		"repeated key":           "a20161610161" + "62",
		"indefinite map":         "bf016161ff",
		"indefinite text":        "a1017f6161ff",
		"invalid UTF-8":          "a10161ff",
		"a tag":                  "a101c06161",
		"text for a number":      "a1036161",
		"float for a number":     "a103f93c00",
		"number above int64":     "a1031b8000000000000000",
		"deeper than any value":  "a102" + long(20),
		"list longer than bound": "a1029a7fffffff",
	} {
		t.Run(name, func(t *testing.T) {
			b, err := hex.DecodeString(input)
			if err != nil {
				t.Fatal(err)
			}
			if got := fault.CodeOf(DecodeLog(b, new(api.QueuesReceiveRequest))); got != fault.Corruption {
				t.Errorf("DecodeLog: %q", got)
			}
			if e := DecodeCBOR(b, new(api.QueuesReceiveRequest)); e == nil || e.Code != fault.Validation {
				t.Errorf("DecodeCBOR: %v", e)
			}
		})
	}
}

func TestACBORBodyNamesTheFieldOfTheWrongType(t *testing.T) {
	for path, body := range map[string]any{
		"/maxMessages": map[int]any{3: "SECRET"},
		"/lane":        map[int]any{2: map[int]any{1: map[int]any{1: 5}}},
		"":             map[int]any{99: "SECRET"},
	} {
		b, err := cbor.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		e := DecodeCBOR(b, new(api.QueuesReceiveRequest))
		if e == nil || e.Violations[0].Path != path || strings.Contains(e.Error()+e.Violations[0].Message, "SECRET") {
			t.Errorf("want %q, got %v %v", path, e, e.Violations)
		}
	}
}

func TestACBORBodyCannotSetWhatOnlyTheDoorFills(t *testing.T) {
	b, err := EncodeLog(api.APIKeysCreateRequest{PrincipalID: "p", SecretHash: []byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	if e := DecodeCBOR(b, new(api.APIKeysCreateRequest)); e == nil || e.Reason != "unknown_field" {
		t.Errorf("got %v", e)
	}
	if err := DecodeLog(b, new(api.APIKeysCreateRequest)); err != nil {
		t.Errorf("the log must carry it: %v", err)
	}
}

func TestTheFingerprintFollowsContentAndOperationOnly(t *testing.T) {
	request := func(headers map[string]string, events []api.Event) api.CommandsCommitRequest {
		return api.CommandsCommitRequest{Mutations: []api.Mutation{
			{Publish: &api.Publish{Topic: "t", Events: append(events, api.Event{Type: "x", Headers: headers})}},
		}}
	}
	fingerprint := func(op uint16, r api.CommandsCommitRequest) [32]byte {
		sum, encoded, err := Fingerprint(op, &r)
		if err != nil {
			t.Fatal(err)
		}
		if again := FingerprintEncoded(op, encoded); again != sum {
			t.Error("the returned bytes have another fingerprint")
		}
		return sum
	}
	base := fingerprint(1, request(map[string]string{"a": "1", "b": "2", "c": "3"}, nil))
	for range 20 { // maps have a new order each time
		if fingerprint(1, request(map[string]string{"c": "3", "b": "2", "a": "1"}, []api.Event{})) != base {
			t.Fatal("equal requests have different fingerprints")
		}
	}
	if fingerprint(2, request(map[string]string{"a": "1", "b": "2", "c": "3"}, nil)) == base {
		t.Error("another operation has the same fingerprint")
	}
	if fingerprint(1, request(map[string]string{"a": "1", "b": "2", "c": "4"}, nil)) == base {
		t.Error("another request has the same fingerprint")
	}
}

func TestANilListAndAnEmptyOneAreEncodedAlike(t *testing.T) {
	a, errA := EncodeLog(api.QueuesReceiveResponse{})
	b, errB := EncodeLog(api.QueuesReceiveResponse{Deliveries: []api.Delivery{}})
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("%x, %v and %x, %v", a, errA, b, errB)
	}
}

// batch is a publish of 100 events with payloads of 256 bytes.
func batch() *api.CommandsCommitRequest {
	events := make([]api.Event, 100)
	for i := range events {
		events[i] = api.Event{Type: "OrderCreated", Payload: api.Of(map[string]string{"text": strings.Repeat("x", 245)})}
	}
	r := &api.CommandsCommitRequest{
		CommandID: api.NewCommandID(), Mutations: []api.Mutation{{Publish: &api.Publish{Topic: "orders", Events: events}}},
	}
	api.ApplyDefaults(r)
	return r
}

func BenchmarkFingerprintOfABatchOf100Events(b *testing.B) {
	r := batch()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Fingerprint(1, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeLogOfABatchOf100Events(b *testing.B) {
	encoded, err := EncodeLog(batch())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := DecodeLog(encoded, new(api.CommandsCommitRequest)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeJSONOfABatchOf100Events(b *testing.B) {
	body, err := EncodeJSON(batch())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if e := DecodeJSON(body, new(api.CommandsCommitRequest)); e != nil {
			b.Fatal(e)
		}
	}
}

func BenchmarkDecodeJSONOfAReceive(b *testing.B) {
	body := []byte(`{"requestId":"0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e","lane":{"queue":"q"},"maxMessages":10}`)
	b.ReportAllocs()
	for b.Loop() {
		if e := DecodeJSON(body, new(api.QueuesReceiveRequest)); e != nil {
			b.Fatal(e)
		}
	}
}
