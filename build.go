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

// Topic is client.Topic.
func Topic(p api.PartitionRef, topic string) api.SourceRef { return client.Topic(p, topic) }

// Stream is client.Stream.
func Stream(p api.PartitionRef, streamSet, streamID string) api.StreamRef {
	return client.Stream(p, streamSet, streamID)
}

// StreamSource is client.StreamSource.
func StreamSource(p api.PartitionRef, streamSet, streamID string) api.SourceRef {
	return client.StreamSource(p, streamSet, streamID)
}

// Group is client.Group.
func Group(source api.SourceRef, group string) api.GroupRef { return client.Group(source, group) }

// Put is client.Put.
func Put(collection, id string, document any) api.Mutation {
	return client.Put(collection, id, document)
}

// PutAt is client.PutAt.
func PutAt(collection, id string, revision uint64, document any) api.Mutation {
	return client.PutAt(collection, id, revision, document)
}

// Patch is client.Patch.
func Patch(collection, id string, patches ...api.Patch) api.Mutation {
	return client.Patch(collection, id, patches...)
}

// Delete is client.Delete.
func Delete(collection, id string) api.Mutation { return client.Delete(collection, id) }

// Append is client.Append.
func Append(streamSet, streamID string, events ...api.Event) api.Mutation {
	return client.Append(streamSet, streamID, events...)
}

// Publish is client.Publish.
func Publish(topic string, events ...api.Event) api.Mutation { return client.Publish(topic, events...) }

// PurgeTopic is client.PurgeTopic.
func PurgeTopic(topic string, throughPosition uint64) api.Mutation {
	return client.PurgeTopic(topic, throughPosition)
}

// Enqueue is client.Enqueue.
func Enqueue(queue string, m api.Message) api.Mutation { return client.Enqueue(queue, m) }

// Event is client.Event.
func Event(eventType string, payload any) api.Event { return client.Event(eventType, payload) }

// Message is client.Message.
func Message(payload any) api.Message { return client.Message(payload) }
