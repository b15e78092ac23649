package group

import (
	"crypto/sha256"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// state is where an unfinished position, or a dead letter, is in its life. The
// numbers are stored: append only.
type state uint8

const (
	finished state = iota // a gap run
	ready
	leased
	waiting
	blocked // of a key with an older unfinished position
	held    // attempts used up; waits for a person
	dead    // a dead letter that waits for a person
	states  // one more than the last
)

var stateNames = [states]api.PositionState{
	finished: api.PositionFinished, ready: api.PositionReady, leased: api.PositionLeased, waiting: api.PositionWaiting,
	blocked: api.PositionBlocked, held: api.PositionHeld, dead: api.PositionDead,
}

func (s state) name() api.PositionState { return stateNames[s] }

// entry is what is known of a position that may be claimed, or of a dead letter.
type entry struct {
	State       state
	Attempts    uint64
	Failures    uint64
	LeaseLosses uint64
	IssuedAt    int64  // first claimed or met
	NotBefore   int64  // only while waiting
	Until       int64  // only while leased: deadline
	Batch       uint64 // only while leased: number of the lease, which is its version
	First       int64  // only while leased: when the lease was given, renewals aside
	Key         string // ordering key
	LastFailure string
}

const (
	hasFailure = 1 << iota
	hasKey
	hasTrouble // failures or lease losses
	allEntryFlags
)

const recordVersion = 1

func (e *entry) encode(dst []byte) []byte {
	flags := byte(0)
	if e.LastFailure != "" {
		flags |= hasFailure
	}
	if e.Key != "" {
		flags |= hasKey
	}
	if e.Failures|e.LeaseLosses != 0 {
		flags |= hasTrouble
	}
	dst = codec.AppendUvarint(append(dst, byte(e.State), flags), e.Attempts)
	dst = codec.AppendVarint(dst, e.IssuedAt)
	switch e.State {
	case waiting:
		dst = codec.AppendVarint(dst, e.NotBefore)
	case leased:
		dst = codec.AppendUvarint(codec.AppendVarint(dst, e.Until), e.Batch)
		dst = codec.AppendVarint(dst, e.First)
	}
	if flags&hasTrouble != 0 {
		dst = codec.AppendUvarint(codec.AppendUvarint(dst, e.Failures), e.LeaseLosses)
	}
	if flags&hasKey != 0 {
		dst = codec.AppendString(dst, e.Key)
	}
	if flags&hasFailure != 0 {
		dst = codec.AppendString(dst, e.LastFailure)
	}
	return dst
}

// decode reads what encode wrote after the state.
func (e *entry) decode(r *codec.Reader) error {
	flags := r.Byte()
	if e.State >= states || flags >= allEntryFlags {
		return codec.ErrRecord
	}
	e.Attempts, e.IssuedAt = r.Uvarint(), r.Varint()
	switch e.State {
	case waiting:
		e.NotBefore = r.Varint()
	case leased:
		e.Until, e.Batch, e.First = r.Varint(), r.Uvarint(), r.Varint()
	}
	if flags&hasTrouble != 0 {
		e.Failures, e.LeaseLosses = r.Uvarint(), r.Uvarint()
	}
	if flags&hasKey != 0 {
		e.Key = r.String()
	}
	if flags&hasFailure != 0 {
		e.LastFailure = r.String()
	}
	return r.Err()
}

// row is one row of the window: an unfinished position, or a gap run.
type row struct {
	entry
	End     uint64 // of a run: its last position
	Matched uint64 // of a run: how many of it the filter matched
}

func (r *row) isRun() bool { return r.State == finished }

func encodeRow(dst []byte, v *row) []byte {
	dst = append(dst, recordVersion)
	if v.isRun() {
		return codec.AppendUvarint(codec.AppendUvarint(append(dst, byte(finished)), v.End), v.Matched)
	}
	return v.entry.encode(dst)
}

func decodeRow(b []byte, v *row) error {
	r := codec.NewReader(b)
	r.Version(recordVersion)
	if v.State = state(r.Byte()); v.isRun() {
		v.End, v.Matched = r.Uvarint(), r.Uvarint()
		return r.End()
	}
	if v.State == dead {
		return codec.ErrRecord
	}
	if err := v.entry.decode(&r); err != nil {
		return err
	}
	return r.End()
}

// deadLetter is an event that the group gave up, with a copy of it.
type deadLetter struct {
	entry
	Version  uint64 // rises with every change
	Redrives uint64
	At       int64  // when it became one
	Event    []byte // the source's record of it
}

func encodeDead(dst []byte, v *deadLetter) []byte {
	dst = v.entry.encode(append(dst, recordVersion))
	dst = codec.AppendUvarint(codec.AppendUvarint(dst, v.Version), v.Redrives)
	return codec.AppendBytes(codec.AppendVarint(dst, v.At), v.Event)
}

func decodeDead(b []byte, v *deadLetter) error {
	r := codec.NewReader(b)
	r.Version(recordVersion)
	v.State = state(r.Byte())
	if err := v.entry.decode(&r); err != nil {
		return err
	}
	v.Version, v.Redrives, v.At, v.Event = r.Uvarint(), r.Uvarint(), r.Varint(), r.Bytes()
	return r.End()
}

// lease is what the places of one lease have in common.
type lease struct {
	Principal string
	Epoch     uint64 // the holder's policy epoch
	Session   string
	Places    []uint64 // codes, ascending
}

// maxLeasePlaces bounds a lease row: a receive claims at most so many.
const maxLeasePlaces = 256

func encodeLease(dst []byte, v *lease) []byte {
	dst = codec.AppendString(append(dst, recordVersion), v.Principal)
	dst = codec.AppendString(codec.AppendUvarint(dst, v.Epoch), v.Session)
	dst = codec.AppendUvarint(dst, uint64(len(v.Places)))
	last := uint64(0)
	for _, p := range v.Places {
		dst = codec.AppendUvarint(dst, p-last)
		last = p
	}
	return dst
}

func decodeLease(b []byte, v *lease) error {
	r := codec.NewReader(b)
	r.Version(recordVersion)
	v.Principal, v.Epoch, v.Session = r.String(), r.Uvarint(), r.String()
	n := r.Uvarint()
	if n == 0 || n > maxLeasePlaces {
		return codec.ErrRecord
	}
	v.Places = make([]uint64, n)
	last := uint64(0)
	for i := range v.Places {
		last += r.Uvarint()
		v.Places[i] = last
	}
	return r.End()
}

// skip records a position that a person finished.
type skip struct {
	Position  uint64
	Reason    string
	Principal string
	At        int64
}

func encodeSkip(dst []byte, v *skip) []byte {
	dst = codec.AppendString(codec.AppendString(append(dst, recordVersion), v.Reason), v.Principal)
	return codec.AppendUvarint(codec.AppendVarint(dst, v.At), v.Position)
}

func decodeSkip(b []byte, v *skip) error {
	r := codec.NewReader(b)
	r.Version(recordVersion)
	v.Reason, v.Principal, v.At, v.Position = r.String(), r.String(), r.Varint(), r.Uvarint()
	return r.End()
}

// definition is what was configured of a group, and the number it got.
type definition struct {
	ID          uint64              `cbor:"1,keyasint"`
	Wanted      api.GroupDefinition `cbor:"2,keyasint"`
	Fingerprint []byte              `cbor:"3,keyasint"`
	CreatedAt   int64               `cbor:"4,keyasint"`
	Tenant      string              `cbor:"5,keyasint"` // of the data principal
}

// fingerprintOf is over everything that was configured.
func fingerprintOf(d *api.GroupDefinition) []byte {
	sum := sha256.Sum256(table.EncodeCBOR(nil, d))
	return sum[:]
}

func encodeDefinition(dst []byte, v *definition) []byte {
	return table.EncodeCBOR(append(dst, recordVersion), v)
}

func decodeDefinition(b []byte, v *definition) error {
	if len(b) == 0 || b[0] != recordVersion {
		return codec.ErrRecord
	}
	return table.DecodeCBOR(b[1:], v)
}
