package worker

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
)

// Tx collects what a handler wants changed. When the handler returns nil, its
// changes commit in the order of the calls, together with the acknowledgement
// and the inbox record: all or nothing. They all belong to the delivery's
// partition, and there are at most 256. When the store refuses one, such as a
// PutAt of another revision, nothing commits and the delivery fails with the
// store's text.
//
// The zero value is ready to use. It is not safe for concurrent use.
type Tx struct{ effects []api.Mutation }

// Put writes a document, whatever was there. The value must encode to a JSON
// object.
func (t *Tx) Put(collection, id string, document any) {
	t.Add(client.Put(collection, id, document))
}

// PutAt writes a document if its revision is the expected one; 0 means that it
// must not exist.
func (t *Tx) PutAt(collection, id string, revision uint64, document any) {
	t.Add(client.PutAt(collection, id, revision, document))
}

// Patch changes fields of a document that exists.
func (t *Tx) Patch(collection, id string, patches ...api.Patch) {
	t.Add(client.Patch(collection, id, patches...))
}

// Delete removes a document.
func (t *Tx) Delete(collection, id string) { t.Add(client.Delete(collection, id)) }

// Append adds events to a stream, whatever its revision.
func (t *Tx) Append(streamSet, streamID string, events ...api.Event) {
	t.Add(client.Append(streamSet, streamID, events...))
}

// Publish adds events to a topic.
func (t *Tx) Publish(topic string, events ...api.Event) { t.Add(client.Publish(topic, events...)) }

// Enqueue adds a message to a queue.
func (t *Tx) Enqueue(queue string, m api.Message) { t.Add(client.Enqueue(queue, m)) }

// Add adds mutations of any kind.
func (t *Tx) Add(mutations ...api.Mutation) { t.effects = append(t.effects, mutations...) }

// Effects are the mutations so far, in order: what a test of a handler looks at.
func (t *Tx) Effects() []api.Mutation { return t.effects }
