// Package topic is published events: one ordered history a topic and partition,
// read by many.
//
// Owns: the mutations publish and purgeTopic and the operation events.read.
//
// May: use source, which keeps the events.
//
// May not: own a table; know who reads.
//
// Start reading at: topic.go.
package topic
