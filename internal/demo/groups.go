package demo

import (
	"encoding/json"
	"strings"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
)

// The resources that the handlers of the groups write to.
const (
	trails    = "trails"  // stream set: effect of an event in a group, one event each; a stream per group
	tallies   = "tallies" // collection: effect of an event in a group, counted by type; a document per group
	trailType = "Handled"
)

// group is one subscription group on the topic. It is also the scope of its
// handlers: each group handles an event once, whatever the others do.
type group struct {
	name    string
	prefix  string // of the types of the events it reads; empty for every event
	trouble trouble
}

// groups are all subscription groups of the demo.
var groups = []group{
	{"audit", "", trouble{crashes: 8, late: 8, long: 3, failOnce: 30, failTwice: 10}},
	{"reviews", "pull_request", trouble{crashes: 3, late: 3, long: 1, failOnce: 6, failTwice: 2}},
}

func (g *group) ref() api.GroupRef {
	return keyload.Group(keyload.Topic(partition(), topic), g.name)
}

func (g *group) definition() api.GroupDefinition {
	d := api.GroupDefinition{Policy: api.GroupPolicy{MaxAttempts: maxAttempts, Retry: retries()}}
	if g.prefix != "" {
		d.Filter.EventTypes = []string{g.prefix + "*"}
	}
	return d
}

// reads says whether a delivery is for the group. The comparison asks this; the
// store has the filter.
func (g *group) reads(d *delivery) bool { return strings.HasPrefix(d.eventType, g.prefix) }

// handled is what one event must leave in a group.
type handled struct {
	position  uint64 // on the topic, where the i-th delivery stands at i+1
	eventType string
	id        string
	payload   trailPayload
}

// work is everything the input has for the group.
func (g *group) work(input []delivery) []handled {
	var out []handled
	for i := range input {
		if d := &input[i]; g.reads(d) {
			at := uint64(i + 1)
			out = append(out, handled{at, d.eventType, d.id, trailPayload{d.id, at, d.eventType, digest(d.eventType, d.payload)}})
		}
	}
	return out
}

// zeros is the group's tally before anything is handled: every type it will
// meet.
func (g *group) zeros(input []delivery) map[string]int {
	out := map[string]int{}
	for _, h := range g.work(input) {
		out[h.eventType] = 0
	}
	return out
}

// trailPayload is the payload of the event that an event leaves in a group.
type trailPayload struct {
	Delivery string `json:"delivery"`
	Position uint64 `json:"position"`
	Type     string `json:"type"`
	Digest   string `json:"digest"` // of its type and payload
}

// effectsOf is what a handler of the group makes of an event. It depends on the
// event alone, and no part is protected by itself against being applied twice.
func (g *group) effectsOf(e *api.StoredEvent) []api.Mutation {
	return []api.Mutation{
		keyload.Append(trails, g.name, keyload.Event(trailType,
			trailPayload{e.EventID, e.Position, e.Type, digest(e.Type, json.RawMessage(e.Payload))})),
		keyload.Patch(tallies, g.name, api.Patch{Op: api.PatchIncrement, Path: "/" + e.Type, Value: api.Of(1)}),
	}
}
