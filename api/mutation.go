package api

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/keyload/keyload/fault"
)

// Mutation is one change of a batch: exactly one of its fields is set. Its JSON
// form is flat: {"kind": "putDocument", "collection": …}. A further kind is one
// struct in its own file and one line here; numbers are never reused.
type Mutation struct {
	PutDocument       *PutDocument       `json:"putDocument" cbor:"1,keyasint,omitempty"`
	PatchDocument     *PatchDocument     `json:"patchDocument" cbor:"2,keyasint,omitempty"`
	DeleteDocument    *DeleteDocument    `json:"deleteDocument" cbor:"3,keyasint,omitempty"`
	AppendEvents      *AppendEvents      `json:"appendEvents" cbor:"4,keyasint,omitempty"`
	Publish           *Publish           `json:"publish" cbor:"5,keyasint,omitempty"`
	PurgeTopic        *PurgeTopic        `json:"purgeTopic" cbor:"6,keyasint,omitempty"`
	Enqueue           *Enqueue           `json:"enqueue" cbor:"7,keyasint,omitempty"`
	CancelMessage     *CancelMessage     `json:"cancelMessage" cbor:"8,keyasint,omitempty"`
	RescheduleMessage *RescheduleMessage `json:"rescheduleMessage" cbor:"9,keyasint,omitempty"`
	RedriveMessage    *RedriveMessage    `json:"redriveMessage" cbor:"10,keyasint,omitempty"`
}

// MutationBody is implemented (by pointer) by the fields of Mutation.
type MutationBody interface {
	// Need is what the caller must be allowed to do, and with which resource.
	Need() Need
}

// MutationKind is one kind of mutation.
type MutationKind struct {
	Name string       // as in JSON, for example "putDocument"
	Type reflect.Type // the struct of its fields
}

// mutationField is what the JSON form of one kind needs.
type mutationField struct {
	MutationKind
	index int
	flat  reflect.Type // struct{Kind; Body *Type} with the body's fields lifted to the top
}

// mutationFields is derived once from the fields of Mutation.
var mutationFields = func() []mutationField {
	t := reflect.TypeFor[Mutation]()
	out := make([]mutationField, t.NumField())
	for i := range out {
		f := t.Field(i)
		out[i] = mutationField{
			MutationKind: MutationKind{Name: f.Tag.Get("json"), Type: f.Type.Elem()},
			index:        i,
			flat: reflect.StructOf([]reflect.StructField{
				{Name: "Kind", Type: reflect.TypeFor[string](), Tag: `json:"kind"`},
				{Name: "Body", Type: f.Type, Tag: `json:",embed"`},
			}),
		}
	}
	return out
}()

// MutationKinds lists every kind in the order of Mutation's fields.
func MutationKinds() []MutationKind {
	out := make([]MutationKind, len(mutationFields))
	for i, f := range mutationFields {
		out[i] = f.MutationKind
	}
	return out
}

// Kind is the name of the one field that is set, "" when none or several are.
func (m *Mutation) Kind() string {
	if i := m.set(); i >= 0 {
		return mutationFields[i].Name
	}
	return ""
}

// Body is the one field that is set, nil when none or several are.
func (m *Mutation) Body() MutationBody {
	i := m.set()
	if i < 0 {
		return nil
	}
	return reflect.ValueOf(m).Elem().Field(i).Interface().(MutationBody)
}

// set is the index of the one field that is set, or -1.
func (m *Mutation) set() int {
	v, found := reflect.ValueOf(m).Elem(), -1
	for i := range mutationFields {
		if v.Field(i).IsNil() {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// Check refuses a mutation without exactly one kind.
func (m *Mutation) Check() []fault.Violation {
	if m.set() < 0 {
		return []fault.Violation{{Path: "/kind", Message: "exactly one kind of mutation is required"}}
	}
	return nil
}

// MarshalJSON writes the flat form.
func (m Mutation) MarshalJSON() ([]byte, error) {
	i := m.set()
	if i < 0 {
		return nil, errors.New("api.Mutation: exactly one field must be set")
	}
	f := mutationFields[i]
	flat := reflect.New(f.flat).Elem()
	flat.Field(0).SetString(f.Name)
	flat.Field(1).Set(reflect.ValueOf(m).Field(i))
	return json.Marshal(flat.Addr().Interface(), json.Deterministic(true), jsontext.PreserveRawStrings(true))
}

// UnmarshalJSON reads the flat form. Unknown, repeated and missing names are
// refused.
func (m *Mutation) UnmarshalJSON(b []byte) error {
	name, err := kindOf(b)
	if err != nil {
		return err
	}
	for _, f := range mutationFields {
		if f.Name != name {
			continue
		}
		flat := reflect.New(f.flat)
		if err := json.Unmarshal(b, flat.Interface(), json.RejectUnknownMembers(true)); err != nil {
			return err
		}
		body := flat.Elem().Field(1)
		if body.IsNil() { // a kind alone sets no field of the body
			body.Set(reflect.New(f.Type))
		}
		*m = Mutation{}
		reflect.ValueOf(m).Elem().Field(f.index).Set(body)
		return nil
	}
	return &FieldError{Path: "/kind", Message: "is not a kind of mutation; the kinds are " + kindNames()}
}

// FieldError is a refusal of one field inside a value that decodes itself. The
// message never holds the value.
type FieldError struct {
	Path    string // JSON pointer below the value
	Message string
}

// Error is the path and the message.
func (e *FieldError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Message) }

// kindOf finds the text under "kind" at the top of an object.
func kindOf(b []byte) (string, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(b))
	if t, err := d.ReadToken(); err != nil {
		return "", err
	} else if t.Kind() != '{' {
		return "", &FieldError{Message: "must be an object with a kind"}
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return "", err
		}
		if t.String() != "kind" {
			if err := d.SkipValue(); err != nil {
				return "", err
			}
			continue
		}
		if t, err = d.ReadToken(); err != nil {
			return "", err
		}
		if t.Kind() != '"' {
			return "", &FieldError{Path: "/kind", Message: "must be a text"}
		}
		return t.String(), nil
	}
	return "", &FieldError{Path: "/kind", Message: "is required"}
}

func kindNames() string {
	names := make([]string, len(mutationFields))
	for i, f := range mutationFields {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// MutationResult is what one mutation of a committed batch did. Which fields it
// has depends on the kind.
type MutationResult struct {
	Kind          string   `json:"kind" cbor:"1,keyasint" doc:"kind of the mutation"`
	Revision      uint64   `json:"revision,omitzero" cbor:"2,keyasint,omitempty" doc:"new revision of the document"`
	FirstPosition uint64   `json:"firstPosition,omitzero" cbor:"3,keyasint,omitempty" doc:"position of the first event of the mutation"`
	Position      uint64   `json:"position,omitzero" cbor:"4,keyasint,omitempty" doc:"position of the last event of the mutation, or the cut of a purge"`
	EventIDs      []string `json:"eventIds,omitempty" cbor:"5,keyasint,omitempty" doc:"ids of the events in order, when at least one was derived"`
	MessageID     string   `json:"messageId,omitzero" cbor:"6,keyasint,omitempty" doc:"id of the message"`
	StateVersion  uint64   `json:"stateVersion,omitzero" cbor:"7,keyasint,omitempty" doc:"new state version of the message"`
	Duplicate     bool     `json:"duplicate,omitzero" cbor:"8,keyasint,omitempty" doc:"an equal message was stored before; nothing was added"`
	InboxExpired  bool     `json:"inboxExpired,omitzero" cbor:"9,keyasint,omitempty" doc:"of a redrive: the message is older than inbox records are kept (30 days), so effects of an earlier processing are not recognised"`
}
