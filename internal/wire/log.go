package wire

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/fxamacker/cbor/v2"

	"github.com/keyload/keyload/fault"
)

// Bounds of one decoded value. Deeper or wider input is refused before memory
// is taken for it.
const (
	maxNesting  = 16
	maxElements = 65_536
	maxPairs    = 65_536
)

// encoding is RFC 8949 core deterministic: shortest integers, sorted keys,
// definite lengths. A nil list equals an empty one.
var encoding = func() cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.NilContainers = cbor.NilContainerAsEmpty
	o.TagsMd = cbor.TagsForbidden
	return must(o.EncMode())
}()

// strict refuses whatever encoding would not write, unknown fields included.
var strict = must(decoding(cbor.ExtraDecErrorUnknownField).DecMode())

// lenient skips unknown fields, as a client of an older version must.
var lenient = must(decoding(cbor.ExtraDecErrorNone).DecMode())

func decoding(extra cbor.ExtraDecErrorCond) cbor.DecOptions {
	return cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
		UTF8:              cbor.UTF8RejectInvalid,
		MaxNestedLevels:   maxNesting,
		MaxArrayElements:  maxElements,
		MaxMapPairs:       maxPairs,
		ExtraReturnErrors: extra,
	}
}

func must[T any](mode T, err error) T {
	if err != nil {
		panic("wire: " + err.Error()) // the options above are constants
	}
	return mode
}

// EncodeLog is the deterministic encoding of v: equal values have equal bytes,
// on every machine and in every version that knows the same fields.
func EncodeLog(v any) ([]byte, error) { return encoding.Marshal(v) }

// Undecodable is the reason of the Corruption that DecodeLog answers. It is
// never a rejection: the state machine stops at it.
const Undecodable = "undecodable"

// DecodeLog reads what EncodeLog wrote into *ptr. Anything else — an unknown
// field, a repeated key, an indefinite length, a tag, invalid UTF-8, bytes after
// the value — is Corruption.
func DecodeLog(b []byte, ptr any) error {
	if err := strict.Unmarshal(b, ptr); err != nil {
		_, what := describeCBOR(err)
		return fault.New(fault.Corruption, Undecodable, "a stored value cannot be decoded: it %s", what)
	}
	return nil
}

// DecodeKnown reads the fields that *ptr has and passes over others: for records
// that tell a program that it is too old for the rest.
func DecodeKnown(b []byte, ptr any) error {
	if err := lenient.Unmarshal(b, ptr); err != nil {
		_, what := describeCBOR(err)
		return fault.New(fault.Corruption, Undecodable, "a stored value cannot be decoded: it %s", what)
	}
	return nil
}

// Fingerprint identifies the content of a command: SHA-256 over the operation's
// number and the encoded request. The logged time is no part of it. The encoded
// request is returned too, so that it is encoded once.
func Fingerprint(operation uint16, req any) (sum [sha256.Size]byte, encoded []byte, err error) {
	encoded, err = EncodeLog(req)
	if err != nil {
		return sum, nil, err
	}
	return FingerprintEncoded(operation, encoded), encoded, nil
}

// FingerprintEncoded is Fingerprint for a request that is encoded already.
func FingerprintEncoded(operation uint16, encoded []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint16(nil, operation))
	h.Write(encoded)
	h.Sum(sum[:0])
	return sum
}
