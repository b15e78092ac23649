package wire

import (
	"errors"
	"reflect"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// DecodeCBOR reads one CBOR map into *ptr, a request of package api, with the
// strictness of DecodeLog and the defaults of DecodeJSON. The error is a
// Validation. Fields that only the door may fill are refused.
func DecodeCBOR(b []byte, ptr any) *fault.Error {
	if len(b) == 0 || b[0]>>5 != 5 {
		return malformed("malformed_cbor", "", "must be a CBOR map with integer keys")
	}
	api.ApplyDefaults(ptr)
	if err := strict.Unmarshal(b, ptr); err != nil {
		key, what := describeCBOR(err)
		return malformed("malformed_cbor", fieldOfKey(reflect.TypeOf(ptr).Elem(), key), what)
	}
	if doorFilled(reflect.ValueOf(ptr).Elem()) {
		return malformed("unknown_field", "", "has a field that callers cannot set")
	}
	api.ApplyNestedDefaults(ptr)
	return nil
}

// EncodeCBOR writes v as a CBOR body: the encoding of the log.
func EncodeCBOR(v any) ([]byte, error) { return EncodeLog(v) }

// ReadCBOR reads a response into *ptr. Unknown fields are skipped: the server
// may be newer.
func ReadCBOR(b []byte, ptr any) error { return lenient.Unmarshal(b, ptr) }

// doorFilled says that a field without a JSON form is set. Such fields stand at
// the top of a request only.
func doorFilled(v reflect.Value) bool {
	t := v.Type()
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("json") == "-" && !v.Field(i).IsZero() {
			return true
		}
	}
	return false
}

// describeCBOR says what is wrong with CBOR input, in words that hold nothing
// of it, and under which key of the outermost map as far as the library tells.
func describeCBOR(err error) (key, what string) {
	var (
		wrongType *cbor.UnmarshalTypeError
		unknown   *cbor.UnknownFieldError
		repeated  *cbor.DupMapKeyError
		extra     *cbor.ExtraneousDataError
	)
	switch {
	case errors.As(err, &wrongType):
		name := wrongType.StructFieldName
		return name[strings.LastIndexByte(name, '.')+1:], "has a value of the wrong type or out of range"
	case errors.As(err, &unknown):
		return "", "has an unknown field"
	case errors.As(err, &repeated):
		return "", "has a repeated key"
	case errors.As(err, &extra):
		return "", "has bytes after its end"
	default:
		return "", "is not well-formed CBOR with definite lengths, valid UTF-8 and no tags"
	}
}

// fieldOfKey is the path of the field with the CBOR key, "" when there is none.
func fieldOfKey(t reflect.Type, key string) string {
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		if k, _, _ := strings.Cut(tag.Get("cbor"), ","); k == key && key != "" {
			name, _, _ := strings.Cut(tag.Get("json"), ",")
			return "/" + name
		}
	}
	return ""
}
