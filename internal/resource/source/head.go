package source

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Head is what is known of a source without looking at its events:
//
//	positions   1 … Forgotten … Removed … Cut … Tail
//	            nothing |  ids   | events | retained
//	              left  |  only  | & ids  |
//
// Byte counts are cumulative from position 1 on and count key and record of
// every event as it is stored, so what a source retains is a subtraction.
type Head struct {
	Tail      uint64 // last position; 0 is none
	Cut       uint64 // last purged position; reads begin after it
	Removed   uint64 // last position whose event row is gone
	Forgotten uint64 // last position whose id is gone
	TailBytes uint64 // stored bytes of the events 1..Tail
	CutBytes  uint64 // stored bytes of the events 1..Cut

	KeepIDsUntil int64 // logged time until which ids of purged events stay; never goes back
	ArmedPurge   int64 // instant of the DuePurge row, 0 is none
	ArmedIDs     int64 // instant of the DuePurgedIDs row, 0 is none

	PinFloor uint64 // every pin of the source is here or above; 0 says nothing
	ArmedAge int64  // instant of the DueAge row, 0 is none
}

// First is the position of the first retained event, or of the next one when
// none is retained.
func (h Head) First() uint64 { return h.Cut + 1 }

// Events is how many events are retained.
func (h Head) Events() uint64 { return h.Tail - h.Cut }

// Bytes is how many bytes the retained events take as they are stored. The
// identities beside them are not counted.
func (h Head) Bytes() uint64 { return h.TailBytes - h.CutBytes }

// Look reads the head of a source; a source without events has the zero head.
func Look(s *op.Scope, k Key) (Head, error) {
	h, _, err := heads.Get(s.R, k)
	return h, err
}

// saturatedTime is an instant plus a duration in seconds, at most api.MaxTime.
func saturatedTime(now, seconds int64) int64 {
	if seconds > (int64(api.MaxTime)-now)/1000 {
		return int64(api.MaxTime)
	}
	return now + seconds*1000
}

// arm moves the due row of one kind and remembers it in the head.
func arm(c *op.Ctx, k Key, kind table.DueKind, armed *int64, when int64) {
	table.Arm(c.Tx, k.Owner.Shard, kind, k.Append(nil), armed, when)
}

// headVersion 2 added PinFloor and ArmedAge. A head of version 1 says nothing of
// pins, and its source had no age.
const headVersion = 2

func (h *Head) encode(dst []byte) []byte {
	dst = append(dst, headVersion)
	for _, v := range [...]uint64{h.Tail, h.Cut, h.Removed, h.Forgotten, h.TailBytes, h.CutBytes} {
		dst = codec.AppendUvarint(dst, v)
	}
	for _, v := range [...]int64{h.KeepIDsUntil, h.ArmedPurge, h.ArmedIDs} {
		dst = codec.AppendVarint(dst, v)
	}
	return codec.AppendVarint(codec.AppendUvarint(dst, h.PinFloor), h.ArmedAge)
}

func (h *Head) decode(b []byte) error {
	r := codec.NewReader(b)
	version := r.Version(headVersion)
	for _, p := range [...]*uint64{&h.Tail, &h.Cut, &h.Removed, &h.Forgotten, &h.TailBytes, &h.CutBytes} {
		*p = r.Uvarint()
	}
	for _, p := range [...]*int64{&h.KeepIDsUntil, &h.ArmedPurge, &h.ArmedIDs} {
		*p = r.Varint()
	}
	if version >= 2 {
		h.PinFloor, h.ArmedAge = r.Uvarint(), r.Varint()
	}
	return r.End()
}
