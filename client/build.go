package client

import "github.com/keyload/keyload/api"

// Partition names the unit of atomicity and order.
func Partition(tenant, database, domain, key string) api.PartitionRef {
	return api.PartitionRef{Tenant: tenant, Database: database, Domain: domain, Key: key}
}

// Lane names one queue in one partition.
func Lane(p api.PartitionRef, queue string) api.LaneRef {
	return api.LaneRef{Partition: p, Queue: queue}
}

// Put writes a document, whatever was there. The value must encode to a JSON
// object.
func Put(collection, id string, document any) api.Mutation {
	return api.Mutation{PutDocument: &api.PutDocument{Collection: collection, ID: id, Document: api.Of(document)}}
}

// PutAt writes a document if its revision is the expected one; 0 means that it
// must not exist.
func PutAt(collection, id string, revision uint64, document any) api.Mutation {
	m := Put(collection, id, document)
	m.PutDocument.ExpectedRevision = &revision
	return m
}

// Delete removes a document and keeps its revision.
func Delete(collection, id string) api.Mutation {
	return api.Mutation{DeleteDocument: &api.DeleteDocument{Collection: collection, ID: id}}
}

// Append adds events to a stream, whatever its revision.
func Append(streamSet, streamID string, events ...api.Event) api.Mutation {
	return api.Mutation{AppendEvents: &api.AppendEvents{
		StreamSet: streamSet, StreamID: streamID, Expected: api.ExpectedStream{Any: true}, Events: events,
	}}
}

// Publish adds events to a topic.
func Publish(topic string, events ...api.Event) api.Mutation {
	return api.Mutation{Publish: &api.Publish{Topic: topic, Events: events}}
}

// Enqueue adds a message to a queue.
func Enqueue(queue string, m api.Message) api.Mutation {
	return api.Mutation{Enqueue: &api.Enqueue{Queue: queue, Message: m}}
}

// Event is an event of a type with a payload.
func Event(eventType string, payload any) api.Event {
	return api.Event{Type: eventType, Payload: api.Of(payload)}
}

// Message is a message with a payload.
func Message(payload any) api.Message { return api.Message{Payload: api.Of(payload)} }
