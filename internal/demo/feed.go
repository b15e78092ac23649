package demo

import (
	"context"
	"fmt"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
)

// repositoryDocument counts the deliveries of one repository.
type repositoryDocument struct {
	Repository string         `json:"repository"`
	Total      int            `json:"total"`
	Events     map[string]int `json:"events"`
}

// feed commits one batch per delivery, from the first, whatever is stored
// already: receipts answer for that.
func feed(ctx context.Context, d api.Doer, run identity, input []delivery, w *lineWriter) error {
	calls := client.CallsOf(d)
	seen := map[string]map[string]bool{} // events by repository, so far
	for i := range input {
		x := &input[i]
		id := run.commandID("feed", i)
		before, err := calls.Outcome(ctx, partition(), id)
		if err != nil {
			return err
		}
		got, err := calls.CommitAs(ctx, id, partition(), batch(x, seen)...)
		if err != nil {
			return fmt.Errorf("%s: %w", x.id, err)
		}
		replayed := before.Receipt != nil
		if replayed && *before.Receipt != got.Receipt {
			return fmt.Errorf("%s: the repeated command got another receipt than the first time", x.id)
		}
		if err := w.write(line{Kind: lineFed, Index: i, Replayed: replayed}); err != nil {
			return err
		}
	}
	return nil
}

// batch is everything one delivery changes. It depends on the deliveries before
// it and not on the store, so a repeated command has the same content.
func batch(x *delivery, seen map[string]map[string]bool) []api.Mutation {
	event := keyload.Event(x.eventType, x.payload)
	event.EventID = x.id
	out := []api.Mutation{
		count(x, seen),
		keyload.Append(history, x.repository, event),
		keyload.Publish(topic, event),
	}
	if x.notice != nil {
		m := keyload.Message(x.notice)
		m.MessageID = x.id
		out = append(out, keyload.Enqueue(queue, m))
	}
	return out
}

// count adds one to the repository's document. The increments expect no
// revision: applied twice they would be seen in the number.
func count(x *delivery, seen map[string]map[string]bool) api.Mutation {
	events := seen[x.repository]
	if events == nil {
		seen[x.repository] = map[string]bool{x.event: true}
		return keyload.PutAt(repositories, x.repository, 0, repositoryDocument{x.repository, 1, map[string]int{x.event: 1}})
	}
	patch := api.Patch{Op: api.PatchIncrement, Path: "/events/" + x.event, Value: api.Of(1)}
	if !events[x.event] {
		patch.Op = api.PatchSet
	}
	events[x.event] = true
	return api.Mutation{PatchDocument: &api.PatchDocument{Collection: repositories, ID: x.repository, Patches: []api.Patch{
		{Op: api.PatchIncrement, Path: "/total", Value: api.Of(1)}, patch,
	}}}
}
