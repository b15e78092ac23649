package source

import (
	"crypto/sha256"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/token"
)

// cursorLife is how long a cursor is accepted, in milliseconds (contract §8).
const cursorLife = 24 * 60 * 60 * 1000

const (
	cursorVersion = 1
	bindingBytes  = 16
)

// binding is what ties a cursor to its source: a digest, since a stream id can
// be longer than a token.
func binding(k Key) []byte {
	sum := sha256.Sum256(k.Append(nil))
	return sum[:bindingBytes]
}

// sealCursor makes the cursor of a place in a source, as of v.Now.
func sealCursor(v *op.View, k Key, backward bool, after uint64) string {
	b := append(make([]byte, 0, 64), cursorVersion)
	b = codec.AppendBool(b, backward)
	b = append(b, binding(k)...)
	b = codec.AppendUvarint(b, after)
	return v.Door.Tokens.Seal(token.Cursor, codec.AppendVarint(b, v.Now))
}

// openCursor reads a place in a source. Errors: those of token.Sealer.Open;
// TokenInvalidated for a cursor of another source or direction, CursorExpired
// when it is cursorLife old or older.
func openCursor(v *op.View, k Key, backward bool, text string) (after uint64, err error) {
	claims, err := v.Door.Tokens.Open(token.Cursor, text)
	if err != nil {
		return 0, err
	}
	return placeOf(claims, k, backward, v.Now)
}

func badCursor() error {
	return fault.New(fault.Validation, "bad_token", "the cursor has a form this program does not know")
}

// placeOf reads the place out of the claims of a verified cursor.
func placeOf(claims []byte, k Key, backward bool, now int64) (after uint64, err error) {
	r := codec.NewReader(claims)
	r.Version(cursorVersion)
	isBackward, bound := r.Bool(), r.Fixed(bindingBytes)
	after, sealed := r.Uvarint(), r.Varint()
	switch {
	case r.End() != nil:
		return 0, badCursor()
	case string(bound) != string(binding(k)):
		return 0, fault.New(fault.TokenInvalidated, "other_source",
			"the cursor belongs to another topic, stream, generation or partition")
	case isBackward != backward:
		return 0, fault.New(fault.TokenInvalidated, "other_direction",
			"the cursor is of a read in the other direction; begin there with afterPosition")
	case now-sealed >= cursorLife:
		return 0, fault.New(fault.CursorExpired, "cursor_life",
			"the cursor is older than %d hours; go on with afterPosition, from the last position you have", cursorLife/3600000).
			With("lifeMillis", "%d", cursorLife)
	}
	return after, nil
}
