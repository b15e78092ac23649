package api

import (
	"strconv"

	"github.com/keyload/keyload/fault"
)

// ResourceKind is what a resource holds.
type ResourceKind string

// The kinds of resources.
const (
	KindCollection ResourceKind = "collection" // documents
	KindStreamSet  ResourceKind = "streamSet"  // event streams
	KindTopic      ResourceKind = "topic"      // published events
	KindQueue      ResourceKind = "queue"      // messages
)

// Resource is one entry of the catalog: what was configured, with every default
// filled in, and what the store added.
type Resource struct {
	Tenant        string            `json:"tenant" cbor:"1,keyasint" doc:"isolation boundary for quotas and keys"`
	Database      string            `json:"database" cbor:"2,keyasint" doc:"namespace of resources within the tenant"`
	Name          string            `json:"name" cbor:"3,keyasint" doc:"name within the database"`
	Domain        string            `json:"domain" cbor:"4,keyasint" doc:"transaction domain the resource is bound to"`
	Kind          ResourceKind      `json:"kind" cbor:"5,keyasint" enum:"collection,streamSet,topic,queue" doc:"what the resource holds"`
	Collection    *CollectionPolicy `json:"collection,omitzero" cbor:"6,keyasint,omitempty" doc:"only of a collection"`
	Queue         *QueuePolicy      `json:"queue,omitzero" cbor:"7,keyasint,omitempty" doc:"only of a queue"`
	Source        *SourcePolicy     `json:"source,omitzero" cbor:"8,keyasint,omitempty" doc:"only of a topic or stream set"`
	FieldPolicies []FieldPolicy     `json:"fieldPolicies,omitempty" cbor:"9,keyasint,omitempty" doc:"protected fields"`
	Paused        bool              `json:"paused,omitzero" cbor:"10,keyasint,omitempty" doc:"whether delivery is stopped"`
	ID            uint32            `json:"id" cbor:"11,keyasint" doc:"short number that names the resource in stored keys"`
	Version       uint64            `json:"version" cbor:"12,keyasint" doc:"rises with every change"`
	CreatedAt     Time              `json:"createdAt" cbor:"13,keyasint" doc:"logged time of the first configuration"`
	UpdatedAt     Time              `json:"updatedAt" cbor:"14,keyasint" doc:"logged time of the last change"`
	Deleting      bool              `json:"deleting,omitzero" cbor:"15,keyasint,omitempty" doc:"the content is being removed; nothing can be written or read"`
}

// CollectionPolicy is how a collection checks and finds documents.
type CollectionPolicy struct {
	Indexes                   []IndexDefinition `json:"indexes,omitempty" cbor:"1,keyasint,omitempty" maxItems:"32" doc:"indexes over fields of the documents"`
	Schema                    JSON              `json:"schema,omitzero" cbor:"2,keyasint,omitempty" maxLength:"65536" format:"object" doc:"JSON Schema every written document must satisfy"`
	TombstoneRetentionSeconds int64             `json:"tombstoneRetentionSeconds,omitzero" cbor:"3,keyasint,omitempty" default:"2592000" minimum:"1" maximum:"31536000" doc:"how long the revision of a deleted document is kept"`
}

// Check refuses two indexes of one name.
func (c *CollectionPolicy) Check() []fault.Violation {
	seen := map[string]bool{}
	for i, x := range c.Indexes {
		if seen[x.Name] {
			return []fault.Violation{{Path: "/indexes/" + strconv.Itoa(i) + "/name", Message: "is used by another index"}}
		}
		seen[x.Name] = true
	}
	return nil
}

// IndexDefinition is one index over scalar fields of a collection's documents.
type IndexDefinition struct {
	Name   string   `json:"name" cbor:"1,keyasint" format:"identifier" doc:"name within the collection"`
	Paths  []string `json:"paths" cbor:"2,keyasint" minItems:"1" maxItems:"8" format:"pointer" doc:"JSON pointers of the indexed fields, most significant first"`
	Unique bool     `json:"unique,omitzero" cbor:"3,keyasint,omitempty" doc:"whether a second document with equal values is refused; per partition"`
}

// RetryPolicy is how long a message waits after a failure: base × factor^(n−1)
// for the n-th failure, at most max, then jitter.
type RetryPolicy struct {
	BaseMillis int64  `json:"baseMillis,omitzero" cbor:"1,keyasint,omitempty" default:"1000" minimum:"1" maximum:"86400000" doc:"wait after the first failure"`
	MaxMillis  int64  `json:"maxMillis,omitzero" cbor:"2,keyasint,omitempty" default:"300000" minimum:"1" maximum:"86400000" doc:"longest wait"`
	Factor     int64  `json:"factor,omitzero" cbor:"3,keyasint,omitempty" default:"2" minimum:"1" maximum:"10" doc:"growth of the wait with every failure"`
	Jitter     string `json:"jitter,omitzero" cbor:"4,keyasint,omitempty" default:"full" enum:"full,none" doc:"full picks the wait evenly between zero and the computed one"`
}

// The kinds of jitter.
const (
	JitterFull = "full"
	JitterNone = "none"
)

// Check refuses a longest wait below the first.
func (p *RetryPolicy) Check() []fault.Violation {
	if p.MaxMillis < p.BaseMillis {
		return []fault.Violation{{Path: "/maxMillis", Message: "must not be less than baseMillis"}}
	}
	return nil
}

// DeadLetterPolicy bounds the dead letters of one lane. They count toward the
// queue's stored quota too.
type DeadLetterPolicy struct {
	MaxMessages int64 `json:"maxMessages,omitzero" cbor:"1,keyasint,omitempty" default:"100000" minimum:"1" maximum:"1000000000" doc:"most dead letters; further ones wait as pendingDeadLetter"`
	MaxBytes    int64 `json:"maxBytes,omitzero" cbor:"2,keyasint,omitempty" default:"536870912" minimum:"1" maximum:"1099511627776" doc:"most bytes of dead letters"`
}

// QueuePolicy is how a queue delivers. Quotas are per lane.
type QueuePolicy struct {
	MaxAttempts              int64            `json:"maxAttempts,omitzero" cbor:"1,keyasint,omitempty" default:"5" minimum:"1" maximum:"1000" doc:"claims before dead-lettering; lowered, it ends messages that wait after as many"`
	Retry                    RetryPolicy      `json:"retry,omitzero" cbor:"2,keyasint" doc:"waits between attempts"`
	MaxMessages              int64            `json:"maxMessages,omitzero" cbor:"3,keyasint,omitempty" default:"1000000" minimum:"1" maximum:"1000000000" doc:"most unfinished messages"`
	MaxBytes                 int64            `json:"maxBytes,omitzero" cbor:"4,keyasint,omitempty" default:"4294967296" minimum:"1" maximum:"1099511627776" doc:"most stored bytes of unfinished messages"`
	MaxInFlightMessages      int64            `json:"maxInFlightMessages,omitzero" cbor:"5,keyasint,omitempty" default:"10000" minimum:"1" maximum:"1000000" doc:"most leased messages"`
	MaxInFlightBytes         int64            `json:"maxInFlightBytes,omitzero" cbor:"6,keyasint,omitempty" default:"268435456" minimum:"1" maximum:"1099511627776" doc:"most bytes of leased messages"`
	MaxLeaseSeconds          int64            `json:"maxLeaseSeconds,omitzero" cbor:"7,keyasint,omitempty" default:"300" minimum:"1" maximum:"43200" doc:"longest single lease"`
	MaxLeaseAgeSeconds       int64            `json:"maxLeaseAgeSeconds,omitzero" cbor:"8,keyasint,omitempty" default:"43200" minimum:"1" maximum:"43200" doc:"longest lease with its renewals"`
	DeadLetter               DeadLetterPolicy `json:"deadLetter,omitzero" cbor:"9,keyasint" doc:"room for dead letters"`
	FinishedRetentionSeconds int64            `json:"finishedRetentionSeconds,omitzero" cbor:"10,keyasint,omitempty" default:"86400" minimum:"1" maximum:"31536000" doc:"how long ids and metadata of finished messages are kept"`
}

// Check refuses a lease age below one lease.
func (p *QueuePolicy) Check() []fault.Violation {
	if p.MaxLeaseAgeSeconds < p.MaxLeaseSeconds {
		return []fault.Violation{{Path: "/maxLeaseAgeSeconds", Message: "must not be less than maxLeaseSeconds"}}
	}
	return nil
}

// SourcePolicy is how much a topic, or each stream of a stream set, keeps.
type SourcePolicy struct {
	MaxEvents               int64  `json:"maxEvents,omitzero" cbor:"1,keyasint,omitempty" default:"10000000" minimum:"1" maximum:"1000000000000" doc:"most retained events"`
	MaxBytes                int64  `json:"maxBytes,omitzero" cbor:"2,keyasint,omitempty" default:"17179869184" minimum:"1" maximum:"1125899906842624" doc:"most retained bytes"`
	OnFull                  string `json:"onFull,omitzero" cbor:"3,keyasint,omitempty" default:"reject" enum:"reject,trim" doc:"what a write meets when the source is full: reject refuses it, trim removes the oldest events to make room, but none that a group has not finished"`
	EventIDRetentionSeconds int64  `json:"eventIdRetentionSeconds,omitzero" cbor:"4,keyasint,omitempty" default:"2592000" minimum:"1" maximum:"31536000" doc:"how long ids of removed events are still recognized"`
	MaxAgeSeconds           int64  `json:"maxAgeSeconds,omitzero" cbor:"5,keyasint,omitempty" minimum:"1" maximum:"3153600000" doc:"events older than this are removed, but none that a group has not finished; kept whatever their age when absent"`
}

// What a write meets when the source is full.
const (
	// OnFullReject refuses it.
	OnFullReject = "reject"
	// OnFullTrim makes room by removing the oldest events.
	OnFullTrim = "trim"
)

// FieldPolicy protects one field of the payloads or documents of a resource.
type FieldPolicy struct {
	Path string `json:"path" cbor:"1,keyasint" format:"pointer" doc:"JSON pointer of the protected field and everything below it"`
}
