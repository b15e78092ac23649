package batch

import (
	"errors"
	"fmt"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
)

// recorder is a resource whose mutations note the order they are applied in.
func recorder(t *testing.T, applied *[]string, refuse map[string]error) *op.Ctx {
	t.Helper()
	note := func(kind string, name func(*api.Mutation) string) op.Mutation {
		return op.Mutation{Kind: kind, Apply: func(_ *op.Ctx, i int, m *api.Mutation) (api.MutationResult, error) {
			id := name(m)
			*applied = append(*applied, fmt.Sprint(i, " ", kind, " ", id))
			return api.MutationResult{Revision: uint64(i + 10)}, refuse[id]
		}}
	}
	r, err := op.NewRegistry([]op.Resource{Resource(), {Name: "recorder", Mutations: []op.Mutation{
		note("putDocument", func(m *api.Mutation) string { return m.PutDocument.ID }),
		note("deleteDocument", func(m *api.Mutation) string { return m.DeleteDocument.ID }),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return op.NewCtx(op.Scope{Registry: r}, nil, [16]byte{}, 1, 1, 1)
}

func put(id string) api.Mutation    { return api.Mutation{PutDocument: &api.PutDocument{ID: id}} }
func remove(id string) api.Mutation { return api.Mutation{DeleteDocument: &api.DeleteDocument{ID: id}} }

func batchOf(ms ...api.Mutation) *api.CommandsCommitRequest {
	return &api.CommandsCommitRequest{Mutations: ms}
}

func TestMutationsAreAppliedInOrderEachWithItsResult(t *testing.T) {
	var applied []string
	c := recorder(t, &applied, nil)
	resp, err := commit(c, batchOf(put("a"), remove("b"), put("a")))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(applied); got != "[0 putDocument a 1 deleteDocument b 2 putDocument a]" {
		t.Errorf("applied %s", got)
	}
	for i, r := range resp.Results {
		if len(resp.Results) != 3 || r.Revision != uint64(i+10) {
			t.Errorf("the results are %+v", resp.Results)
		}
	}
}

func TestTheFirstRefusalEndsTheBatchAndNamesItsMutation(t *testing.T) {
	var applied []string
	c := recorder(t, &applied, map[string]error{"bad": fault.New(fault.Conflict, "clash", "clash")})
	_, err := commit(c, batchOf(put("a"), put("bad"), put("c")))
	f := fault.From(err)
	if f == nil || f.Reason != "clash" || f.Facts["mutation"] != "1" || len(applied) != 2 {
		t.Errorf("applied %v, refused with %+v", applied, f)
	}
	c = recorder(t, &applied, map[string]error{"bad": fault.New(fault.Conflict, "clash", "clash")})
	_, err = commit(c, batchOf(put("bad"))) // alone it needs no number
	if f := fault.From(err); f == nil || f.Reason != "clash" || len(f.Facts) != 0 {
		t.Errorf("refused with %+v", f)
	}
}

func TestAFailureThatIsNoRefusalStaysOne(t *testing.T) {
	var applied []string
	broken := errors.New("broken")
	c := recorder(t, &applied, map[string]error{"bad": broken})
	if _, err := commit(c, batchOf(put("a"), put("bad"))); !errors.Is(err, broken) || fault.From(err) != nil {
		t.Errorf("it became %v", err)
	}
}

func TestAMutationWithoutAHandlerStopsTheShard(t *testing.T) {
	var applied []string
	c := recorder(t, &applied, nil)
	if _, err := commit(c, batchOf(api.Mutation{Publish: &api.Publish{}})); err == nil || fault.From(err) != nil {
		t.Errorf("it was answered with %v", err)
	}
}
