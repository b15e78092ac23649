package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// strictJSON refuses unknown fields; names match by case, and repeated names
// and invalid UTF-8 are refused by the library's defaults.
var strictJSON = json.JoinOptions(json.RejectUnknownMembers(true))

// plainJSON writes maps in the order of their keys, and texts inside payloads
// as they were sent.
var plainJSON = json.JoinOptions(json.Deterministic(true), jsontext.PreserveRawStrings(true))

// DecodeJSON reads one JSON object into *ptr, a request of package api. Fields
// that are absent get their defaults; a zero that is written stays zero, except
// in the elements of lists. The error is a Validation that names the place and
// never the value. Bounds are not checked: call api.Validate.
func DecodeJSON(b []byte, ptr any) *fault.Error {
	if len(bytes.TrimLeft(b, " \t\r\n")) == 0 {
		return malformed("malformed_json", "", "is empty; the smallest one is {}")
	}
	if k := jsontext.Value(b).Kind(); k != '{' {
		return malformed("malformed_json", "", "must be a JSON object")
	}
	api.ApplyDefaults(ptr)
	if err := json.Unmarshal(b, ptr, strictJSON); err != nil {
		reason, path, what := describeJSON(err)
		return malformed(reason, visible(reflect.TypeOf(ptr).Elem(), path), what)
	}
	api.ApplyNestedDefaults(ptr)
	return nil
}

// EncodeJSON writes v as JSON: lists that are nil as [], numbers exactly.
func EncodeJSON(v any) ([]byte, error) { return json.Marshal(v, plainJSON) }

// ReadJSON reads a response into *ptr. Unknown fields are skipped: the server
// may be newer.
func ReadJSON(b []byte, ptr any) error { return json.Unmarshal(b, ptr) }

// malformed makes a Validation error of one place.
func malformed(reason, path, what string) *fault.Error {
	e := api.ValidationError([]fault.Violation{{Path: path, Message: what}})
	e.Reason = reason
	return e
}

// describeJSON finds the place of a decoding error and says what is wrong in
// words that hold nothing of the value. Errors nest where a type decodes
// itself: each level adds its part of the path.
func describeJSON(err error) (reason, path, what string) {
	var last *json.SemanticError
	for err != nil {
		switch e := err.(type) { // one level at a time, so not errors.As
		case *json.SemanticError:
			path += string(e.JSONPointer)
			if errors.Is(e.Err, json.ErrUnknownName) {
				return "unknown_field", path, "is not a field here"
			}
			last, err = e, e.Err
		case *jsontext.SyntacticError:
			path += string(e.JSONPointer)
			switch {
			case errors.Is(e.Err, jsontext.ErrDuplicateName):
				return "repeated_field", path, "is given twice"
			case errors.Is(e.Err, io.ErrUnexpectedEOF):
				return "malformed_json", path, "the JSON text ends too early"
			default:
				return "malformed_json", path, "is not valid JSON in UTF-8, near byte " + strconv.FormatInt(e.ByteOffset, 10)
			}
		case *api.FieldError:
			return "invalid_field", path + e.Path, e.Message
		default:
			err = errors.Unwrap(err)
		}
	}
	if last == nil {
		return "malformed_json", path, "is not valid JSON"
	}
	return "invalid_field", path, expectation(last)
}

// expectation says what the place wants instead of what it got.
func expectation(e *json.SemanticError) string {
	t := e.GoType
	switch {
	case t == nil:
		return "does not have the form it must have"
	case reflect.Zero(t).CanInt() || reflect.Zero(t).CanUint():
		if e.JSONKind == '0' {
			return "must be a whole number from 0 to 9223372036854775807"
		}
		return "must be a number"
	case t.Kind() == reflect.Bool:
		return "must be true or false"
	case t.Kind() == reflect.String:
		return "must be a text"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "must be a text in base64"
	case t.Kind() == reflect.Slice:
		return "must be a list"
	default:
		return "must be an object"
	}
}
