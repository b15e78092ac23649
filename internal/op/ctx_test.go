package op

import (
	"errors"
	"fmt"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// mutating is a context with one kind of mutation, whose place in its batch
// decides what becomes of it.
func mutating(t *testing.T, apply func(i int) error) *Ctx {
	t.Helper()
	r, err := NewRegistry([]Resource{{Mutations: []Mutation{{
		Kind: "deleteDocument",
		Apply: func(_ *Ctx, i int, m *api.Mutation) (api.MutationResult, error) {
			return api.MutationResult{MessageID: m.DeleteDocument.ID, Revision: uint64(i)}, apply(i)
		},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	return NewCtx(Scope{Registry: r}, nil, [16]byte{}, 1, 1, 1)
}

func deletions(n int) (out []api.Mutation) {
	for i := range n {
		out = append(out, api.Mutation{DeleteDocument: &api.DeleteDocument{ID: fmt.Sprint("d", i)}})
	}
	return out
}

func TestAllMutationsAreAppliedInOrderUntilOneIsRefused(t *testing.T) {
	for n := range 4 {
		got, err := mutating(t, func(int) error { return nil }).MutateAll("which", deletions(n))
		if err != nil || len(got) != n || (n == 0) != (got == nil) {
			t.Fatalf("%d: %+v, %v", n, got, err)
		}
		for i, r := range got {
			if r.MessageID != fmt.Sprint("d", i) || r.Revision != uint64(i) {
				t.Errorf("result %d of %d is %+v", i, n, r)
			}
		}
	}
	for _, bad := range []int{0, 1, 3} {
		var applied []int
		c := mutating(t, func(i int) error {
			applied = append(applied, i)
			if i == bad {
				return fault.New(fault.Conflict, "clash", "clash")
			}
			return nil
		})
		got, err := c.MutateAll("which", deletions(4))
		f := fault.From(err)
		if got != nil || f == nil || f.Reason != "clash" || f.Facts["which"] != fmt.Sprint(bad) || len(applied) != bad+1 {
			t.Errorf("refused at %d: applied %v, %+v, %v", bad, applied, got, err)
		}
		_, err = c.MutateAll("", deletions(4))
		if f := fault.From(err); f == nil || len(f.Facts) != 0 {
			t.Errorf("without a name: %v", err)
		}
	}
}

func TestAFailureOfAMutationIsNoRefusal(t *testing.T) {
	broken := errors.New("broken")
	c := mutating(t, func(int) error { return broken })
	if _, err := c.MutateAll("which", deletions(2)); !errors.Is(err, broken) || fault.From(err) != nil {
		t.Errorf("it became %v", err)
	}
	if _, err := c.MutateAll("which", []api.Mutation{{Publish: &api.Publish{}}}); err == nil || fault.From(err) != nil {
		t.Errorf("a kind without a handler: %v", err)
	}
}
