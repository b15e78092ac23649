package codec

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// text draws texts in which the bytes the encoding treats specially are common.
var text = rapid.Custom(func(t *rapid.T) string {
	b := rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom([]byte{0x00, 0x01, 0x02, 0xFE, 0xFF, 'a'}), rapid.Byte(),
	), 0, 12).Draw(t, "bytes")
	return string(b)
})

func TestNumbersInKeysAreInTheOrderOfTheNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order(t, rapid.Uint8(), AppendUint8)
		order(t, rapid.Uint16(), AppendUint16)
		order(t, rapid.Uint32(), AppendUint32)
		order(t, rapid.Uint64(), AppendUint64)
		order(t, rapid.Int64(), AppendInt64)
	})
}

func order[T cmp.Ordered](t *rapid.T, gen *rapid.Generator[T], enc func([]byte, T) []byte) {
	a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
	if got, want := bytes.Compare(enc(nil, a), enc(nil, b)), cmp.Compare(a, b); got != want {
		t.Fatalf("%v and %v: keys compare %d, values %d", a, b, got, want)
	}
}

func TestSignedNumbersInKeysAreInOrderAtTheirEnds(t *testing.T) {
	values := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}
	for i := 1; i < len(values); i++ {
		if bytes.Compare(AppendInt64(nil, values[i-1]), AppendInt64(nil, values[i])) >= 0 {
			t.Errorf("%d does not come before %d", values[i-1], values[i])
		}
	}
}

// What follows a text must never decide between two different texts, or the
// rows of one owner would not be together.
func TestTextsInKeysAreInTheOrderOfTheirBytesWhateverFollows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		x := append(AppendText(nil, a), rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "after a")...)
		y := append(AppendText(nil, b), rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "after b")...)
		if a == b {
			return
		}
		if got, want := bytes.Compare(x, y), strings.Compare(a, b); got != want {
			t.Fatalf("%q and %q: keys compare %d, texts %d", a, b, got, want)
		}
	})
}

func TestNoEncodedTextIsAPrefixOfAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		if a != b && bytes.HasPrefix(AppendText(nil, b), AppendText(nil, a)) {
			t.Fatalf("%q is found under the prefix of %q", b, a)
		}
	})
}

func TestATupleOfPartsIsReadBackAndKeepsItsOrder(t *testing.T) {
	type tuple struct {
		s     string
		n     int64
		u     string
		small uint16
	}
	enc := func(v tuple) []byte {
		return AppendUint16(AppendText(AppendInt64(AppendText(nil, v.s), v.n), v.u), v.small)
	}
	gen := rapid.Custom(func(t *rapid.T) tuple {
		return tuple{text.Draw(t, "s"), rapid.Int64().Draw(t, "n"), text.Draw(t, "u"), rapid.Uint16().Draw(t, "small")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		r := NewKeyReader(enc(a))
		if back := (tuple{r.Text(), r.Int64(), r.Text(), r.Uint16()}); back != a || r.End() != nil {
			t.Fatalf("%+v came back as %+v (%v)", a, back, r.End())
		}
		want := cmp.Or(strings.Compare(a.s, b.s), cmp.Compare(a.n, b.n), strings.Compare(a.u, b.u), cmp.Compare(a.small, b.small))
		if got := bytes.Compare(enc(a), enc(b)); got != want {
			t.Fatalf("%+v and %+v: keys compare %d, tuples %d", a, b, got, want)
		}
	})
}

func TestEveryKeyPartIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, raw := text.Draw(t, "text"), rapid.SliceOfN(rapid.Byte(), 5, 5).Draw(t, "raw")
		a, b, c := rapid.Uint8().Draw(t, "8"), rapid.Uint16().Draw(t, "16"), rapid.Uint32().Draw(t, "32")
		d, e := rapid.Uint64().Draw(t, "64"), rapid.Int64().Draw(t, "signed")
		key := AppendUint32(AppendUint16(AppendUint8(AppendText(nil, s), a), b), c)
		key = append(AppendInt64(AppendUint64(key, d), e), raw...)
		r := NewKeyReader(key)
		if got := r.Text(); got != s {
			t.Fatalf("text %q came back as %q", s, got)
		}
		if r.Uint8() != a || r.Uint16() != b || r.Uint32() != c || r.Uint64() != d || r.Int64() != e {
			t.Fatal("a number did not come back")
		}
		if !bytes.Equal(r.Rest(), raw) || !bytes.Equal(r.Bytes(5), raw) || r.End() != nil {
			t.Fatal("the raw bytes did not come back")
		}
	})
}

func TestAKeyThatIsCutShortIsRefused(t *testing.T) {
	key := AppendUint64(AppendText(AppendUint16(nil, 7), "a\x00b"), 9)
	for n := range key {
		r := NewKeyReader(key[:n])
		r.Uint16()
		r.Text()
		r.Uint64()
		if !errors.Is(r.End(), ErrKey) {
			t.Errorf("%d of %d bytes were taken for the whole key", n, len(key))
		}
	}
	r := NewKeyReader(append(key, 0))
	r.Uint16()
	r.Text()
	r.Uint64()
	if r.Err() != nil || !errors.Is(r.End(), ErrKey) {
		t.Error("a byte too many was not refused, or too early")
	}
}

func TestATextWithAForeignEscapeIsRefused(t *testing.T) {
	for _, second := range []byte{0x00, 0x02, 0x7F, 0xFE} {
		r := NewKeyReader([]byte{'a', 0x00, second, 0x00, 0x01})
		if s := r.Text(); s != "" || !errors.Is(r.Err(), ErrKey) {
			t.Errorf("the escape 00 %02x was read as %q", second, s)
		}
	}
}

func TestAFailedKeyReaderReadsNothingMore(t *testing.T) {
	r := NewKeyReader([]byte{1})
	r.Uint16()
	if r.Uint8() != 0 || r.Bytes(0) != nil || r.Text() != "" || !errors.Is(r.Err(), ErrKey) {
		t.Error("reading went on after a failure")
	}
}

func TestPrefixEndIsTheFirstKeyAfterEveryKeyWithThePrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOf := rapid.SliceOfN(rapid.SampledFrom([]byte{0x00, 0x01, 0xFE, 0xFF}), 0, 5)
		prefix, key := bytesOf.Draw(t, "prefix"), bytesOf.Draw(t, "key")
		kept := bytes.Clone(prefix)
		end := PrefixEnd(prefix)
		if !bytes.Equal(kept, prefix) {
			t.Fatal("the prefix was changed")
		}
		within := bytes.Compare(key, prefix) >= 0 && (end == nil || bytes.Compare(key, end) < 0)
		if within != bytes.HasPrefix(key, prefix) {
			t.Fatalf("%x is in [%x, %x): %v", key, prefix, end, within)
		}
	})
	for _, none := range [][]byte{nil, {}, {0xFF}, {0xFF, 0xFF}} {
		if PrefixEnd(none) != nil {
			t.Errorf("%x has an end", none)
		}
	}
}

// FuzzKeyReader reads arbitrary bytes by an arbitrary plan: whatever could be
// read must be written again as exactly the same bytes, so that no two keys
// stand for one row.
func FuzzKeyReader(f *testing.F) {
	f.Add([]byte{5}, AppendText(nil, "a\x00\xFF\x01"))
	f.Add([]byte{0, 1, 2, 3, 4}, AppendInt64(AppendUint64(AppendUint32(AppendUint16(AppendUint8(nil, 1), 2), 3), 4), -5))
	f.Add([]byte{5, 5}, []byte{0, 1, 0, 0})
	f.Add([]byte{5}, []byte{'x', 0})
	f.Fuzz(func(t *testing.T, plan, key []byte) {
		r := NewKeyReader(key)
		var again []byte
		for _, p := range plan {
			switch p % 6 {
			case 0:
				again = AppendUint8(again, r.Uint8())
			case 1:
				again = AppendUint16(again, r.Uint16())
			case 2:
				again = AppendUint32(again, r.Uint32())
			case 3:
				again = AppendUint64(again, r.Uint64())
			case 4:
				again = AppendInt64(again, r.Int64())
			case 5:
				again = AppendText(again, r.Text())
			}
			if r.Err() != nil {
				return
			}
		}
		if !bytes.Equal(append(again, r.Rest()...), key) {
			t.Fatalf("%x was written again as %x", key, again)
		}
	})
}
