package source

import (
	"bytes"

	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/token"
)

// Raw is the stored record of one event that is known to be there, for a copy
// that outlives it. DecodeRecord takes it apart.
func Raw(s *op.Scope, k Key, position uint64) ([]byte, error) {
	b, err := Find(s, k, position)
	if err == nil && b == nil {
		return nil, missing(k, position)
	}
	return append([]byte(nil), b...), err
}

// Find is Raw of an event that may be gone, which is nil. It must not be changed.
func Find(s *op.Scope, k Key, position uint64) ([]byte, error) {
	b, _, err := s.R.Get(events.Bytes(eventKey{k, position}))
	return b, err
}

// DecodeRecord takes a record apart that Raw returned. The result aliases b.
func DecodeRecord(b []byte) (e Record, err error) {
	err = e.decode(b)
	return e, err
}

// ContentBytes is what an event counts toward the bytes a reader asks for:
// payload and headers.
func (e *Record) ContentBytes() uint64 { return uint64(len(e.Payload) + len(e.headers)) }

// CursorPosition is the place of a cursor of a forward read, which the door has
// verified. Errors: those of a cursor that is not of this source and direction, or
// too old.
func CursorPosition(c *op.Ctx, k Key, text string) (uint64, error) {
	claims, ok := token.Claims(text)
	if !ok {
		return 0, badCursor()
	}
	return placeOf(claims, k, false, c.Now)
}

// Holds says that a copy of a record is the event at a position. Of an event that is
// gone the content is compared with its identity; where that is gone as well, any
// record will do.
func Holds(s *op.Scope, k Key, position uint64, record []byte) (bool, error) {
	e, err := DecodeRecord(record)
	if err != nil {
		return false, nil
	}
	stored, ok, err := s.R.Get(events.Bytes(eventKey{k, position}))
	if ok || err != nil {
		return bytes.Equal(stored, record), err
	}
	has, ok, err := identities.Get(s.R, idKey{k, string(e.ID)})
	content := record[len(appendRecordHead(nil, e.Before, string(e.ID), e.PublishedAt)):]
	return !ok || has.Position == position && has.Digest == digestOf(content), err
}
