package api

import (
	"bytes"
	"encoding/json"
	"time"
)

// JSON is one JSON value, kept exactly as it was sent apart from white space
// between tokens. In CBOR it is a byte string holding the JSON text.
type JSON []byte

// MarshalJSON writes the value; a nil value is null.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j) == 0 {
		return []byte("null"), nil
	}
	return j, nil
}

// IsZero says that there is no value; null is one.
func (j JSON) IsZero() bool { return len(j) == 0 }

// UnmarshalJSON keeps the value with the white space between tokens removed. It
// refuses more than 32 levels of objects and arrays.
func (j *JSON) UnmarshalJSON(b []byte) error {
	deep, spaced := survey(b)
	if deep {
		return &FieldError{Message: "must have at most 32 levels"}
	}
	if !spaced {
		*j = append((*j)[:0:0], b...)
		return nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		return err
	}
	*j = out.Bytes()
	return nil
}

// Of encodes a Go value as JSON. It panics on a value that has no JSON form,
// which is a fault of the program, not of its input.
func Of(v any) JSON {
	if j, ok := v.(JSON); ok {
		return j
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("api.Of: " + err.Error())
	}
	return b
}

// Time is an instant in milliseconds since 1970-01-01 UTC; 0 is absent. Its
// JSON form is RFC 3339 in UTC with milliseconds.
type Time int64

// TimeOf is t in whole milliseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Time is the instant as a time.Time in UTC.
func (t Time) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// timeLayout has exactly three decimals, so equal instants have equal texts.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// MaxTime is the last instant that has the text form, 9999-12-31T23:59:59.999Z.
const MaxTime Time = 253402300799999

// String is the JSON form without quotes.
func (t Time) String() string { return t.Time().Format(timeLayout) }

// MarshalJSON writes RFC 3339 in UTC with milliseconds.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// UnmarshalJSON reads RFC 3339 with any offset; fractions below a millisecond
// are cut. null is absent.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = 0
		return nil
	}
	if len(b) < 2 || b[0] != '"' {
		return errTimeForm
	}
	v, err := time.Parse(time.RFC3339Nano, string(b[1:len(b)-1]))
	if err != nil {
		return errTimeForm
	}
	*t = TimeOf(v)
	return nil
}

var errTimeForm = &FieldError{Message: "must be a time such as 2026-01-31T12:00:00.000Z"}
