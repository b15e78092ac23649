package op

import (
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
)

// Scope is what commands and queries have in common: a state to read, an
// instant, a place and a caller.
type Scope struct {
	R           kv.Reader
	Now         int64 // milliseconds; logged time for commands, the leader's clock for queries
	Space       table.Space
	Partition   api.PartitionRef
	Principal   *api.Principal // never nil; must not be changed
	Incarnation [16]byte
	Registry    *Registry
}

// Shard's own rows live in the zero partition.
func (s *Scope) ShardSpace() table.Space { return table.Space{Shard: s.Space.Shard} }

// Ctx is the context of one command in the state machine.
type Ctx struct {
	Scope
	Tx        *kv.Tx // the same state as R, writable
	CommandID [16]byte
	Position  uint64 // of this command in its shard
	Epoch     uint64 // ownership epoch
	seed      uint64
	draws     uint64
	idText    string
	hints     []Hint
}

// Hint wakes callers that wait for something. Losing one only delays.
type Hint struct {
	Key string
	// Count is how many things there are, at least 1. Every class of callers that
	// wait for the key may have them all (the groups of one topic), and one of its
	// callers one: so many of each class are woken. Callers without a class leave
	// what they find (readers of a topic) and are woken whatever the count.
	Count int
}

// NewCtx is for the machine. The seed is the randomness the leader logged.
func NewCtx(s Scope, tx *kv.Tx, id [16]byte, position, epoch, seed uint64) *Ctx {
	s.R = tx
	return &Ctx{Scope: s, Tx: tx, CommandID: id, Position: position, Epoch: epoch, seed: seed}
}

// Wake tells the hub that there are count things for those who wait for key, once
// the entry is durable: Hint.
func (c *Ctx) Wake(key string, count int) {
	if n := len(c.hints); n > 0 && c.hints[n-1].Key == key {
		c.hints[n-1].Count += count
		return
	}
	c.hints = append(c.hints, Hint{key, count})
}

// Hints returns what was said with Wake.
func (c *Ctx) Hints() []Hint { return c.hints }

// Random draws a number below n (n ≥ 1) from the logged seed, the position and
// the count of draws: equal on every replica.
func (c *Ctx) Random(n uint64) uint64 {
	x := c.seed ^ c.Position*0x9E3779B97F4A7C15 ^ c.draws*0xD1B54A32D192ED03
	c.draws++
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	x ^= x >> 31
	return x % n
}

// DerivedID is the id of a message or event that came without one: the command
// id and the numbers that say which one it is, joined by '-', so that a retry
// derives the same. Ids of version 7 commands sort by time, which keeps new rows
// together.
func (c *Ctx) DerivedID(indexes ...int) string {
	if c.idText == "" {
		c.idText = uuid.UUID(c.CommandID).String()
	}
	b := append(make([]byte, 0, 48), c.idText...)
	for _, i := range indexes {
		b = strconv.AppendInt(append(b, '-'), int64(i), 10)
	}
	return string(b)
}

// Token is the commit token of the command.
func (c *Ctx) Token() api.CommitToken {
	return api.CommitToken{
		Incarnation: uuid.UUID(c.Incarnation).String(), Partition: c.Partition,
		Position: c.Position, OwnershipEpoch: c.Epoch,
	}
}

// Mutate applies the i-th mutation of a batch or of a processing request.
func (c *Ctx) Mutate(i int, m *api.Mutation) (api.MutationResult, error) {
	h, ok := c.Registry.Mutation(m.Kind())
	if !ok {
		return api.MutationResult{}, fmt.Errorf("op: mutation %q has no handler", m.Kind())
	}
	return h.Apply(c, i, m)
}

// MutateAll applies the mutations of a command in order, each with its result;
// none have nil. The first refusal ends it and says, as the fact of the given
// name, which mutation was refused, counted from 0; without a name it does not.
// The mutations before it stay applied until the machine drops the command.
func (c *Ctx) MutateAll(fact string, mutations []api.Mutation) ([]api.MutationResult, error) {
	if len(mutations) == 0 {
		return nil, nil
	}
	results := make([]api.MutationResult, len(mutations))
	for i := range mutations {
		r, err := c.Mutate(i, &mutations[i])
		if err != nil {
			if f := fault.From(err); f != nil && fact != "" {
				f.With(fact, "%s", strconv.Itoa(i))
			}
			return nil, err
		}
		results[i] = r
	}
	return results, nil
}

// View is the context of one query.
type View struct {
	Scope
	Door Door
}

// Door is what the engine lends to the functions that run outside the state
// machine.
type Door struct {
	Tokens *token.Sealer
	Now    int64 // the node's clock, milliseconds
	Random func(b []byte)
}
