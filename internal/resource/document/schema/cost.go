package schema

import (
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
)

// The state machine checks documents on its one goroutine, so what a check may
// cost is bounded beforehand: a few references that lead to each other can ask
// for 2^32 evaluations. The bound is computed from the schema and the size of
// the document; it never depends on how the library happens to go about it.

const (
	// maxDepth is the most levels of a document: limits.JSONDepth of objects and
	// arrays, and the scalars in the innermost.
	maxDepth = limits.JSONDepth
	// maxWeight bounds a schema: rules one value may meet, summed over depths.
	maxWeight = 10_000
	// maxWork bounds one check, in evaluated rules.
	maxWork = 2_000_000
	// stepsPerRule is how many steps of an expression over one byte cost about
	// as much as one rule.
	stepsPerRule = 32
)

// weight is what one value costs at most: rules evaluated, and steps of regular
// expressions for each byte.
type weight struct{ rules, steps int64 }

const saturated = 1 << 40

func (w weight) plus(o weight) weight {
	return weight{min(w.rules+o.rules, saturated), min(w.steps+o.steps, saturated)}
}

func (w weight) or(o weight) weight { return weight{max(w.rules, o.rules), max(w.steps, o.steps)} }

// weigh fills the costs and refuses schemas whose cost has no useful bound.
func (s *Schema) weigh() error {
	w := weigher{seen: map[at]weight{}, open: map[*jsonschema.Schema]bool{}}
	var sum weight
	for depth := range s.cost {
		sum = sum.plus(w.of(s.root, depth))
		s.cost[depth] = sum
	}
	switch {
	case w.circular:
		return invalid("a schema in it refers to itself for the same value, so it can never be decided")
	case w.dynamic:
		return invalid("$dynamicRef and $recursiveRef are not supported; use $ref")
	case sum.rules > maxWeight || sum.steps > maxWeight*stepsPerRule:
		return fault.New(fault.Validation, "schema_too_costly",
			"the collection's JSON Schema may apply more than %d rules or %d steps of regular expressions to one value; use fewer alternatives that refer to each other, and smaller expressions",
			maxWeight, maxWeight*stepsPerRule)
	}
	return nil
}

// at is a schema and how many levels below the value it applies to one looks.
type at struct {
	schema *jsonschema.Schema
	below  int
}

type weigher struct {
	seen              map[at]weight
	open              map[*jsonschema.Schema]bool // being weighed for the same value
	circular, dynamic bool
}

// of is the most that one value, so many levels below where s applies, costs.
func (w *weigher) of(s *jsonschema.Schema, below int) weight {
	if s == nil || below < 0 {
		return weight{}
	}
	if known, ok := w.seen[at{s, below}]; ok {
		return known
	}
	if w.open[s] {
		w.circular = true
		return weight{}
	}
	w.dynamic = w.dynamic || s.DynamicRef != nil || s.RecursiveRef != nil
	var sum weight
	if below == 0 {
		sum = own(s)
	}
	w.open[s] = true
	for _, o := range inPlace(s) {
		sum = sum.plus(w.of(o, below))
	}
	delete(w.open, s)
	if below > 0 {
		// One level down it is another value, so the schemas above may come again.
		outer := w.open
		w.open = map[*jsonschema.Schema]bool{}
		sum = sum.plus(w.member(s, below-1).or(w.element(s, below-1)))
		w.open = outer
	}
	w.seen[at{s, below}] = sum
	return sum
}

// own is what the keywords of s itself cost.
func own(s *jsonschema.Schema) weight {
	w := weight{rules: 1 + int64(len(s.Required))}
	if s.Enum != nil {
		w.rules += size(s.Enum.Values)
	}
	if s.Const != nil {
		w.rules += size(*s.Const)
	}
	if s.UniqueItems {
		w.rules += 20 // each element is compared with up to 20 others
	}
	//keyload:sorted a sum has no order
	for _, names := range s.DependentRequired {
		w.rules += 1 + int64(len(names))
	}
	if p, ok := s.Pattern.(*pattern); ok {
		w.steps += int64(p.steps)
	}
	return w
}

// size counts the values of a JSON value.
func size(v any) int64 {
	n := int64(1)
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += size(e)
		}
	case map[string]any:
		//keyload:sorted a sum has no order
		for _, e := range v {
			n += size(e)
		}
	}
	return n
}

// inPlace lists the schemas that apply to the same value as s.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	out = append(append(append(out, s.AllOf...), s.AnyOf...), s.OneOf...)
	//keyload:sorted the weights are summed
	for _, o := range s.DependentSchemas {
		out = append(out, o)
	}
	//keyload:sorted the weights are summed
	for _, d := range s.Dependencies {
		if o, ok := d.(*jsonschema.Schema); ok {
			out = append(out, o)
		}
	}
	return out
}

// member is the most that s costs below one member of an object: a name matches
// at most one property, but any number of patterns.
func (w *weigher) member(s *jsonschema.Schema, below int) weight {
	var named, patterns weight
	//keyload:sorted a maximum has no order
	for _, o := range s.Properties {
		named = named.or(w.of(o, below))
	}
	//keyload:sorted a sum has no order
	for re, o := range s.PatternProperties {
		patterns = patterns.plus(w.of(o, below))
		if p, ok := re.(*pattern); ok && below == 0 {
			patterns = patterns.plus(weight{1, int64(p.steps)})
		}
	}
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	sum := named.plus(patterns).or(patterns.plus(w.of(additional, below)))
	if below == 0 {
		sum = sum.plus(w.of(s.PropertyNames, 0))
	}
	return sum.plus(w.of(s.UnevaluatedProperties, below))
}

// element is the most that s costs below one element of an array.
func (w *weigher) element(s *jsonschema.Schema, below int) weight {
	var placed weight
	for _, o := range s.PrefixItems {
		placed = placed.or(w.of(o, below))
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		placed = placed.or(w.of(items, below))
	case []*jsonschema.Schema:
		for _, o := range items {
			placed = placed.or(w.of(o, below))
		}
	}
	additional, _ := s.AdditionalItems.(*jsonschema.Schema)
	placed = placed.or(w.of(s.Items2020, below)).or(w.of(additional, below))
	return placed.plus(w.of(s.Contains, below)).plus(w.of(s.UnevaluatedItems, below))
}
