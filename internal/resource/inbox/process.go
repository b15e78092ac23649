package inbox

import (
	"crypto/sha256"
	"strconv"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/queue"
	"github.com/keyload/keyload/internal/wire"
)

// prepareProcess refuses a token that does not hold before anything is logged.
func prepareProcess(d *op.Door, req *api.QueuesProcessRequest) (changed bool, err error) {
	return false, queue.VerifyToken(d, req.Token)
}

// applyProcess commits effects, inbox record and acknowledgement together, in
// the order of messaging §4: the token's scope, the inbox, the lease, the
// acknowledgement (so that the quota it releases can fund an effect), the
// effects, the record. A refusal at any step leaves nothing of the steps before.
func applyProcess(c *op.Ctx, req *api.QueuesProcessRequest) (*api.QueuesProcessResponse, error) {
	taken, err := queue.Take(c, req.Lane.Queue, req.Token)
	if err != nil {
		return nil, err
	}
	k := key{taken.Owner, taken.MessageID, req.HandlerScope, req.ExecutionGeneration}
	print, err := fingerprint(&k, req.Effects)
	if err != nil {
		return nil, err
	}
	known, found, err := processed.Get(c.Tx, k)
	if err != nil {
		return nil, err
	}
	if found {
		return repeat(c, &taken, &known, print)
	}
	acked, err := queue.Acknowledge(c, &taken)
	if err != nil {
		return nil, err
	}
	resp := &api.QueuesProcessResponse{
		EffectsToken: c.Token(), MessageID: taken.MessageID, State: acked.State, StateVersion: acked.StateVersion,
	}
	if resp.Results, err = effects(c, req.Effects); err != nil {
		return nil, err
	}

	// From here on it succeeds.
	processed.Insert(c.Tx, k, &record{Fingerprint: print, Position: c.Position, Epoch: c.Epoch, At: c.Now})
	order.Insert(c.Tx, orderKey{k.Owner, c.Now, c.Position}, &k)
	return resp, arm(c, k.Owner)
}

// effects applies the mutations in order; a refusal says which was refused.
func effects(c *op.Ctx, mutations []api.Mutation) ([]api.MutationResult, error) {
	if len(mutations) == 0 {
		return nil, nil
	}
	out := make([]api.MutationResult, len(mutations))
	for i := range mutations {
		r, err := c.Mutate(i, &mutations[i])
		if err != nil {
			if f := fault.From(err); f != nil {
				f.With("effect", "%s", strconv.Itoa(i))
			}
			return nil, err
		}
		out[i] = r
	}
	return out, nil
}

// repeat answers for an input that its scope has processed: equal effects are
// not applied again, and a delivery that is live is acknowledged; other effects
// are a Conflict.
func repeat(c *op.Ctx, taken *queue.Taken, known *record, print [32]byte) (*api.QueuesProcessResponse, error) {
	if known.Fingerprint != print {
		return nil, fault.New(fault.Conflict, "processed_differently",
			"this handler scope has processed message %q with other effects (at %s); make handlers derive equal effects from equal input, or raise executionGeneration to process it again on purpose",
			taken.MessageID, api.Time(known.At)).With("processedAt", "%s", api.Time(known.At))
	}
	acked, err := queue.AcknowledgeIfLive(c, taken)
	if err != nil {
		return nil, err
	}
	return &api.QueuesProcessResponse{
		AlreadyProcessed: true,
		EffectsToken: api.CommitToken{
			Incarnation: uuid.UUID(c.Incarnation).String(), Partition: c.Partition,
			Position: known.Position, OwnershipEpoch: known.Epoch,
		},
		MessageID: taken.MessageID, State: acked.State, StateVersion: acked.StateVersion,
	}, nil
}

// fingerprint is over the identity of the input and the effects, not over the
// worker or its command.
func fingerprint(k *key, effects []api.Mutation) ([32]byte, error) {
	h := sha256.New()
	h.Write(codec.AppendUint64(nil, uint64(len(effects))))
	h.Write(appendKey(nil, *k))
	for i := range effects {
		b, err := wire.EncodeLog(&effects[i])
		if err != nil {
			return [32]byte{}, err
		}
		h.Write(b)
	}
	return [32]byte(h.Sum(nil)), nil
}
