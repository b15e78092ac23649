package codec

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestEveryRecordFieldIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, i := rapid.Uint64().Draw(t, "unsigned"), rapid.Int64().Draw(t, "signed")
		s, b := rapid.String().Draw(t, "text"), rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		yes, fixed := rapid.Bool().Draw(t, "bool"), rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "fixed")
		rec := AppendVarint(AppendUvarint([]byte{3}, u), i)
		rec = append(AppendBool(AppendBytes(AppendString(rec, s), b), yes), fixed...)
		r := NewReader(rec)
		if r.Version(3) != 3 || r.Uvarint() != u || r.Varint() != i || r.String() != s {
			t.Fatal("a field did not come back")
		}
		if !bytes.Equal(r.Bytes(), b) || r.Bool() != yes || !bytes.Equal(r.Fixed(8), fixed) || r.End() != nil {
			t.Fatal("a field did not come back")
		}
	})
}

func TestNumbersAtTheirEndsAreReadBack(t *testing.T) {
	for _, v := range []int64{math.MinInt64, -1, 0, 1, 63, 64, math.MaxInt64} {
		r := NewReader(AppendVarint(nil, v))
		if got := r.Varint(); got != v || r.End() != nil {
			t.Errorf("%d came back as %d", v, got)
		}
	}
	for _, v := range []uint64{0, 127, 128, math.MaxUint64} {
		r := NewReader(AppendUvarint(nil, v))
		if got := r.Uvarint(); got != v || r.End() != nil {
			t.Errorf("%d came back as %d", v, got)
		}
	}
}

func TestAVersionOutsideTheKnownOnesIsRefused(t *testing.T) {
	for v, ok := range map[byte]bool{0: false, 1: true, 2: true, 3: false, 255: false} {
		r := NewReader([]byte{v})
		r.Version(2)
		if (r.End() == nil) != ok {
			t.Errorf("version %d accepted: %v", v, !ok)
		}
	}
}

func TestABoolIsZeroOrOne(t *testing.T) {
	for v, ok := range map[byte]bool{0: true, 1: true, 2: false, 255: false} {
		r := NewReader([]byte{v})
		if got := r.Bool(); (r.End() == nil) != ok || got != (v == 1) {
			t.Errorf("%d was read as %v (%v)", v, got, r.Err())
		}
	}
}

func TestARecordThatIsCutShortIsRefused(t *testing.T) {
	rec := AppendBool(AppendString(AppendVarint(AppendUvarint([]byte{1}, 300), -300), "text"), true)
	rec = append(rec, 1, 2, 3)
	for n := range rec {
		r := NewReader(rec[:n])
		r.Version(1)
		r.Uvarint()
		r.Varint()
		_ = r.String()
		r.Bool()
		r.Fixed(3)
		if !errors.Is(r.End(), ErrRecord) {
			t.Errorf("%d of %d bytes were taken for the whole record", n, len(rec))
		}
	}
}

func TestALengthBeyondTheRecordIsRefused(t *testing.T) {
	for _, n := range []uint64{1, 2, math.MaxInt32, math.MaxInt64, math.MaxUint64} {
		r := NewReader(AppendUvarint(nil, n))
		if r.Bytes() != nil || !errors.Is(r.Err(), ErrRecord) {
			t.Errorf("a text of %d bytes was read from none", n)
		}
	}
}

func TestANumberLongerThanSixtyFourBitsIsRefused(t *testing.T) {
	long := bytes.Repeat([]byte{0xFF}, 10)
	u, i := NewReader(long), NewReader(long)
	u.Uvarint()
	i.Varint()
	if u.Err() == nil || i.Err() == nil {
		t.Error("an overlong number was read")
	}
}

func TestBytesLeftOverAreRefusedByEndOnly(t *testing.T) {
	r := NewReader([]byte{1, 2})
	r.Byte()
	if r.Err() != nil || !errors.Is(r.End(), ErrRecord) {
		t.Error("a byte too many was not refused, or too early")
	}
}

func TestAFailedReaderReadsNothingMore(t *testing.T) {
	r := NewReader([]byte{9, 9, 9})
	r.Version(1)
	if r.Byte() != 0 || r.Uvarint() != 0 || r.Varint() != 0 || r.Bool() || r.Bytes() != nil || r.Fixed(1) != nil || r.String() != "" {
		t.Error("reading went on after a failure")
	}
}

// What a reader hands out must not lead to the bytes after it.
func TestBytesHandedOutCannotBeGrownIntoTheRecord(t *testing.T) {
	rec := append(AppendBytes(nil, []byte{1, 2}), 7, 8, 9)
	r := NewReader(rec)
	_ = append(r.Bytes(), 0xEE)
	_ = append(r.Fixed(1), 0xEE)
	if !bytes.Equal(rec[3:], []byte{7, 8, 9}) {
		t.Errorf("the record was overwritten: %x", rec)
	}
}

// FuzzReader reads arbitrary bytes by an arbitrary plan: it never panics, never
// hands out more than there is, and what it read means the same when written
// again.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5}, AppendBool(AppendBytes(AppendVarint(AppendUvarint([]byte{1}, 5), -5), []byte("ab")), true))
	f.Add([]byte{3}, []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01})
	f.Add([]byte{1}, bytes.Repeat([]byte{0x80}, 12))
	f.Fuzz(func(t *testing.T, plan, rec []byte) {
		r := NewReader(rec)
		size := 0
		for _, p := range plan {
			before := len(r.rest)
			switch p % 6 {
			case 0:
				r.Version(p)
			case 1:
				again(t, r.Uvarint(), AppendUvarint, (*Reader).Uvarint)
			case 2:
				again(t, r.Varint(), AppendVarint, (*Reader).Varint)
			case 3:
				size += len(r.Bytes())
			case 4:
				r.Bool()
			case 5:
				size += len(r.Fixed(int(p)))
			}
			if len(r.rest) > before || size > len(rec) {
				t.Fatal("more was read than there is")
			}
		}
	})
}

func again[T comparable](t *testing.T, v T, enc func([]byte, T) []byte, dec func(*Reader) T) {
	r := NewReader(enc(nil, v))
	if got := dec(&r); got != v || r.End() != nil {
		t.Fatalf("%v came back as %v", v, got)
	}
}
