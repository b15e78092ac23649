package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Violation is one reason why a request is not valid.
type Violation struct {
	Path    string `json:"path" cbor:"1,keyasint" doc:"JSON pointer of the field, empty for the whole request"`
	Message string `json:"message" cbor:"2,keyasint" doc:"what is wrong with it"`
}

// Error is the one error of KeyLoad. Its JSON form is the problem body of
// RFC 9457; its CBOR form is stored in receipts.
//
// A rejection is an Error every replica agrees on. Compare errors by Code and
// Reason, never by text.
type Error struct {
	Code             Code              `json:"code" cbor:"1,keyasint"`
	Reason           string            `json:"reason" cbor:"2,keyasint" doc:"stable word for the exact cause"`
	Detail           string            `json:"detail" cbor:"3,keyasint" doc:"one safe sentence for a person"`
	Retry            Retry             `json:"retry" cbor:"4,keyasint"`
	Recorded         bool              `json:"recorded" cbor:"5,keyasint" doc:"whether the refusal is stored under the command id"`
	RetryAfterMillis int64             `json:"retryAfterMillis,omitzero" cbor:"6,keyasint,omitempty"`
	Violations       []Violation       `json:"violations,omitempty" cbor:"7,keyasint,omitempty"`
	CommandID        string            `json:"commandId,omitempty" cbor:"8,keyasint,omitempty"`
	Facts            map[string]string `json:"facts,omitempty" cbor:"9,keyasint,omitempty" doc:"named values that help: a limit, a deadline, a first available position"`
}

// New makes an error with the code's usual retry advice. The reason is a stable
// snake_case word; the detail must hold no token, secret or payload.
func New(code Code, reason, format string, args ...any) *Error {
	return &Error{Code: code, Reason: reason, Detail: fmt.Sprintf(format, args...), Retry: classOf(code).retry}
}

// Invalid makes a Validation error for one field.
func Invalid(path, format string, args ...any) *Error {
	msg := fmt.Sprintf(format, args...)
	e := New(Validation, "invalid_field", "%s: %s", strings.TrimPrefix(path, "/"), msg)
	e.Violations = []Violation{{Path: path, Message: msg}}
	return e
}

// With adds a named fact and returns the same error.
func (e *Error) With(name, format string, args ...any) *Error {
	if e.Facts == nil {
		e.Facts = map[string]string{}
	}
	e.Facts[name] = fmt.Sprintf(format, args...)
	return e
}

// WithRetry replaces the retry advice and returns the same error.
func (e *Error) WithRetry(r Retry) *Error { e.Retry = r; return e }

// Error is the code, the reason and the detail.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	if e.Reason != "" {
		b.WriteString(" (" + e.Reason + ")")
	}
	b.WriteString(": " + e.Detail)
	return b.String()
}

// Is makes errors.Is compare by code, and by reason where the target has one.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.Reason == "" || t.Reason == e.Reason)
}

// From finds the Error in err's chain; nil when there is none.
func From(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// CodeOf is the code of the Error in err's chain, or "" when there is none.
func CodeOf(err error) Code {
	if e := From(err); e != nil {
		return e.Code
	}
	return ""
}
