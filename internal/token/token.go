package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"slices"
	"strings"
	"sync"

	"github.com/keyload/keyload/fault"
)

// Purpose says what a token is for; a token opens for its own purpose only.
type Purpose byte

// The purposes. Append only.
const (
	Delivery Purpose = 1 // one lease of one message
	Cursor   Purpose = 2 // a place in a source
	Page     Purpose = 3 // a place in a listing
	// GroupDelivery is one lease of one position of a group.
	GroupDelivery Purpose = 4
)

// MaxBytes is the longest token text (contract §6).
const MaxBytes = 512

// encoding is strict: one token has one text.
var encoding = base64.RawURLEncoding.Strict()

const (
	formVersion = 1
	headBytes   = 2 + 16 // form version, purpose, incarnation
	macBytes    = 16     // half of HMAC-SHA256: 128 bits against forgery
)

// Keys are the store's token keys: the first signs, all verify.
type Keys [][]byte

// Sealer seals and opens tokens of one incarnation of the store. It is safe for
// concurrent use.
type Sealer struct {
	incarnation [16]byte
	keys        []*macs
}

// macs makes codes with one key. A keyed hash costs more to make than to use,
// so finished ones are kept.
type macs struct{ pool sync.Pool }

func newMACs(key []byte) *macs {
	return &macs{sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

// append appends the code of text.
func (m *macs) append(dst, text []byte) []byte {
	h := m.pool.Get().(hash.Hash)
	defer m.pool.Put(h)
	h.Reset()
	h.Write(text)
	var sum [sha256.Size]byte
	return append(dst, h.Sum(sum[:0])[:macBytes]...)
}

// NewSealer needs at least one key, and every key of at least 32 bytes.
func NewSealer(incarnation [16]byte, keys Keys) *Sealer {
	if len(keys) == 0 || slices.ContainsFunc(keys, func(k []byte) bool { return len(k) < 32 }) {
		panic("token: a sealer needs keys of 32 bytes")
	}
	s := &Sealer{incarnation: incarnation}
	for _, k := range keys {
		s.keys = append(s.keys, newMACs(slices.Clone(k)))
	}
	return s
}

// Seal returns the token of the claims: base64url of version, purpose,
// incarnation, claims and code. Equal claims give equal tokens, so a replayed
// receipt carries the identical text.
func (s *Sealer) Seal(p Purpose, claims []byte) string {
	b := make([]byte, 0, headBytes+len(claims)+macBytes)
	b = append(b, formVersion, byte(p))
	b = append(b, s.incarnation[:]...)
	b = append(b, claims...)
	b = s.keys[0].append(b, b)
	return encoding.EncodeToString(b)
}

// Open verifies a token and returns its claims. Errors: Validation for a text
// that was never a token of this store, TokenInvalidated for one of another
// incarnation.
func (s *Sealer) Open(p Purpose, text string) ([]byte, error) {
	if len(text) > MaxBytes {
		return nil, malformed("is longer than a token can be")
	}
	b, ok := decode(text)
	if !ok || b[0] != formVersion {
		return nil, malformed("does not have the form of a token")
	}
	if Purpose(b[1]) != p {
		return nil, malformed("is a token for something else")
	}
	if [16]byte(b[2:headBytes]) != s.incarnation {
		return nil, fault.New(fault.TokenInvalidated, "other_incarnation",
			"the token belongs to another history of this store (it was restored since, or the token is of another store)")
	}
	body, code := b[:len(b)-macBytes], b[len(b)-macBytes:]
	var own [macBytes]byte
	for _, k := range s.keys {
		if hmac.Equal(k.append(own[:0], body), code) {
			return body[headBytes:], nil
		}
	}
	return nil, malformed("was altered, or its signing key is gone")
}

func malformed(what string) error {
	return fault.New(fault.Validation, "bad_token", "the token %s; use the token exactly as it was delivered", what)
}

// Claims takes the claims out of a token that the door has verified before it
// let the command into the log. The state machine uses it; it verifies nothing.
func Claims(text string) ([]byte, bool) {
	b, ok := decode(text)
	if !ok {
		return nil, false
	}
	return b[headBytes : len(b)-macBytes], true
}

// text64 refuses a last character with bits to spare that are set.
var text64 = base64.RawURLEncoding.Strict()

// decode reads the one text a token has. The library passes over line breaks;
// here they are refused, so that two different texts are two different tokens.
func decode(text string) ([]byte, bool) {
	b, err := text64.DecodeString(text)
	return b, err == nil && len(b) >= headBytes+macBytes && !strings.ContainsAny(text, "\r\n")
}
