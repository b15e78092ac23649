package keyload

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
)

// The constructors of package client under the name of this one, for programs
// that open a store. A program that only calls a server imports package client
// and links no storage engine.

// Partition is client.Partition.
func Partition(tenant, database, domain, key string) api.PartitionRef {
	return client.Partition(tenant, database, domain, key)
}

// Lane is client.Lane.
func Lane(p api.PartitionRef, queue string) api.LaneRef { return client.Lane(p, queue) }

// Put is client.Put.
func Put(collection, id string, document any) api.Mutation {
	return client.Put(collection, id, document)
}

// PutAt is client.PutAt.
func PutAt(collection, id string, revision uint64, document any) api.Mutation {
	return client.PutAt(collection, id, revision, document)
}

// Delete is client.Delete.
func Delete(collection, id string) api.Mutation { return client.Delete(collection, id) }

// Append is client.Append.
func Append(streamSet, streamID string, events ...api.Event) api.Mutation {
	return client.Append(streamSet, streamID, events...)
}

// Publish is client.Publish.
func Publish(topic string, events ...api.Event) api.Mutation { return client.Publish(topic, events...) }

// Enqueue is client.Enqueue.
func Enqueue(queue string, m api.Message) api.Mutation { return client.Enqueue(queue, m) }

// Event is client.Event.
func Event(eventType string, payload any) api.Event { return client.Event(eventType, payload) }

// Message is client.Message.
func Message(payload any) api.Message { return client.Message(payload) }
