package client_test

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
)

func TestAnInputFromElsewhereIsProcessedOnceOverWhateverConnectionItComes(t *testing.T) {
	b := newBed(t)
	in := func(id string) *api.CommandsInboxRequest {
		return &api.CommandsInboxRequest{Source: "payments", InputID: id, HandlerScope: "ledger", Effects: []api.Mutation{client.Enqueue("jobs", client.Message(1))}}
	}
	first, err := b.db.ProcessInput(t.Context(), in("evt-1"))
	check(t, err)
	for name, o := range forms {
		c := b.client(b.server.URL(), o...)
		again, err := c.ProcessInput(t.Context(), in("evt-1"))
		if err != nil || !again.AlreadyProcessed || again.EffectsToken != first.EffectsToken {
			t.Errorf("%s: %+v, %v", name, again, err)
		}
		own, err := c.ProcessInput(t.Context(), in(name))
		if err != nil || own.AlreadyProcessed || len(own.Results) != 1 {
			t.Errorf("%s: %+v, %v", name, own, err)
		}
		other := in(name)
		other.Effects = nil
		if _, err := c.ProcessInput(t.Context(), other); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
}
