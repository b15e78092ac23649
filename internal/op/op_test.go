package op

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
)

func commitHandler() Handler {
	return Handle(api.CommandsCommit, Command[api.CommandsCommitRequest, api.CommandsCommitResponse]{
		Apply: func(*Ctx, *api.CommandsCommitRequest) (*api.CommandsCommitResponse, error) { return nil, nil },
	})
}

func TestTheRegistryRefusesEveryClash(t *testing.T) {
	tab := func(id table.ID, name string) table.Info { return table.Info{ID: id, Name: name} }
	for what, clash := range map[string][]Resource{
		"a table":      {{Tables: []table.Info{tab(1, "a")}}, {Tables: []table.Info{tab(1, "b")}}},
		"an operation": {{Handlers: []Handler{commitHandler()}}, {Handlers: []Handler{commitHandler()}}},
		"a mutation":   {{Mutations: []Mutation{{Kind: "m"}, {Kind: "m"}}}},
		"a due kind":   {{Dues: []Due{{Kind: 1}}}, {Dues: []Due{{Kind: 1}}}},
		"a kind":       {{Kinds: []api.ResourceKind{api.KindQueue, api.KindQueue}, Purge: purges(nil)}},
	} {
		if _, err := NewRegistry(clash); err == nil {
			t.Errorf("%s is declared twice and nothing was said", what)
		}
	}
}

func TestTheRegistryFindsWhatWasDeclared(t *testing.T) {
	r, err := NewRegistry([]Resource{{
		Name: "all", Tables: []table.Info{{ID: 1}}, Handlers: []Handler{commitHandler()}, Mutations: []Mutation{{Kind: "m"}},
		Dues: []Due{{Kind: 3}}, Kinds: []api.ResourceKind{api.KindQueue}, Purge: purges(nil),
	}})
	if err != nil {
		t.Fatal(err)
	}
	byName, ok := r.Handler(api.CommandsCommit.Name)
	byNumber, ok2 := r.Numbered(api.CommandsCommit.Number)
	if !ok || !ok2 || byName != byNumber {
		t.Error("the operation is not found by name and number")
	}
	_, mutation := r.Mutation("m")
	_, due := r.Due(3)
	keepers := r.Keepers(api.KindQueue)
	if !mutation || !due || len(keepers) != 1 || keepers[0].Name != "all" || len(r.Resources()) != 1 {
		t.Error("something that was declared is not found")
	}
	_, none := r.Handler("none")
	_, none2 := r.Numbered(9999)
	_, none3 := r.Mutation("none")
	_, none4 := r.Due(9)
	if none || none2 || none3 || none4 || r.Keepers(api.KindTopic) != nil {
		t.Error("something that was not declared is found")
	}
}

func TestAHandlerKeepsANilResponseNil(t *testing.T) {
	h := commitHandler()
	resp, err := h.Apply(nil, &api.CommandsCommitRequest{})
	if resp != nil || err != nil {
		t.Errorf("%v, %v", resp, err)
	}
	if _, ok := h.NewRequest().(*api.CommandsCommitRequest); !ok {
		t.Error("it makes requests of another type")
	}
	made := h.NewResponse()
	h.SetReceipt(made, api.Receipt{CommandID: "id"})
	if made.(*api.CommandsCommitResponse).Receipt.CommandID != "id" {
		t.Error("the receipt is not in the response")
	}
}

func TestNeedsNameTenantAndDatabaseOfTheRequest(t *testing.T) {
	h := commitHandler()
	place := api.PartitionRef{Tenant: "acme", Database: "side", Domain: "d", Key: "k"}
	got := h.Needs(&api.CommandsCommitRequest{Partition: place, Mutations: []api.Mutation{
		{PutDocument: &api.PutDocument{Collection: "people"}}, {DeleteDocument: &api.DeleteDocument{Collection: "people"}},
		{Enqueue: &api.Enqueue{Queue: "work"}},
	}})
	want := []Need{{api.CapDocumentsWrite, "acme", "side", "people"}, {api.CapQueuesPublish, "acme", "side", "work"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("needs %v, want %v", got, want)
	}
}

func context(position, seed uint64) *Ctx {
	return NewCtx(Scope{}, nil, [16]byte{1}, position, 1, seed)
}

func TestRandomDrawsDependOnSeedPositionAndCountAlone(t *testing.T) {
	draw := func(position, seed uint64) (out [8]uint64) {
		c := context(position, seed)
		for i := range out {
			out[i] = c.Random(1 << 62)
		}
		return out
	}
	if first, again := draw(5, 7), draw(5, 7); first != again {
		t.Error("equal entries draw different numbers")
	}
	seen := map[uint64]bool{}
	for position := range uint64(50) {
		for seed := range uint64(50) {
			for _, n := range draw(position, seed) {
				seen[n] = true
			}
		}
	}
	if len(seen) < 50*50*8*99/100 {
		t.Errorf("only %d of %d draws differ", len(seen), 50*50*8)
	}
	c, counts := context(1, 1), [10]int{}
	for range 10_000 {
		counts[c.Random(10)]++
	}
	for n, got := range counts {
		if got < 800 || got > 1200 {
			t.Errorf("%d was drawn %d times of 10000", n, got)
		}
	}
	if c.Random(1) != 0 {
		t.Error("a number below 1 is not 0")
	}
}

func TestDerivedIDsAreOnePerCommandAndPlace(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range [][16]byte{{1}, {2}} {
		for _, at := range [][]int{{}, {0}, {1}, {0, 0}, {0, 1}, {1, 0}, {256}, {0, 256}} {
			c := NewCtx(Scope{}, nil, id, 1, 1, 1)
			derived := c.DerivedID(at...)
			if len(derived) > limits.IdentifierBytes || !strings.HasPrefix(derived, uuid.UUID(id).String()) {
				t.Errorf("%q is no identifier that tells the command", derived)
			}
			if again := NewCtx(Scope{}, nil, id, 99, 2, 5).DerivedID(at...); again != derived {
				t.Errorf("a retry derives %s, not %s", again, derived)
			}
			if seen[derived] {
				t.Errorf("%v of %x has the id of another", at, id)
			}
			seen[derived] = true
		}
	}
}

func TestWakeUpsOfOneKeyAreJoined(t *testing.T) {
	c := context(1, 1)
	for _, h := range []Hint{{"a", 1}, {"a", 2}, {"b", 1}, {"a", 1}} {
		c.Wake(h.Key, h.Count)
	}
	if got := fmt.Sprint(c.Hints()); got != "[{a 3} {b 1} {a 1}]" {
		t.Errorf("hints are %s", got)
	}
}

func view(tenant, id string) *View {
	return &View{
		Scope: Scope{Now: 1000, Principal: &api.Principal{Tenant: tenant, ID: id}},
		Door:  Door{Now: 1000, Tokens: token.NewSealer([16]byte{1}, token.Keys{bytes.Repeat([]byte{7}, 32)})},
	}
}

func TestACursorContinuesItsOwnListingOfItsOwnCallerForADay(t *testing.T) {
	v := view("acme", "p")
	if from, err := NewPage(v, "things", []byte("pre"), 5).Begin(""); from != nil || err != nil {
		t.Errorf("without a cursor it begins at %q (%v)", from, err)
	}
	cursor := NewPage(v, "things", []byte("pre"), 5).Next([]byte("rest"))
	for name, c := range map[string]struct {
		v      *View
		about  string
		now    int64
		reason string
	}{
		"its own":              {view("acme", "p"), "things", 1000, ""},
		"to its last moment":   {view("acme", "p"), "things", 1000 + pageLifeMillis - 1, ""},
		"a day old":            {view("acme", "p"), "things", 1000 + pageLifeMillis, "cursor_expired"},
		"another listing":      {view("acme", "p"), "things/other", 1000, "bad_cursor"},
		"another caller":       {view("acme", "q"), "things", 1000, "bad_cursor"},
		"another tenant":       {view("other", "p"), "things", 1000, "bad_cursor"},
		"names run together":   {view("acm", "ep"), "things", 1000, "bad_cursor"},
		"listing run together": {view("acme", "pt"), "hings", 1000, "bad_cursor"},
	} {
		c.v.Now = c.now
		from, err := NewPage(c.v, c.about, []byte("pre"), 5).Begin(cursor)
		if c.reason == "" {
			if err != nil || string(from) != "prerest" {
				t.Errorf("%s: from %q (%v)", name, from, err)
			}
			continue
		}
		if f := fault.From(err); f == nil || f.Reason != c.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewPage(v, "things", nil, 5).Begin("nonsense"); fault.CodeOf(err) != fault.Validation {
		t.Errorf("nonsense: %v", err)
	}
}

func TestTheCursorOfTheLongestIdentifiersCanBeUsed(t *testing.T) {
	v := view(strings.Repeat("t", 256), strings.Repeat("p", 256))
	rest := append([]byte(strings.Repeat("n", 256)), 0, 1)
	cursor := NewPage(v, strings.Repeat("a", 600), []byte("pre"), 5).Next(rest)
	if from, err := NewPage(v, strings.Repeat("a", 600), []byte("pre"), 5).Begin(cursor); err != nil || !bytes.HasSuffix(from, rest) {
		t.Errorf("%v", err)
	}
}

func TestAPageIsFullAtItsLimitOrWhenItLookedAtEnough(t *testing.T) {
	p := NewPage(view("a", "b"), "x", nil, 2)
	for i, want := range []bool{false, false, true} {
		if p.Full() != want {
			t.Errorf("after %d rows full: %v", i, p.Full())
		}
		p.Add()
	}
	p = NewPage(view("a", "b"), "x", nil, 1000)
	for range maxLooked - 1 {
		p.Look()
	}
	if p.Full() {
		t.Error("full one row early")
	}
	if p.Look(); !p.Full() {
		t.Error("not full after looking at as many as it may")
	}
}
