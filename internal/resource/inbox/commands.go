package inbox

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/queue"
)

// prepareMessage refuses a token that does not hold before anything is logged.
func prepareMessage(d *op.Door, req *api.QueuesProcessRequest) (changed bool, err error) {
	return false, queue.VerifyToken(d, req.Token)
}

// processMessage is Process for a delivery of a queue. Errors: those of
// queue.Take, of acknowledging (NotFound, StaleLease, LeaseExpired) and of
// Process.
func processMessage(c *op.Ctx, req *api.QueuesProcessRequest) (*api.QueuesProcessResponse, error) {
	taken, err := queue.Take(c, req.Lane.Queue, req.Token)
	if err != nil {
		return nil, err
	}
	var acked queue.Acked
	acknowledge := func(processed bool) (err error) {
		if processed {
			acked, err = queue.AcknowledgeIfLive(c, &taken)
		} else {
			acked, err = queue.Acknowledge(c, &taken)
		}
		return err
	}
	done, err := Process(c, ofMessage(taken.Owner, taken.MessageID), req.HandlerScope, req.ExecutionGeneration, req.Effects, acknowledge)
	if err != nil {
		return nil, err
	}
	return &api.QueuesProcessResponse{
		AlreadyProcessed: done.AlreadyProcessed, EffectsToken: done.EffectsToken, Results: done.Results,
		MessageID: taken.MessageID, State: acked.State, StateVersion: acked.StateVersion,
	}, nil
}

// processElsewhere is Process for an input that nothing of the store delivered:
// there is nothing to acknowledge.
func processElsewhere(c *op.Ctx, req *api.CommandsInboxRequest) (*api.CommandsInboxResponse, error) {
	in := ofElsewhere(c.Space, req.Source, req.InputID)
	done, err := Process(c, in, req.HandlerScope, req.ExecutionGeneration, req.Effects, nil)
	if err != nil {
		return nil, err
	}
	return &api.CommandsInboxResponse{
		AlreadyProcessed: done.AlreadyProcessed, EffectsToken: done.EffectsToken, Results: done.Results,
	}, nil
}
