package jsontree

import (
	"bytes"

	"github.com/keyload/keyload/internal/codec"
)

// MaxExponent bounds the decimal exponent of numbers that can be compared: the
// number is 0.ddd × 10^exponent with a first digit that is not zero.
const MaxExponent = 1_000_000_000

// decimal is an exact number: 0.digits × 10^exponent. Zero has no digits.
type decimal struct {
	negative bool
	exponent int32
	digits   []byte // '0'..'9', neither beginning nor ending with '0'
}

// parseDecimal reads a JSON number; false for one beyond MaxExponent.
func parseDecimal(lit []byte) (d decimal, ok bool) {
	if lit[0] == '-' {
		d.negative, lit = true, lit[1:]
	}
	exponent := int64(0)
	if i := bytes.IndexAny(lit, "eE"); i >= 0 {
		exponent, lit = parseExponent(lit[i+1:]), lit[:i]
	}
	whole, fraction, _ := bytes.Cut(lit, []byte{'.'})
	digits := append(append(make([]byte, 0, len(lit)), whole...), fraction...)
	exponent += int64(len(whole))
	trimmed := bytes.TrimLeft(digits, "0")
	exponent -= int64(len(digits) - len(trimmed))
	d.digits = bytes.TrimRight(trimmed, "0")
	if len(d.digits) == 0 {
		return decimal{}, true // −0 is 0
	}
	if exponent > MaxExponent || exponent < -MaxExponent {
		return decimal{}, false
	}
	d.exponent = int32(exponent)
	return d, true
}

// parseExponent reads [+-]digits and stays far from overflow.
func parseExponent(b []byte) int64 {
	sign := int64(1)
	if b[0] == '-' || b[0] == '+' {
		if b[0] == '-' {
			sign = -1
		}
		b = b[1:]
	}
	n := int64(0)
	for _, c := range b {
		if n = n*10 + int64(c-'0'); n > 1<<40 {
			n = 1 << 40
		}
	}
	return sign * n
}

// The forms of the key: negative numbers are the complement of positive ones,
// so that a larger absolute value stands lower.
const (
	signNegative = 0x01
	signZero     = 0x02
	signPositive = 0x03
	digitsEnd    = 0x00 // below every pair of digits, so 0.1 stands below 0.11
)

// append appends sign, exponent and digits, two digits a byte.
func (d decimal) append(dst []byte) []byte {
	if len(d.digits) == 0 {
		return append(dst, signZero)
	}
	if !d.negative {
		return d.appendSize(append(dst, signPositive))
	}
	at := len(dst) + 1
	dst = d.appendSize(append(dst, signNegative))
	for i := at; i < len(dst); i++ {
		dst[i] = ^dst[i]
	}
	return dst
}

func (d decimal) appendSize(dst []byte) []byte {
	dst = codec.AppendUint32(dst, uint32(d.exponent)^1<<31)
	for i := 0; i < len(d.digits); i += 2 {
		pair := (d.digits[i] - '0') * 10
		if i+1 < len(d.digits) {
			pair += d.digits[i+1] - '0'
		}
		dst = append(dst, pair+1)
	}
	return append(dst, digitsEnd)
}

// skipDecimal reads over what append wrote after the tag.
func skipDecimal(r *codec.KeyReader) {
	end := byte(digitsEnd)
	switch r.Uint8() {
	case signZero:
		return
	case signPositive:
	case signNegative:
		end = ^end
	default:
		fail(r)
	}
	r.Uint32()
	for r.Err() == nil && r.Uint8() != end {
	}
}
