package source

import (
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
)

// digestBytes is how much of the SHA-256 of an event's content is kept: 128
// bits, so no two contents of one id are ever taken for equal.
const digestBytes = 16

// Record is one stored event, taken apart without copying: its slices alias the
// row it was read from and must not be changed.
//
// The stored form is a version, what the store added (bytes before, id, logged
// time), then the content: what the producer said beside the id. The digest of
// an identity is over the bytes of the content, so two events are equal when
// the producer said the same, whenever it arrived and wherever it lies.
type Record struct {
	Before      uint64 // stored bytes of all events before this one
	ID          []byte
	PublishedAt int64 // logged time, milliseconds
	Content
}

// Content is what the producer said of an event beside its id.
type Content struct {
	Type          []byte
	JSON          bool // whether Payload is a JSON value
	Payload       []byte
	ContentType   []byte // only of a byte payload
	SchemaVersion uint64
	OccurredAt    int64 // milliseconds; 0 is absent
	CorrelationID []byte
	CausationID   []byte
	headers       []byte // pairs in order of name
}

const (
	recordVersion = 1

	hasJSON        = 1 << 0
	hasHeaders     = 1 << 1
	hasOccurred    = 1 << 2
	hasCorrelation = 1 << 3
	hasCausation   = 1 << 4
	allFlags       = 1<<5 - 1
)

// appendRecordHead appends what precedes the content.
func appendRecordHead(dst []byte, before uint64, id string, now int64) []byte {
	dst = codec.AppendUvarint(append(dst, recordVersion), before)
	dst = codec.AppendString(dst, id)
	return codec.AppendVarint(dst, now)
}

// appendContent appends the content of an event: the same bytes for the same
// content, whatever the order of its headers.
func appendContent(dst []byte, e *api.Event) []byte {
	dst = codec.AppendString(append(dst, contentFlags(e)), e.Type)
	dst = codec.AppendUvarint(dst, uint64(e.SchemaVersion))
	if len(e.Headers) > 0 {
		dst = appendHeaders(dst, e.Headers)
	}
	if e.OccurredAt != 0 {
		dst = codec.AppendVarint(dst, int64(e.OccurredAt))
	}
	if e.CorrelationID != "" {
		dst = codec.AppendString(dst, e.CorrelationID)
	}
	if e.CausationID != "" {
		dst = codec.AppendString(dst, e.CausationID)
	}
	if len(e.Payload) > 0 {
		return codec.AppendBytes(dst, e.Payload)
	}
	return codec.AppendBytes(codec.AppendString(dst, e.ContentType), e.PayloadBase64)
}

func contentFlags(e *api.Event) (flags byte) {
	for _, f := range [...]struct {
		set bool
		bit byte
	}{
		{len(e.Payload) > 0, hasJSON}, {len(e.Headers) > 0, hasHeaders}, {e.OccurredAt != 0, hasOccurred},
		{e.CorrelationID != "", hasCorrelation}, {e.CausationID != "", hasCausation},
	} {
		if f.set {
			flags |= f.bit
		}
	}
	return flags
}

// appendHeaders appends the pairs, sorted by name, as one block, so that a
// reader passes over them in one step.
func appendHeaders(dst []byte, headers map[string]string) []byte {
	names := slices.Sorted(maps.Keys(headers))
	size := numberBytes(len(names))
	for _, n := range names {
		size += numberBytes(len(n)) + len(n) + numberBytes(len(headers[n])) + len(headers[n])
	}
	dst = codec.AppendUvarint(dst, uint64(size))
	dst = codec.AppendUvarint(dst, uint64(len(names)))
	for _, n := range names {
		dst = codec.AppendString(codec.AppendString(dst, n), headers[n])
	}
	return dst
}

// numberBytes is how many bytes codec.AppendUvarint appends.
func numberBytes(v int) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// derivedIDBytes is at least the length of a derived id.
const derivedIDBytes = 64

// maxFixedBytes bounds the stored form of an event without its variable parts:
// a version, flags and eleven numbers and lengths.
const maxFixedBytes = 2 + 11*10

// recordBound is at least the length of the record of an event.
func recordBound(e *api.Event) int {
	n := maxFixedBytes + max(len(e.EventID), derivedIDBytes) + len(e.Type) + len(e.Payload) + len(e.PayloadBase64) + len(e.ContentType) +
		len(e.CorrelationID) + len(e.CausationID)
	//keyload:sorted a sum does not depend on order
	for k, v := range e.Headers {
		n += len(k) + len(v) + 10
	}
	return n
}

func digestOf(content []byte) (d [digestBytes]byte) {
	sum := sha256.Sum256(content)
	copy(d[:], sum[:])
	return d
}

func (e *Record) decode(b []byte) error {
	r := codec.NewReader(b)
	r.Version(recordVersion)
	e.Before, e.ID, e.PublishedAt = r.Uvarint(), r.Bytes(), r.Varint()
	flags := r.Byte()
	if flags&^allFlags != 0 {
		return codec.ErrRecord
	}
	e.Type, e.SchemaVersion = r.Bytes(), r.Uvarint()
	if flags&hasHeaders != 0 {
		e.headers = r.Bytes()
		if err := checkHeaders(e.headers); err != nil {
			return err
		}
	}
	if flags&hasOccurred != 0 {
		e.OccurredAt = r.Varint()
	}
	if flags&hasCorrelation != 0 {
		e.CorrelationID = r.Bytes()
	}
	if flags&hasCausation != 0 {
		e.CausationID = r.Bytes()
	}
	if e.JSON = flags&hasJSON != 0; !e.JSON {
		e.ContentType = r.Bytes()
	}
	e.Payload = r.Bytes()
	return r.End()
}

// stamp is what the search for a cut asks of an event.
type stamp struct {
	Before      uint64
	PublishedAt int64
}

// decode reads the front of a record.
func (s *stamp) decode(b []byte) error {
	r := codec.NewReader(b)
	r.Version(recordVersion)
	s.Before = r.Uvarint()
	r.Bytes()
	s.PublishedAt = r.Varint()
	return r.Err()
}

func checkHeaders(block []byte) error {
	r := codec.NewReader(block)
	for n := r.Uvarint(); n > 0 && r.Err() == nil; n-- {
		r.Bytes()
		r.Bytes()
	}
	return r.End()
}

// EachHeader calls fn for every header in order of name until fn returns false.
func (e *Record) EachHeader(fn func(name, value []byte) (more bool)) {
	if len(e.headers) == 0 {
		return
	}
	r := codec.NewReader(e.headers)
	for n := r.Uvarint(); n > 0; n-- {
		if name, value := r.Bytes(), r.Bytes(); !fn(name, value) {
			return
		}
	}
}

// Stored is the event as callers see it, with nothing taken out.
func (e *Record) Stored(position uint64) api.StoredEvent {
	out := api.StoredEvent{
		Position: position, EventID: string(e.ID), Type: string(e.Type),
		SchemaVersion: int64(e.SchemaVersion), OccurredAt: api.Time(e.OccurredAt),
		CorrelationID: string(e.CorrelationID), CausationID: string(e.CausationID),
		PublishedAt: api.Time(e.PublishedAt),
	}
	if e.JSON {
		out.Payload = e.Payload
	} else {
		out.PayloadBase64, out.ContentType = e.Payload, string(e.ContentType)
	}
	e.EachHeader(func(name, value []byte) bool {
		if out.Headers == nil {
			out.Headers = map[string]string{}
		}
		out.Headers[string(name)] = string(value)
		return true
	})
	return out
}
