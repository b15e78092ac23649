package wire

import (
	"bytes"
	"testing"

	"github.com/keyload/keyload/api"
)

func FuzzAnyJSONIsRefusedOrSettlesAtOnce(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"mutations":[{"kind":"publish"}]}`, publish(`"payload":{"a":[1.10,"\u0041"]},"headers":{"a":"b"}`),
		`{"mutations":[{"kind":"enqueue","queue":"q","message":{"priority":0,"notBefore":"2026-01-31T12:00:00Z"}}]}`,
		`{"mutations":[{"events":[],"kind":"appendEvents","expected":{"exact":0}}],"commandId":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var r api.CommandsCommitRequest
		if DecodeJSON(body, &r) != nil {
			return
		}
		api.Validate(&r) // must not panic, whatever it finds
		settle(t, &r)
	})
}

func FuzzAnyCBORIsRefusedOrSettlesAtOnce(f *testing.F) {
	small := batch() // a large seed spends the time on making it small
	small.Mutations[0].Publish.Events = []api.Event{{Type: "x", Payload: api.JSON("{}"), Headers: map[string]string{"a": "b"}}}
	for _, r := range []*api.CommandsCommitRequest{{}, small} {
		b, err := EncodeLog(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var r api.CommandsCommitRequest
		if DecodeCBOR(body, &r) != nil {
			return
		}
		if len(api.Validate(&r)) == 0 {
			settle(t, &r)
		}
	})
}

// settle checks that a decoded request has one canonical form in the log, and
// that JSON carries it there unchanged.
func settle(t *testing.T, r *api.CommandsCommitRequest) {
	t.Helper()
	j, err := EncodeJSON(r)
	if err != nil {
		t.Fatalf("cannot be written: %v", err)
	}
	var second, third api.CommandsCommitRequest
	if e := DecodeJSON(j, &second); e != nil {
		t.Fatalf("%s cannot be read again: %v", j, e)
	}
	canonical, err := EncodeLog(&second)
	if err != nil {
		t.Fatal(err)
	}
	if err := DecodeLog(canonical, &third); err != nil {
		t.Fatalf("%x cannot be read again: %v", canonical, err)
	}
	again, err := EncodeLog(&third)
	if err != nil || !bytes.Equal(canonical, again) {
		t.Fatalf("settles as %x, then as %x, %v", canonical, again, err)
	}
}
