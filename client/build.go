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

// Topic names the events of one topic in one partition.
func Topic(p api.PartitionRef, topic string) api.SourceRef {
	return api.SourceRef{Partition: p, Resource: topic, Kind: api.SourceTopic}
}

// Stream names the first generation of one stream in one partition, to read it.
func Stream(p api.PartitionRef, streamSet, streamID string) api.StreamRef {
	return api.StreamRef{Partition: p, StreamSet: streamSet, StreamID: streamID}
}

// StreamSource names the events of the same stream, for what follows topics and
// streams alike: groups and tails.
func StreamSource(p api.PartitionRef, streamSet, streamID string) api.SourceRef {
	return api.SourceRef{Partition: p, Resource: streamSet, Kind: api.SourceStream, StreamID: streamID}
}

// Group names one subscription group of a source.
func Group(source api.SourceRef, group string) api.GroupRef {
	return api.GroupRef{Source: source, Group: group}
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

// Patch changes fields of a document, whatever its revision: 1 to 256 patches, in
// order and all or none.
func Patch(collection, id string, patches ...api.Patch) api.Mutation {
	return api.Mutation{PatchDocument: &api.PatchDocument{Collection: collection, ID: id, Patches: patches}}
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

// PurgeTopic removes the events of a topic up to a position, which no group's
// checkpoint may be below.
func PurgeTopic(topic string, throughPosition uint64) api.Mutation {
	return api.Mutation{PurgeTopic: &api.PurgeTopic{Topic: topic, ThroughPosition: throughPosition}}
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
