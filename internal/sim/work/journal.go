package work

import (
	"reflect"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/wire"
)

// Line is one thing that a caller tells, in the order in which it happened: a
// command is told before it is submitted, and again when it was answered.
type Line struct {
	Sent     *Call   `json:"s,omitempty"`
	Answered *Answer `json:"a,omitempty"`
	// Wrong is an answer that no interruption explains.
	Wrong string `json:"w,omitempty"`
}

// Call is a command as it was sent.
type Call struct {
	ID        string `json:"id"`
	Caller    int    `json:"c"`
	Operation string `json:"o"`
	Request   string `json:"r"`
}

// Answer is what a command was answered.
type Answer struct {
	ID     string `json:"id"`
	Reply  string `json:"t"`           // the response, or the refusal
	Code   string `json:"e,omitempty"` // of a refusal
	Stored bool   `json:"k,omitempty"` // there is a receipt
}

// Journal takes the lines of all callers. It is safe for concurrent use.
type Journal func(Line)

func operation(name string) *api.Operation {
	for _, o := range api.Operations() {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// request is the request of a call, as it was sent.
func (c *Call) request() (any, error) {
	req := reflect.New(operation(c.Operation).Request).Interface()
	err := wire.ReadJSON([]byte(c.Request), req)
	return req, err
}

// response is the response of a command that was carried out.
func (a *Answer) response(of *Call) (any, error) {
	resp := reflect.New(operation(of.Operation).Response).Interface()
	err := wire.ReadJSON([]byte(a.Reply), resp)
	return resp, err
}
