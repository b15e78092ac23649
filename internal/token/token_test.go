package token

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/fault"
)

var (
	here    = [16]byte{1, 2, 3}
	there   = [16]byte{1, 2, 4}
	signing = bytes.Repeat([]byte{7}, 32)
	retired = bytes.Repeat([]byte{8}, 32)
)

func sealer() *Sealer { return NewSealer(here, Keys{signing}) }

// refused fails unless opening was refused as was said, without a word of the
// token in the error.
func refused(t testing.TB, text string, err error, code fault.Code, reason string) {
	t.Helper()
	f := fault.From(err)
	if f == nil || f.Code != code || f.Reason != reason {
		t.Fatalf("want %s (%s), got %v", code, reason, err)
	}
	if len(text) > 8 && strings.Contains(err.Error(), text) {
		t.Fatal("the error repeats the token")
	}
}

func TestATokenOpensToItsClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]Purpose{Delivery, Cursor, Page}).Draw(t, "purpose")
		claims := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "claims")
		text := sealer().Seal(p, claims)
		if again := sealer().Seal(p, claims); again != text {
			t.Fatal("equal claims gave two tokens")
		}
		got, err := sealer().Open(p, text)
		if err != nil || !bytes.Equal(got, claims) {
			t.Fatalf("%x came back as %x (%v)", claims, got, err)
		}
		if bare, ok := Claims(text); !ok || !bytes.Equal(bare, claims) {
			t.Fatalf("Claims answers %x, %v", bare, ok)
		}
	})
}

func TestEverySingleByteAlterationIsRefused(t *testing.T) {
	text := sealer().Seal(Delivery, []byte("lane 7, message 9, version 3"))
	for i := range text {
		for b := 0; b < 256; b++ {
			if byte(b) == text[i] {
				continue
			}
			altered := text[:i] + string([]byte{byte(b)}) + text[i+1:]
			if _, err := sealer().Open(Delivery, altered); err == nil {
				t.Fatalf("byte %d changed from %q to %q and the token opened", i, text[i], byte(b))
			}
		}
	}
}

func TestOneTokenHasOneText(t *testing.T) {
	for _, claims := range []string{"a", "ab", "abc", "abcd"} {
		text := sealer().Seal(Cursor, []byte(claims))
		for i := 0; i <= len(text); i++ {
			for _, extra := range []string{"\n", "\r", "=", "A", " ", "\x00"} {
				if _, err := sealer().Open(Cursor, text[:i]+extra+text[i:]); err == nil {
					t.Errorf("%q put in at %d and the token opened", extra, i)
				}
			}
		}
		for i := range text {
			if _, err := sealer().Open(Cursor, text[:i]); err == nil {
				t.Errorf("the first %d characters opened", i)
			}
		}
	}
}

func TestATokenOpensForItsOwnPurposeOnly(t *testing.T) {
	all := []Purpose{Delivery, Cursor, Page}
	for _, made := range all {
		text := sealer().Seal(made, []byte("claims"))
		for _, asked := range all {
			if _, err := sealer().Open(asked, text); (err == nil) != (made == asked) {
				t.Errorf("made for %d, opened for %d: %v", made, asked, err)
			} else if err != nil {
				refused(t, text, err, fault.Validation, "bad_token")
			}
		}
	}
}

func TestATokenOfAnotherIncarnationIsInvalidated(t *testing.T) {
	text := NewSealer(there, Keys{signing}).Seal(Delivery, []byte("claims"))
	_, err := sealer().Open(Delivery, text)
	refused(t, text, err, fault.TokenInvalidated, "other_incarnation")
}

func TestTokensOutliveTheRotationOfTheirKeyUntilItIsDropped(t *testing.T) {
	before := NewSealer(here, Keys{retired})
	both := NewSealer(here, Keys{signing, retired})
	after := NewSealer(here, Keys{signing})
	old := before.Seal(Delivery, []byte("claims"))
	for _, s := range []*Sealer{before, both} {
		if _, err := s.Open(Delivery, old); err != nil {
			t.Errorf("a token of a key that verifies was refused: %v", err)
		}
	}
	_, err := after.Open(Delivery, old)
	refused(t, old, err, fault.Validation, "bad_token")
	if both.Seal(Delivery, []byte("claims")) != after.Seal(Delivery, []byte("claims")) {
		t.Error("the first key does not sign")
	}
}

func TestATextLongerThanATokenCanBeIsRefusedUnread(t *testing.T) {
	claims := func(n int) []byte { return bytes.Repeat([]byte{5}, n) }
	fits := MaxBytes*3/4 - headBytes - macBytes
	if text := sealer().Seal(Page, claims(fits)); len(text) != MaxBytes {
		t.Fatalf("%d bytes of claims give %d characters", fits, len(text))
	} else if _, err := sealer().Open(Page, text); err != nil {
		t.Errorf("a token of exactly %d characters was refused: %v", MaxBytes, err)
	}
	text := sealer().Seal(Page, claims(fits+1))
	_, err := sealer().Open(Page, text)
	refused(t, text, err, fault.Validation, "bad_token")
}

func TestWhatIsNoTokenIsRefused(t *testing.T) {
	short := base64.RawURLEncoding.EncodeToString(make([]byte, headBytes+macBytes-1))
	foreign := base64.RawURLEncoding.EncodeToString(append([]byte{formVersion + 1}, make([]byte, headBytes+macBytes)...))
	for _, text := range []string{"", "x", "not base64!", short, foreign} {
		_, err := sealer().Open(Delivery, text)
		refused(t, text, err, fault.Validation, "bad_token")
	}
	for _, text := range []string{"", "not base64!", short} {
		if _, ok := Claims(text); ok {
			t.Errorf("%q has claims", text)
		}
	}
}

func TestASealerNeedsAKeyOfThirtyTwoBytes(t *testing.T) {
	for _, keys := range []Keys{nil, {}, {make([]byte, 31)}, {signing, make([]byte, 31)}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a sealer was made with %d keys", len(keys))
				}
			}()
			NewSealer(here, keys)
		}()
	}
}

// FuzzOpen: nothing but what was sealed opens.
func FuzzOpen(f *testing.F) {
	s := sealer()
	f.Add(s.Seal(Delivery, []byte("claims")))
	f.Add(s.Seal(Delivery, nil))
	f.Add(NewSealer(there, Keys{signing}).Seal(Delivery, []byte("claims")))
	f.Add("")
	f.Add(strings.Repeat("A", MaxBytes))
	f.Fuzz(func(t *testing.T, text string) {
		Claims(text)
		claims, err := s.Open(Delivery, text)
		if err == nil && s.Seal(Delivery, claims) != text {
			t.Fatal("a text opened that was never sealed")
		}
		if err != nil && fault.From(err) == nil {
			t.Fatalf("the error has no code: %v", err)
		}
	})
}
