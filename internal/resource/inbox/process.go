package inbox

import (
	"crypto/sha256"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/lineage"
	"github.com/keyload/keyload/internal/wire"
)

// Done is what became of an input.
type Done struct {
	// AlreadyProcessed says that the effects were committed before, by another
	// command, and not applied again.
	AlreadyProcessed bool
	// EffectsToken is where the effects were committed.
	EffectsToken api.CommitToken
	// Results has one result per effect; nil when already processed.
	Results []api.MutationResult
}

// Process commits the effects of an input of a handler scope once, in the order
// of messaging §4: the caller has checked the scope of its token; then come the
// inbox, the lease and the acknowledgement (so that the quota it releases can
// fund an effect), the effects, the record. A command calls it at most once. A
// refusal at any step refuses the command: the machine then drops the steps
// before it.
//
// acknowledge finishes the delivery that brought the input; nil when nothing did.
// With processed = false it must refuse a delivery whose lease does not hold.
// With processed = true the work is known to be done, with equal effects: it
// finishes a delivery whose lease holds and lets any other be. When it returns
// an error nothing may be assumed of the delivery.
//
// Errors: those of acknowledge and of the effects (with the fact effect, the
// index of the one refused); Conflict when the scope has processed the input
// with other effects.
func Process(c *op.Ctx, in Input, scope string, generation uint64, effects []api.Mutation, acknowledge func(processed bool) error) (Done, error) {
	k := key{in.owner, in.id, scope, generation}
	print, err := fingerprint(&k, effects)
	if err != nil {
		return Done{}, err
	}
	known, found, err := processed.Get(c.Tx, k)
	if err != nil {
		return Done{}, err
	}
	if found && known.Fingerprint != print {
		return Done{}, processedDifferently(&k, &known)
	}
	if acknowledge != nil {
		if err := acknowledge(found); err != nil {
			return Done{}, err
		}
	}
	if found {
		token, err := tokenOf(c, &known)
		return Done{AlreadyProcessed: true, EffectsToken: token}, err
	}
	results, err := c.MutateAll("effect", effects)
	if err != nil {
		return Done{}, err
	}

	// From here on it succeeds.
	processed.Insert(c.Tx, k, &record{Fingerprint: print, Position: c.Position, Epoch: c.Epoch, At: c.Now})
	order.Insert(c.Tx, orderKey{k.Owner, c.Now, c.Position}, &k)
	return Done{EffectsToken: c.Token(), Results: results}, arm(c, k.Owner)
}

func processedDifferently(k *key, known *record) error {
	return fault.New(fault.Conflict, "processed_differently",
		"this handler scope has processed %s with other effects (at %s); make handlers derive equal effects from equal input, or raise executionGeneration to process it again on purpose",
		describe(k.Input), api.Time(known.At)).With("processedAt", "%s", api.Time(known.At))
}

// tokenOf is where the effects of a record were committed, in the history that
// committed them: it stays what it was when the store is restored.
func tokenOf(c *op.Ctx, known *record) (api.CommitToken, error) {
	history := c.Incarnation
	e, earlier, err := lineage.Of(c.Tx, c.Space.Shard, known.Position)
	if earlier {
		history = e.Incarnation
	}
	return api.CommitToken{
		Incarnation: uuid.UUID(history).String(), Partition: c.Partition,
		Position: known.Position, OwnershipEpoch: known.Epoch,
	}, err
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
