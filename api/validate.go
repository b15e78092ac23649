package api

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/keyload/keyload/fault"
)

// MaxViolations is how many violations of one request are told.
const MaxViolations = 20

// violation is short for what Check returns.
type violation = fault.Violation

// Validate checks every bound of the contract that needs no stored state:
// lengths, ranges, formats, required fields, and each type's Check. It is
// called on complete requests (ApplyDefaults first). ptr is a pointer to a
// struct of this package; the answer is empty for a valid one and has at most
// MaxViolations entries with JSON pointer paths.
func Validate(ptr any) []fault.Violation {
	v := reflect.ValueOf(ptr).Elem()
	var w walker
	w.structure(planOf(v.Type()), v)
	return w.found
}

// ValidationError makes the error for violations; nil when there are none.
func ValidationError(found []fault.Violation) *fault.Error {
	if len(found) == 0 {
		return nil
	}
	first := strings.TrimPrefix(found[0].Path, "/")
	if first == "" {
		first = "request"
	}
	e := fault.New(fault.Validation, "invalid_field", "%s: %s", first, found[0].Message)
	if n := len(found) - 1; n > 0 {
		e.Detail += fmt.Sprintf(" (and %d more)", n)
	}
	e.Violations = found
	return e
}

// walker checks values and remembers where it is.
type walker struct {
	found []fault.Violation
	path  [16]step
	depth int
}

// step is one token of the path; an index where name is empty.
type step struct {
	name  string
	index int
}

func (w *walker) push(s step) {
	if w.depth < len(w.path) {
		w.path[w.depth] = s
	}
	w.depth++
}

func (w *walker) pop() { w.depth-- }

func (w *walker) full() bool { return len(w.found) >= MaxViolations }

// report adds a violation at the current place, or below it.
func (w *walker) report(below, msg string, args ...any) {
	if w.full() {
		return
	}
	var b strings.Builder
	for _, s := range w.path[:min(w.depth, len(w.path))] {
		b.WriteByte('/')
		if s.name != "" {
			b.WriteString(escapePointer(s.name))
		} else {
			b.WriteString(strconv.Itoa(s.index))
		}
	}
	if len(args) > 0 {
		msg = fmt.Sprintf(msg, args...)
	}
	w.found = append(w.found, fault.Violation{Path: b.String() + below, Message: msg})
}

func (w *walker) structure(p *plan, v reflect.Value) {
	before := len(w.found)
	for i := range p.fields {
		f := &p.fields[i]
		if f.door {
			continue
		}
		fv := v.Field(f.index)
		if p.flat {
			if !fv.IsNil() {
				w.structure(f.elem.sub, fv.Elem())
			}
			continue
		}
		w.push(step{name: f.name})
		w.value(f, fv)
		w.pop()
		if w.full() {
			return
		}
	}
	// A rule across fields says nothing new about fields that are wrong alone.
	if p.checks && len(w.found) == before {
		for _, c := range v.Addr().Interface().(checker).Check() {
			w.report(c.Path, "%s", c.Message)
		}
	}
}

func (w *walker) value(f *field, v reflect.Value) {
	switch f.shape {
	case shapeString:
		w.text(f, v.String())
	case shapeInt:
		w.number(f, v.Int())
	case shapeUint:
		if n := v.Uint(); n > 1<<63-1 {
			w.report("", "must be at most 9223372036854775807")
		} else {
			w.number(f, int64(n))
		}
	case shapeTime:
		w.instant(f, Time(v.Int()))
	case shapeJSON:
		w.json(f, v.Bytes())
	case shapeBytes:
		if n := v.Len(); n > f.maxLen {
			w.report("", "must be at most %d bytes", f.maxLen)
		} else if f.required && n == 0 {
			w.report("", "is required")
		}
	case shapeStruct:
		w.structure(f.sub, v)
	case shapePointer:
		switch {
		case v.IsNil():
			if f.required {
				w.report("", "is required")
			}
		case f.elem.shape == shapeStruct:
			w.structure(f.elem.sub, v.Elem())
		default:
			w.value(f.elem, v.Elem())
		}
	case shapeSlice:
		w.slice(f, v)
	case shapeMap:
		if m, ok := v.Interface().(map[string]string); ok && f.format == formatHeaders {
			w.headers(f, m)
		}
	}
}

func (w *walker) slice(f *field, v reflect.Value) {
	n := v.Len()
	switch {
	case n > f.maxLen:
		w.report("", "must have at most %d entries", f.maxLen)
		return
	case n < f.minLen && (n > 0 || f.required):
		w.report("", "must have at least %d", f.minLen)
		return
	}
	for i := 0; i < n && !w.full(); i++ {
		w.push(step{index: i})
		if f.elem.shape == shapeString {
			w.element(f.elem, v.Index(i).String())
		} else {
			w.value(f.elem, v.Index(i))
		}
		w.pop()
	}
}

// element is a text in a list, where an empty one is never absent.
func (w *walker) element(f *field, s string) {
	if s == "" {
		w.report("", "must not be empty")
		return
	}
	w.text(f, s)
}

func (w *walker) number(f *field, n int64) {
	switch {
	case n == 0 && f.optional():
	case n < f.min:
		if f.required && n == 0 {
			w.report("", "is required, at least %d", f.min)
			return
		}
		w.report("", "must be at least %d", f.min)
	case n > f.max:
		w.report("", "must be at most %d", f.max)
	case n < 0 && !f.hasMin: // no number of this package may be negative
		w.report("", "must be at least 0")
	}
}

func (w *walker) instant(f *field, t Time) {
	switch {
	case t == 0:
		if f.required {
			w.report("", "is required")
		}
	case t < 0 || t > MaxTime:
		w.report("", "must be after 1970-01-01T00:00:00.000Z and before 10000-01-01")
	}
}

func (w *walker) text(f *field, s string) {
	if s == "" {
		if f.required && (f.minLen > 0 || f.format != formatNone || f.enum != nil) || f.hasDefault {
			w.report("", "is required")
		}
		return
	}
	if len(s) > f.maxLen {
		w.report("", "must be at most %d bytes", f.maxLen)
		return
	}
	if len(s) < f.minLen {
		w.report("", "must be at least %d bytes", f.minLen)
		return
	}
	if f.enum != nil && !slices.Contains(f.enum, s) {
		w.report("", "must be one of %s", strings.Join(f.enum, ", "))
		return
	}
	if msg := checkFormat(f.format, s); msg != "" {
		w.report("", msg)
	}
}

func (w *walker) json(f *field, b []byte) {
	switch {
	case len(b) == 0:
		if f.required {
			w.report("", "is required")
		}
	case len(b) > f.maxLen:
		w.report("", "must be at most %d bytes", f.maxLen)
	default:
		if msg := checkJSON(b); msg != "" {
			w.report("", msg)
		} else if f.format == formatObject && bytes.TrimLeft(b, " \t\r\n")[0] != '{' {
			w.report("", "must be an object")
		}
	}
}

// optional says that a zero means absent.
func (f *field) optional() bool { return !f.required && !f.hasDefault }
