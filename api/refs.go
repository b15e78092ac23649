package api

import (
	"strings"

	"github.com/keyload/keyload/fault"
)

// PartitionRef names the unit of atomicity and order. Absent fields take the
// defaults default/main/main/main.
type PartitionRef struct {
	Tenant   string `json:"tenant,omitzero" cbor:"1,keyasint,omitempty" default:"default" format:"identifier" doc:"isolation boundary for quotas and keys"`
	Database string `json:"database,omitzero" cbor:"2,keyasint,omitempty" default:"main" format:"identifier" doc:"namespace of resources within the tenant"`
	Domain   string `json:"domain,omitzero" cbor:"3,keyasint,omitempty" default:"main" format:"identifier" doc:"transaction domain: the resources that may commit together"`
	Key      string `json:"key,omitzero" cbor:"4,keyasint,omitempty" default:"main" format:"identifier" doc:"partition key"`
}

// String is the text form tenant/database/domain/key with '/' and '%'
// percent-encoded.
func (p PartitionRef) String() string {
	return escapePart(p.Tenant) + "/" + escapePart(p.Database) + "/" + escapePart(p.Domain) + "/" + escapePart(p.Key)
}

// ParsePartition reads the text form. Fewer than four parts leave the trailing
// ones at their defaults; the empty text is the default partition.
func ParsePartition(text string) (PartitionRef, error) {
	p := PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}
	if text == "" {
		return p, nil
	}
	parts := strings.Split(text, "/")
	if len(parts) > 4 {
		return p, fault.Invalid("/partition", "has %d parts; the form is tenant/database/domain/key, with '/' inside a part written as %%2F", len(parts))
	}
	for i, dst := range []*string{&p.Tenant, &p.Database, &p.Domain, &p.Key} {
		if i >= len(parts) {
			break
		}
		s, ok := unescapePart(parts[i])
		if !ok {
			return p, fault.Invalid("/partition", "part %d has a '%%' that is not %%2F or %%25", i+1)
		}
		*dst = s
	}
	return p, nil
}

func escapePart(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "%", "%25"), "/", "%2F")
}

func unescapePart(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		switch {
		case strings.HasPrefix(s[i:], "%25"):
			b.WriteByte('%')
		case strings.HasPrefix(s[i:], "%2F"), strings.HasPrefix(s[i:], "%2f"):
			b.WriteByte('/')
		default:
			return "", false
		}
		i += 2
	}
	return b.String(), true
}

// LaneRef names one queue in one partition.
type LaneRef struct {
	Partition PartitionRef `json:"partition,omitzero" cbor:"1,keyasint" doc:"partition it is in"`
	Queue     string       `json:"queue" cbor:"2,keyasint" format:"identifier" doc:"name of the queue"`
}

// String is partition/queue.
func (l LaneRef) String() string { return l.Partition.String() + "/" + escapePart(l.Queue) }

// StreamRef names one generation of one event stream.
type StreamRef struct {
	Partition  PartitionRef `json:"partition,omitzero" cbor:"1,keyasint" doc:"partition it is in"`
	StreamSet  string       `json:"streamSet" cbor:"2,keyasint" format:"identifier" doc:"name of the stream set"`
	StreamID   string       `json:"streamId" cbor:"3,keyasint" format:"identifier" doc:"id of the stream within its set"`
	Generation uint64       `json:"generation,omitzero" cbor:"4,keyasint,omitempty" default:"1" minimum:"1" doc:"generation of the stream"`
}

// SourceKind is topic or stream.
type SourceKind string

// The two kinds of source.
const (
	SourceTopic  SourceKind = "topic"
	SourceStream SourceKind = "stream"
)

// SourceRef names one topic, or one generation of one stream, in one partition.
type SourceRef struct {
	Partition  PartitionRef `json:"partition,omitzero" cbor:"1,keyasint" doc:"partition it is in"`
	Resource   string       `json:"resource" cbor:"2,keyasint" format:"identifier" doc:"name of the topic or stream set"`
	Kind       SourceKind   `json:"kind,omitzero" cbor:"3,keyasint,omitempty" default:"topic" enum:"topic,stream" doc:"what the resource is"`
	StreamID   string       `json:"streamId,omitzero" cbor:"4,keyasint,omitempty" format:"identifier" doc:"id of the stream; only with kind stream"`
	Generation uint64       `json:"generation,omitzero" cbor:"5,keyasint,omitempty" default:"1" minimum:"1" doc:"generation of the source"`
}

// Check wants a stream id exactly where the source is a stream.
func (s *SourceRef) Check() []fault.Violation {
	switch {
	case s.Kind == SourceStream && s.StreamID == "":
		return []fault.Violation{{Path: "/streamId", Message: "is required with kind stream"}}
	case s.Kind == SourceTopic && s.StreamID != "":
		return []fault.Violation{{Path: "/streamId", Message: "belongs to kind stream"}}
	}
	return nil
}

// String is partition/resource for a topic, partition/resource/stream for a
// stream.
func (s SourceRef) String() string {
	out := s.Partition.String() + "/" + escapePart(s.Resource)
	if s.Kind == SourceStream {
		out += "/" + escapePart(s.StreamID)
	}
	return out
}
