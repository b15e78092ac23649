package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/jsontree"
	"github.com/keyload/keyload/internal/limits"
)

const (
	// maxNumberBytes and maxExponent bound the numbers of documents that are
	// checked: the library computes with fractions of that many digits.
	maxNumberBytes = 1_024
	maxExponent    = 1_024
	// maxTold bounds what a message repeats of a schema, in bytes.
	maxTold = 256
)

// small says whether a number is within both bounds.
func small(raw []byte) bool {
	if len(raw) > maxNumberBytes {
		return false
	}
	_, e := cutExponent(raw)
	return e >= -maxExponent && e <= maxExponent
}

// cutExponent splits a number; an exponent that is far too large is 1<<31.
func cutExponent(raw []byte) (mantissa []byte, exponent int) {
	i := bytes.IndexAny(raw, "eE")
	if i < 0 {
		return raw, 0
	}
	e, err := strconv.Atoi(string(raw[i+1:]))
	if err != nil {
		e = 1 << 31
	}
	return raw[:i], e
}

// plain is the value as the library wants it, numbers in their own spelling.
func plain(n *jsontree.Node) any {
	switch n.Kind {
	case jsontree.Null:
		return nil
	case jsontree.True, jsontree.False:
		return n.Kind == jsontree.True
	case jsontree.Number:
		return json.Number(n.Raw)
	case jsontree.Text:
		text, _ := jsontree.ScalarOf(n.Raw).Text()
		return text
	case jsontree.Array:
		out := make([]any, len(n.Children))
		for i := range n.Children {
			out[i] = plain(&n.Children[i])
		}
		return out
	default:
		out := make(map[string]any, len(n.Children))
		for i := range n.Children {
			out[n.Children[i].Name] = plain(&n.Children[i])
		}
		return out
	}
}

// Check answers the violations of a document, at most limits.Violations, in an
// order of their own; size is the document's length in bytes; paths are JSON pointers into the document, with * for
// names the schema does not mention. A document whose check would cost too much,
// or with a number the library cannot hold, is refused with a Validation error.
func (s *Schema) Check(doc *jsontree.Node, size int) (found []fault.Violation, err error) {
	units, ok := measure(doc)
	if !ok {
		return nil, fault.New(fault.Validation, "number_too_large",
			"a number of the document has more than %d characters or a decimal exponent beyond ±%d, which a collection with a JSON Schema does not take", maxNumberBytes, maxExponent)
	}
	w := s.cost[min(doc.Depth(), maxDepth)]
	if work := w.rules*units + w.steps*int64(size)/stepsPerRule; work > maxWork {
		return nil, fault.New(fault.Validation, "schema_too_costly",
			"checking this document against the collection's JSON Schema may take %d steps, more than %d; store smaller documents or use a simpler schema", work, maxWork).
			With("maxWork", "%d", maxWork)
	}
	return s.validate(doc)
}

func (s *Schema) validate(doc *jsontree.Node) (found []fault.Violation, err error) {
	defer func() {
		if p := recover(); p != nil {
			// A refusal, not a stop: no document may bring the shard down.
			found, err = nil, fault.New(fault.Validation, "schema_failed", "the document cannot be checked against the collection's JSON Schema")
		}
	}()
	var failed *jsonschema.ValidationError
	if err := s.root.Validate(plain(doc)); err == nil {
		return nil, nil
	} else if !errors.As(err, &failed) {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s.collect(failed, doc, &found)
	slices.SortFunc(found, func(a, b fault.Violation) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	found = slices.Compact(found)
	return found[:min(len(found), limits.Violations)], nil
}

// measure counts values, large numbers as several; false when a number is too
// large to be checked.
func measure(n *jsontree.Node) (units int64, ok bool) {
	units = 1
	if n.Kind == jsontree.Number {
		if !small(n.Raw) {
			return 0, false
		}
		mantissa, e := cutExponent(n.Raw)
		return units + int64(len(mantissa)+max(e, -e))/16, true
	}
	for i := range n.Children {
		u, ok := measure(&n.Children[i])
		if !ok {
			return 0, false
		}
		units += u
	}
	return units, true
}

// collect gathers the innermost errors that a person can act on. Alternatives
// are told as one: which of them was meant is not known.
func (s *Schema) collect(e *jsonschema.ValidationError, doc *jsontree.Node, found *[]fault.Violation) {
	switch e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, c := range e.Causes {
			s.collect(c, doc, found)
		}
	case *kind.PropertyNames, *kind.ContentSchema:
		// The library's place of these is not reliable.
		*found = append(*found, fault.Violation{Message: s.message(e)})
	default:
		*found = append(*found, fault.Violation{Path: s.visible(e.InstanceLocation, doc), Message: s.message(e)})
	}
}

// visible is the place in the document. Names that stand only in the document
// are its content and are not told.
func (s *Schema) visible(tokens []string, n *jsontree.Node) string {
	out := make(jsontree.Pointer, len(tokens))
	for i, token := range tokens {
		out[i] = token
		if n != nil && n.Kind == jsontree.Object && !s.names[token] {
			out[i] = "*"
		}
		if n != nil {
			n = n.Find(jsontree.Pointer{token})
		}
	}
	return shorten(out.String(), limits.PointerBytes)
}

// shorten cuts a text at a character.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

func (s *Schema) message(e *jsonschema.ValidationError) string {
	place := shorten(strings.TrimPrefix(e.SchemaURL, location), maxTold)
	switch k := e.ErrorKind.(type) {
	case nil:
		return "does not satisfy the schema at " + place
	case *kind.Type:
		return "must be of type " + strings.Join(k.Want, " or ")
	case *kind.Required:
		return "must have " + strings.Join(quoted(k.Missing), ", ")
	case *kind.AdditionalProperties:
		return "has a field that the schema does not allow"
	case *kind.FalseSchema:
		return "is not allowed by the schema at " + place
	case *kind.Not:
		return "does not satisfy not of the schema at " + place
	default:
		keyword := "a rule"
		if path := k.KeywordPath(); len(path) > 0 {
			keyword = path[0]
		}
		return "does not satisfy " + keyword + " of the schema at " + place
	}
}

func quoted(names []string) []string {
	out := make([]string, min(len(names), 8))
	for i := range out {
		out[i] = strconv.Quote(shorten(names[i], maxTold/4))
	}
	return out
}
