package apischema

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/keyload/keyload/api"
)

// A Schema is the part of JSON Schema 2020-12 that the types of package api
// need. Lengths of texts are in characters there and in bytes here; the number
// of bytes is never smaller, so what a schema refuses the store refuses too.
type Schema struct {
	Ref                  string     `json:"$ref,omitempty"`
	Defs                 Defs       `json:"$defs,omitempty"`
	Type                 string     `json:"type,omitempty"`
	Description          string     `json:"description,omitempty"`
	Format               string     `json:"format,omitempty"`
	Const                string     `json:"const,omitempty"`
	Enum                 []string   `json:"enum,omitempty"`
	Default              any        `json:"default,omitempty"`
	Minimum              *int64     `json:"minimum,omitempty"`
	Maximum              *int64     `json:"maximum,omitempty"`
	MinLength            int64      `json:"minLength,omitempty"`
	MaxLength            int64      `json:"maxLength,omitempty"`
	ContentEncoding      string     `json:"contentEncoding,omitempty"`
	MinItems             int64      `json:"minItems,omitempty"`
	MaxItems             int64      `json:"maxItems,omitempty"`
	MaxProperties        int64      `json:"maxProperties,omitempty"`
	Items                *Schema    `json:"items,omitempty"`
	Properties           Properties `json:"properties,omitempty"`
	Required             []string   `json:"required,omitempty"`
	AdditionalProperties any        `json:"additionalProperties,omitempty"`
	OneOf                []*Schema  `json:"oneOf,omitempty"`
	Discriminator        any        `json:"discriminator,omitempty"`
	CBORKey              int64      `json:"x-cbor-key,omitempty"`  // number of the field in CBOR
	MaxBytes             int64      `json:"x-max-bytes,omitempty"` // of the encoded value
	CBORKind             int64      `json:"x-cbor-kind,omitempty"` // number of a mutation's kind
}

// Defs are the schemas that a whole one refers to, by name.
type Defs map[string]*Schema

// Property is one field of an object.
type Property struct {
	Name   string
	Schema *Schema
}

// Properties keep the order in which the fields are declared.
type Properties []Property

// MarshalJSON writes an object.
func (p Properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		schema, err := json.Marshal(f.Schema)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(schema)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Get finds a property by its name; nil when there is none.
func (p Properties) Get(name string) *Schema {
	for _, f := range p {
		if f.Name == name {
			return f.Schema
		}
	}
	return nil
}

// A Set collects the schemas of named types, which refer to each other.
type Set struct {
	// Named are those that were met so far, by their Go names.
	Named map[string]*Schema
	// Closed objects refuse fields they do not know. It is looked at when a type is met
	// first.
	Closed bool
	prefix string
}

// NewSet makes an empty set. Names are referred to with the prefix before them, for
// example "#/$defs/".
func NewSet(prefix string) *Set { return &Set{Named: map[string]*Schema{}, prefix: prefix} }

// Whole is the schema of a struct type that refers to nothing outside itself. Closed
// says whether objects refuse fields they do not know.
func Whole(t reflect.Type, closed bool) *Schema {
	s := NewSet("#/$defs/")
	s.Closed = closed
	root := *s.Struct(t)
	delete(s.Named, t.Name()) // no request or response has one of its own type within
	if len(s.Named) > 0 {
		root.Defs = s.Named
	}
	return &root
}

// Ref is a reference to a named type.
func (s *Set) Ref(name string) *Schema { return &Schema{Ref: s.prefix + name} }

// Name is the name to which a schema refers, "" when it is none.
func (s *Set) Name(of *Schema) string { return strings.TrimPrefix(of.Ref, s.prefix) }

// Struct is the schema of a struct type, by its name.
func (s *Set) Struct(t reflect.Type) *Schema { return s.Named[s.Name(s.Of(t))] }

// Of is the schema of a type: a reference for structs.
func (s *Set) Of(t reflect.Type) *Schema {
	switch {
	case t.Kind() == reflect.Pointer:
		return s.Of(t.Elem())
	case t == reflect.TypeFor[api.Time]():
		return &Schema{Type: "string", Format: "date-time"}
	case t == reflect.TypeFor[api.JSON]():
		return &Schema{}
	case t == reflect.TypeFor[api.Mutation]():
		return s.mutation()
	case t.Kind() == reflect.Struct:
		return s.reference(t)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return &Schema{Type: "string", ContentEncoding: "base64"}
	case t.Kind() == reflect.Slice:
		return &Schema{Type: "array", Items: s.Of(t.Elem())}
	case t.Kind() == reflect.Map:
		return &Schema{Type: "object", AdditionalProperties: s.Of(t.Elem())}
	case t.Kind() == reflect.Bool:
		return &Schema{Type: "boolean"}
	case t.Kind() == reflect.String:
		return &Schema{Type: "string"}
	default: // the integers of the contract are never negative and have 63 bits
		low, high := int64(0), int64(math.MaxInt64)
		return &Schema{Type: "integer", Format: "int64", Minimum: &low, Maximum: &high}
	}
}

func (s *Set) reference(t reflect.Type) *Schema {
	ref := &Schema{Ref: s.prefix + t.Name()}
	if s.Named[t.Name()] == nil {
		o := &Schema{}
		s.Named[t.Name()] = o // before its fields, which may refer to it
		s.object(o, t)
	}
	return ref
}

// object fills in the fields of a struct.
func (s *Set) object(o *Schema, t reflect.Type) {
	o.Type = "object"
	if s.Closed {
		o.AdditionalProperties = false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		p := s.Of(f.Type)
		constrain(p, f.Tag)
		key, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
		p.CBORKey, _ = strconv.ParseInt(key, 10, 64)
		o.Properties = append(o.Properties, Property{name, p})
		if !strings.Contains(options, "omit") {
			o.Required = append(o.Required, name)
		}
	}
}

// mutation is one variant per kind, each with the fields of its body beside the
// kind.
func (s *Set) mutation() *Schema {
	const name = "Mutation"
	if s.Named[name] == nil {
		m := &Schema{}
		s.Named[name] = m
		mapping := map[string]string{}
		for i, k := range api.MutationKinds() {
			variant := &Schema{}
			s.object(variant, k.Type)
			kind := &Schema{Type: "string", Const: k.Name, Description: "what the mutation does"}
			variant.Properties = append(Properties{{"kind", kind}}, variant.Properties...)
			variant.Required = append([]string{"kind"}, variant.Required...)
			key, _, _ := strings.Cut(reflect.TypeFor[api.Mutation]().Field(i).Tag.Get("cbor"), ",")
			variant.CBORKind, _ = strconv.ParseInt(key, 10, 64)
			s.Named[name+"."+k.Name] = variant
			mapping[k.Name] = s.prefix + name + "." + k.Name
			m.OneOf = append(m.OneOf, &Schema{Ref: mapping[k.Name]})
		}
		m.Description = "One change of a batch. In CBOR it is a map from the number of its kind to its fields."
		m.Discriminator = map[string]any{"propertyName": "kind", "mapping": mapping}
	}
	return &Schema{Ref: s.prefix + name}
}

// constrain adds what the tags of a field say.
func constrain(p *Schema, tag reflect.StructTag) {
	p.Description = tag.Get("doc")
	one := p // what bounds of a text speak of
	if p.Type == "array" {
		p.MinItems, p.MaxItems = number(tag, "minItems"), number(tag, "maxItems")
		one = p.Items
	}
	if p.Type == "object" {
		p.MaxProperties = number(tag, "maxItems")
	}
	if e := tag.Get("enum"); e != "" {
		one.Enum = strings.Split(e, ",")
	}
	applyFormat(one, tag.Get("format"))
	applyLengths(one, tag)
	if p.Type == "integer" {
		if n, err := strconv.ParseInt(tag.Get("minimum"), 10, 64); err == nil {
			p.Minimum = &n
		}
		if n, err := strconv.ParseInt(tag.Get("maximum"), 10, 64); err == nil {
			p.Maximum = &n
		}
	}
	if d, ok := tag.Lookup("default"); ok {
		p.Default = d
		if p.Type == "integer" {
			p.Default = number(tag, "default")
		}
	}
}

func applyLengths(p *Schema, tag reflect.StructTag) {
	low, high := number(tag, "minLength"), number(tag, "maxLength")
	switch {
	case high > 0 && p.ContentEncoding == "base64":
		p.MaxLength, p.MaxBytes = (high+2)/3*4, high
	case high > 0 && p.Type != "string":
		p.MaxBytes = high
	case high > 0:
		p.MaxLength, p.MaxBytes = high, high
	}
	p.MinLength = max(p.MinLength, min(low, 1)) // one byte is one character, more need not be
}

func applyFormat(p *Schema, format string) {
	switch format {
	case "identifier":
		p.MinLength, p.MaxLength, p.MaxBytes, p.Format = 1, 256, 256, "identifier"
	case "uuid":
		p.Format = "uuid"
	case "pointer":
		p.MaxLength, p.MaxBytes, p.Format = 1024, 1024, "json-pointer"
	case "capability":
		for _, c := range append(api.AllCapabilities(), api.AnyName) {
			p.Enum = append(p.Enum, string(c))
		}
	case "object":
		p.Type = "object"
	}
}

func number(tag reflect.StructTag, name string) int64 {
	n, _ := strconv.ParseInt(tag.Get(name), 10, 64) // api refuses a malformed tag
	return n
}
