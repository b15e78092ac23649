package api

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// shape is how a field's bounds are checked; it follows from its Go type.
type shape uint8

const (
	shapeOther   shape = iota // bool and whatever has no bounds
	shapeString               // any string kind
	shapeBytes                // []byte
	shapeJSON                 // JSON
	shapeInt                  // signed integers
	shapeUint                 // unsigned integers, at most 2^63-1
	shapeTime                 // Time
	shapeStruct               // recurses
	shapePointer              // to a scalar or struct; nil is absent
	shapeSlice                // of scalars or structs
	shapeMap                  // of strings
)

// format is the meaning of a text beyond its length.
type format uint8

const (
	formatNone       format = iota
	formatIdentifier        // 1..256 bytes, not blank, no control characters
	formatUUID              // lower-case 8-4-4-4-12
	formatPointer           // JSON pointer below the root
	formatCapability        // a capability of the contract, or *
	formatObject            // JSON whose root is an object
	formatHeaders           // map of header texts
)

// field is the compiled plan of one struct field, or of the elements of a slice
// or the target of a pointer.
type field struct {
	index    int
	name     string // on textual surfaces
	cborKey  string
	shape    shape
	format   format
	required bool
	door     bool // has no JSON form: filled by the door
	nested   bool // its defaults or hooks lie below

	hasDefault bool
	defaultInt int64
	defaultStr string

	min, max       int64
	hasMin         bool
	minLen, maxLen int // bytes of texts, entries of slices and maps
	enum           []string

	elem *field // of pointers and slices
	sub  *plan  // of structs
}

// plan is the compiled form of one struct type.
type plan struct {
	fields   []field
	flat     bool // pointers lift their fields to this level (Mutation)
	checks   bool // has Check
	hook     bool // has SetDefaults
	defaults bool // any default or hook here or below
}

// checker is implemented by types with rules across their fields.
type checker interface{ Check() []violation }

// defaulter is implemented by types with defaults that depend on other fields.
type defaulter interface{ SetDefaults() }

var (
	checkerType   = reflect.TypeFor[checker]()
	defaulterType = reflect.TypeFor[defaulter]()
	plans         sync.Map // reflect.Type → *plan
)

// planOf compiles the struct type once.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p, _ := plans.LoadOrStore(t, compile(t))
	return p.(*plan)
}

// compile panics on a malformed tag: a fault of the declaration that the
// package's tests find.
func compile(t reflect.Type) *plan {
	ptr := reflect.PointerTo(t)
	p := &plan{
		flat:   t == reflect.TypeFor[Mutation](),
		checks: ptr.Implements(checkerType),
		hook:   ptr.Implements(defaulterType),
	}
	p.defaults = p.hook
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			continue
		}
		f := compileField(sf.Type, sf.Tag, t.Name()+"."+sf.Name)
		f.index = i
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		f.name, f.door = name, name == "-"
		f.cborKey, _, _ = strings.Cut(sf.Tag.Get("cbor"), ",")
		f.required = !p.flat && !strings.Contains(options, "omit")
		p.defaults = p.defaults || f.hasDefault || f.nested
		p.fields = append(p.fields, f)
	}
	return p
}

func compileField(t reflect.Type, tag reflect.StructTag, where string) field {
	f := field{min: math.MinInt64, max: math.MaxInt64, maxLen: math.MaxInt}
	f.format = parseFormat(tag.Get("format"), where)
	switch {
	case t == reflect.TypeFor[Time]():
		f.shape = shapeTime
	case t == reflect.TypeFor[JSON]():
		f.shape = shapeJSON
	case t.Kind() == reflect.String:
		f.shape = shapeString
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		f.shape = shapeBytes
	case t.Kind() == reflect.Slice:
		f.shape = shapeSlice
	case t.Kind() == reflect.Map:
		f.shape = shapeMap
	case t.Kind() == reflect.Struct:
		f.shape = shapeStruct
	case t.Kind() == reflect.Pointer:
		f.shape = shapePointer
	case reflect.Zero(t).CanInt():
		f.shape = shapeInt
	case reflect.Zero(t).CanUint():
		f.shape = shapeUint
	}
	f.readBounds(tag, where)
	switch f.shape {
	case shapeStruct:
		f.sub = planOf(t)
		f.nested = f.sub.defaults
	case shapePointer, shapeSlice:
		e := compileField(t.Elem(), elementTag(tag, f.shape), where)
		e.required = f.shape == shapePointer // a pointer that is set has a value
		f.elem = &e
		f.hasDefault = f.shape == shapePointer && e.hasDefault
		f.nested = e.nested
	}
	return f
}

// elementTag is the part of a tag that speaks of the elements: for a slice all
// but its item counts, for a pointer everything.
func elementTag(tag reflect.StructTag, s shape) reflect.StructTag {
	if s == shapePointer {
		return tag
	}
	return reflect.StructTag(fmt.Sprintf("format:%q enum:%q maxLength:%q", tag.Get("format"), tag.Get("enum"), tag.Get("maxLength")))
}

func (f *field) readBounds(tag reflect.StructTag, where string) {
	num := func(name string) (int64, bool) {
		s := tag.Get(name)
		if s == "" {
			return 0, false
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			panic("api: " + where + ": tag " + name + " is not a number")
		}
		return n, true
	}
	length, items := "Length", "Items"
	if f.shape == shapeSlice || f.shape == shapeMap {
		length = items
	}
	if n, ok := num("minimum"); ok {
		f.min, f.hasMin = n, true
	}
	if n, ok := num("maximum"); ok {
		f.max = n
	}
	if n, ok := num("min" + length); ok {
		f.minLen = int(n)
	}
	if n, ok := num("max" + length); ok {
		f.maxLen = int(n)
	}
	if e := tag.Get("enum"); e != "" {
		f.enum = strings.Split(e, ",")
	}
	d, ok := tag.Lookup("default")
	f.hasDefault = ok && f.shape != shapePointer
	if f.hasDefault && (f.shape == shapeInt || f.shape == shapeUint) {
		f.defaultInt, _ = num("default")
	}
	f.defaultStr = d
}

func parseFormat(s, where string) format {
	switch s {
	case "":
		return formatNone
	case "identifier":
		return formatIdentifier
	case "uuid":
		return formatUUID
	case "pointer":
		return formatPointer
	case "capability":
		return formatCapability
	case "object":
		return formatObject
	case "headers":
		return formatHeaders
	default:
		panic("api: " + where + ": unknown format " + s)
	}
}
