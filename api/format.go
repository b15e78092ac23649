package api

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of formats. internal/limits has the same numbers; its test compares.
const (
	maxIdentifierBytes = 256
	maxPointerBytes    = 1024
	maxHeaderBytes     = 32 << 10
	maxJSONDepth       = 32
)

// checkFormat says what is wrong with a text that is not empty; "" when it is
// right.
func checkFormat(f format, s string) string {
	switch f {
	case formatIdentifier:
		return checkIdentifier(s)
	case formatUUID:
		return checkUUID(s)
	case formatPointer:
		return checkPointer(s)
	case formatCapability:
		if s != AnyName && !Capability(s).Known() {
			return "is not a capability"
		}
	default:
		if !utf8.ValidString(s) {
			return "must be valid UTF-8"
		}
	}
	return ""
}

// checkIdentifier holds the rule for names: 1..256 bytes of UTF-8, not blank,
// no control characters.
func checkIdentifier(s string) string {
	if len(s) > maxIdentifierBytes {
		return "must be at most 256 bytes"
	}
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] > ' ' && s[i] < 0x7f
	}
	if plain {
		return ""
	}
	if !utf8.ValidString(s) {
		return "must be valid UTF-8"
	}
	if strings.IndexFunc(s, unicode.IsControl) >= 0 {
		return "must not have control characters"
	}
	if strings.TrimSpace(s) == "" {
		return "must not be blank"
	}
	return ""
}

// checkUUID accepts one spelling, so that equal ids are equal texts.
func checkUUID(s string) string {
	const msg = "must be a UUID in lower case, such as 0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e"
	if len(s) != 36 {
		return msg
	}
	zero := true
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return msg
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
			zero = zero && c == '0'
		default:
			return msg
		}
	}
	if zero {
		return "must not be the UUID of zeros"
	}
	return ""
}

// checkPointer wants a JSON pointer (RFC 6901) below the root.
func checkPointer(s string) string {
	if len(s) > maxPointerBytes {
		return "must be at most 1024 bytes"
	}
	if s[0] != '/' {
		return "must be a JSON pointer that begins with /"
	}
	if strings.Count(s, "/") > maxJSONDepth {
		return "must have at most 32 parts"
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return "must write ~ as ~0 and / as ~1"
		}
	}
	if !utf8.ValidString(s) {
		return "must be valid UTF-8"
	}
	return ""
}

// escapePointer makes a name one token of a JSON pointer.
func escapePointer(s string) string {
	if !strings.ContainsAny(s, "~/") {
		return s
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
}

// checkJSON wants one JSON value with valid UTF-8, no repeated names, and at
// most 32 levels of objects and arrays.
func checkJSON(b []byte) string {
	if deep, _ := survey(b); deep {
		return "must have at most 32 levels"
	}
	if !jsontext.Value(b).IsValid() {
		return "must be one JSON value, in UTF-8, without repeated names"
	}
	return ""
}

// survey looks at the brackets and the white space outside of texts: whether
// there are more than maxJSONDepth levels, and whether there is white space
// between tokens. b need not be valid.
func survey(b []byte) (deep, spaced bool) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += textEnd(b[i+1:]) + 1
		case '{', '[':
			if depth++; depth > maxJSONDepth {
				return true, spaced
			}
		case '}', ']':
			depth--
		case ' ', '\t', '\r', '\n':
			spaced = true
		}
	}
	return false, spaced
}

// textEnd is the index of the quote that ends the text b begins with, len(b)
// when there is none.
func textEnd(b []byte) int {
	for i := 0; ; i++ {
		q := bytes.IndexByte(b[i:], '"')
		if q < 0 {
			return len(b)
		}
		slash := bytes.IndexByte(b[i:i+q], '\\')
		if slash < 0 {
			return i + q
		}
		if i += slash + 1; i >= len(b) {
			return len(b)
		}
	}
}

// headers checks a map of header texts. Names are told in sorted order, so that
// equal requests have equal refusals.
func (w *walker) headers(f *field, m map[string]string) {
	if len(m) > f.maxLen {
		w.report("", "must have at most %d entries", f.maxLen)
		return
	}
	size := 0
	var wrong []string
	for k, v := range m {
		size += len(k) + len(v)
		if k == "" || checkIdentifier(k) != "" || !utf8.ValidString(v) {
			wrong = append(wrong, k)
		}
	}
	if size > maxHeaderBytes {
		w.report("", "must be at most %d bytes together", maxHeaderBytes)
		return
	}
	slices.Sort(wrong)
	for _, k := range wrong {
		switch {
		case k == "":
			w.report("", "has an empty name")
		case checkIdentifier(k) != "":
			w.report("", "has a name that %s", checkIdentifier(k))
		default:
			w.push(step{name: k})
			w.report("", "must be valid UTF-8")
			w.pop()
		}
	}
}
