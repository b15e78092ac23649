package httpgw_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
)

const someID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"

// commit is a batch of mutations in JSON.
func commit(mutations ...string) string {
	return `{"commandId":"` + someID + `","mutations":[` + strings.Join(mutations, ",") + `]}`
}

// put is a putDocument with more text after its fields.
func put(document, more string) string {
	return `{"kind":"putDocument","collection":"docs","id":"a","document":` + document + more + `}`
}

func nested(depth int) string {
	return `{"a":` + strings.Repeat(`[`, depth-1) + strings.Repeat(`]`, depth-1) + `}`
}

// malformed are requests that are refused before anything is logged.
var malformed = []struct {
	name, body string
	path       string // of the first violation; "-" for any
}{
	{"unknown field", `{"commandId":"` + someID + `","mutations":[` + put(`{}`, ``) + `],"colour":"chartreuse"}`, "/colour"},
	{"unknown field of a mutation", commit(put(`{}`, `,"colour":"chartreuse"`)), "/mutations/0/colour"},
	{"field of another mutation", commit(put(`{}`, `,"queue":"jobs"`)), "/mutations/0/queue"},
	{"wrong case", `{"CommandId":"` + someID + `","mutations":[` + put(`{}`, ``) + `]}`, "/CommandId"},
	{"text for a list", `{"commandId":"` + someID + `","mutations":"all"}`, "/mutations"},
	{"number for a text", commit(`{"kind":"putDocument","collection":"docs","id":5,"document":{}}`), "/mutations/0/id"},
	{"text for a number", commit(put(`{}`, `,"expectedRevision":"1"`)), "/mutations/0/expectedRevision"},
	{"repeated name", `{"commandId":"` + someID + `","commandId":"` + someID + `","mutations":[` + put(`{}`, ``) + `]}`, "/commandId"},
	{"repeated name in a mutation", commit(put(`{}`, `,"id":"b"`)), "/mutations/0/id"},
	{"repeated name in a document", commit(put(`{"x":1,"x":2}`, ``)), "-"},
	{"invalid UTF-8 in a name", commit(`{"kind":"putDocument","collection":"docs","id":"` + "\xff" + `","document":{}}`), "-"},
	{"invalid UTF-8 in a document", commit(put(`{"x":"`+"\xc3\x28"+`"}`, ``)), "-"},
	{"lone surrogate", commit(put(`{"x":"\ud800"}`, ``)), "-"},
	{"too deep", commit(put(nested(limits.JSONDepth+1), ``)), "/mutations/0/document"},
	{"far too deep", commit(put(nested(100_000), ``)), "-"},
	{"negative number", commit(put(`{}`, `,"expectedRevision":-1`)), "/mutations/0/expectedRevision"},
	{"number above 63 bits", commit(put(`{}`, `,"expectedRevision":9223372036854775808`)), "/mutations/0/expectedRevision"},
	{"number above 64 bits", commit(put(`{}`, `,"expectedRevision":18446744073709551616`)), "/mutations/0/expectedRevision"},
	{"fraction", commit(put(`{}`, `,"expectedRevision":1.5`)), "/mutations/0/expectedRevision"},
	{"bad UUID", `{"commandId":"6f9619ff","mutations":[` + put(`{}`, ``) + `]}`, "/commandId"},
	{"UUID in upper case", `{"commandId":"` + strings.ToUpper(someID) + `","mutations":[` + put(`{}`, ``) + `]}`, "/commandId"},
	{"no command id", `{"mutations":[` + put(`{}`, ``) + `]}`, "/commandId"},
	{"no mutations", `{"commandId":"` + someID + `"}`, "/mutations"},
	{"empty batch", commit(), "/mutations"},
	{"no kind", commit(`{"collection":"docs","id":"a","document":{}}`), "/mutations/0/kind"},
	{"unknown kind", commit(`{"kind":"dropTable"}`), "/mutations/0/kind"},
	{"empty id", commit(`{"kind":"putDocument","collection":"docs","id":"","document":{}}`), "/mutations/0/id"},
	{"blank id", commit(`{"kind":"putDocument","collection":"docs","id":" ","document":{}}`), "/mutations/0/id"},
	{"control character", commit(`{"kind":"putDocument","collection":"docs","id":"a\u0000b","document":{}}`), "/mutations/0/id"},
	{"document that is no object", commit(put(`[1]`, ``)), "/mutations/0/document"},
	{"no document", commit(`{"kind":"putDocument","collection":"docs","id":"a"}`), "/mutations/0/document"},
	{"message that expires before it is due", commit(`{"kind":"enqueue","queue":"jobs","message":{"payload":1,"notBefore":"2030-01-02T00:00:00.000Z","expiresAt":"2030-01-01T00:00:00.000Z"}}`), "/mutations/0/message/expiresAt"},
	{"time of another form", commit(`{"kind":"enqueue","queue":"jobs","message":{"payload":1,"notBefore":"tomorrow"}}`), "/mutations/0/message/notBefore"},
	{"base64 with a hole", commit(`{"kind":"enqueue","queue":"jobs","message":{"payloadBase64":"a b"}}`), "/mutations/0/message/payloadBase64"},
	{"priority above its bound", commit(`{"kind":"enqueue","queue":"jobs","message":{"payload":1,"priority":10}}`), "/mutations/0/message/priority"},
	{"list for an object", `[]`, ""},
	{"null", `null`, ""},
	{"truncated", `{"commandId":"` + someID, "-"},
	{"two values", commit(put(`{}`, ``)) + `{}`, "-"},
	{"not JSON", `commandId=x`, "-"},
	{"NaN", commit(put(`{"x":NaN}`, ``)), "-"},
}

func TestMalformedInputIsValidationAndNothingIsLogged(t *testing.T) {
	b := newBed(t)
	before := b.positions()
	for _, c := range malformed {
		t.Run(c.name, func(t *testing.T) {
			a := b.post("/v1/commands/commit", c.body)
			p := a.problem(t)
			if a.status != 400 || p.Code != "Validation" || p.Retry != "after_change" || *p.Recorded {
				t.Errorf("%d %+v", a.status, p)
			}
			if len(p.Violations) == 0 || c.path != "-" && p.Violations[0].Path != c.path {
				t.Errorf("violations %+v, want %q first", p.Violations, c.path)
			}
			if strings.Contains(string(a.body), "chartreuse") || strings.Contains(string(a.body), "dropTable") {
				t.Errorf("the answer holds a value of the request: %s", a.body)
			}
			if got := b.positions(); !slices.Equal(got, before) {
				t.Errorf("positions %v, before %v", got, before)
			}
		})
	}
	b.empty()
}

func TestWhatTheStoreRefusesIsTheContractsCodeAndStoresNothing(t *testing.T) {
	b := newBed(t)
	message := `{"payload":{"x":1}}`
	for i, c := range []struct {
		name, mutation, code string
		status               int
	}{
		{"unknown resource", `{"kind":"putDocument","collection":"nowhere","id":"a","document":{}}`, "NotFound", 404},
		{"resource of another domain", `{"kind":"enqueue","queue":"far","message":` + message + `}`, "Conflict", 409},
		{"resource of another kind", `{"kind":"enqueue","queue":"docs","message":` + message + `}`, "Validation", 400},
		{"document that is not there", `{"kind":"deleteDocument","collection":"docs","id":"a","expectedRevision":3}`, "NotFound", 404},
		{"greatest number", put(`{}`, `,"expectedRevision":9223372036854775807`), "RevisionConflict", 409},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := fmt.Sprintf("6f9619ff-8b86-4d01-b42d-%012d", i+1)
			body := strings.Replace(commit(`{"kind":"enqueue","queue":"jobs","message":`+message+`}`, c.mutation), someID, id, 1)
			first := b.post("/v1/commands/commit", body)
			p := first.problem(t)
			if first.status != c.status || p.Code != c.code || p.Status != c.status || p.CommandID != id {
				t.Errorf("%d %+v", first.status, p)
			}
			if again := b.post("/v1/commands/commit", body); string(again.body) != string(first.body) {
				t.Errorf("repeated: %s\nfirst:    %s", again.body, first.body)
			}
		})
	}
	b.empty()
}

func TestABodyMayHaveTheLimitAndNotOneByteMore(t *testing.T) {
	b := newBed(t)
	text := `{"collection":"docs"}`
	pad := func(n int) string { return text + strings.Repeat(" ", n-len(text)) }
	for _, c := range []struct {
		size int
		ok   bool
	}{{limits.BodyBytes - 1, true}, {limits.BodyBytes, true}, {limits.BodyBytes + 1, false}, {2 * limits.BodyBytes, false}} {
		for _, sized := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d bytes, sized %v", c.size, sized), func(t *testing.T) {
				var body io.Reader = strings.NewReader(pad(c.size))
				if !sized {
					body = struct{ io.Reader }{body} // sent in chunks
				}
				a := b.send(http.MethodPost, "/v1/documents/list", body)
				if c.ok {
					if a.status != 200 {
						t.Errorf("%d %s", a.status, a.body)
					}
					return
				}
				p := a.problem(t)
				if a.status != 400 || p.Reason != "body_too_large" || p.Facts["maxBytes"] != "8388608" {
					t.Errorf("%d %+v", a.status, p)
				}
			})
		}
	}
}

func TestDepthAndCountsMayReachTheirLimitsOverHTTP(t *testing.T) {
	b := newBed(t)
	many := func(n int) string {
		ms := make([]string, n)
		for i := range ms {
			ms[i] = fmt.Sprintf(`{"kind":"putDocument","collection":"docs","id":"m%d","document":{}}`, i)
		}
		return strings.Join(ms, ",")
	}
	name := func(n int) string {
		return `{"kind":"putDocument","collection":"docs","id":"` + strings.Repeat("n", n) + `","document":{}}`
	}
	for i, c := range []struct {
		name, mutations string
		ok              bool
	}{
		{"depth below", put(nested(limits.JSONDepth-1), ``), true},
		{"depth at", put(nested(limits.JSONDepth), ``), true},
		{"depth above", put(nested(limits.JSONDepth+1), ``), false},
		{"mutations below", many(limits.BatchMutations - 1), true},
		{"mutations at", many(limits.BatchMutations), true},
		{"mutations above", many(limits.BatchMutations + 1), false},
		{"identifier below", name(limits.IdentifierBytes - 1), true},
		{"identifier at", name(limits.IdentifierBytes), true},
		{"identifier above", name(limits.IdentifierBytes + 1), false},
	} {
		id := fmt.Sprintf("6f9619ff-8b86-4d01-b42d-%012d", i+1)
		a := b.post("/v1/commands/commit", strings.Replace(commit(c.mutations), someID, id, 1))
		if (a.status == 200) != c.ok {
			t.Errorf("%s: %d %.300s", c.name, a.status, a.body)
		}
	}
}

func TestMalformedCBORIsValidationAndNothingIsLogged(t *testing.T) {
	b := newBed(t)
	before := b.positions()
	for _, c := range []struct{ name, body string }{
		{"empty", ""},
		{"list", "\x80"},
		{"unknown key", "\xa1\x18\x63\x01"},
		{"text key", "\xa1\x69commandId\x60"},
		{"repeated key", "\xa2\x01\x60\x01\x60"},
		{"indefinite length", "\xbf\x01\x60\xff"},
		{"tag", "\xa1\x01\xc0\x60"},
		{"wrong type", "\xa1\x01\x01"},
		{"invalid UTF-8", "\xa1\x01\x61\xff"},
		{"truncated", "\xa1\x01"},
		{"two values", "\xa0\xa0"},
		{"negative number", "\xa1\x03\x81\xa1\x01\xa4\x01\x64docs\x02\x61a\x03\x42{}\x04\x20"},
		{"nested a thousand times", "\xa1\x03" + strings.Repeat("\x81", 1000)},
		{"list of a length that is not there", "\xa1\x03\x9b\x00\x00\x00\x01\x00\x00\x00\x00"},
		{"field that callers cannot set", "\xa1\x05\x61k"},
	} {
		path := "/v1/commands/commit"
		if c.name == "field that callers cannot set" {
			path = api.APIKeysCreate.Path()
		}
		a := b.send(http.MethodPost, path, strings.NewReader(c.body), "Content-Type", "application/cbor", "Accept", "application/json")
		if p := a.problem(t); a.status != 400 || p.Code != "Validation" {
			t.Errorf("%s: %d %+v", c.name, a.status, p)
		}
	}
	if got := b.positions(); !slices.Equal(got, before) {
		t.Errorf("positions %v, before %v", got, before)
	}
	b.empty()
}
