package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/jsontree"
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	root  *jsonschema.Schema
	cost  [maxDepth + 1]weight // of checking documents of that many levels, a value and a byte
	names map[string]bool      // every name and text of the schema: these may be told
}

const (
	// maxValues bounds the values of one schema.
	maxValues = 4_096
	// maxPatternBytes and maxPatternSteps bound one regular expression: its text
	// and its compiled form.
	maxPatternBytes = 4_096
	maxPatternSteps = 2_000
)

// location is where the schema stands for the library; nothing is loaded from it.
const location = "https://schema.invalid/collection"

// Compile reads a JSON Schema: drafts 4, 6, 7, 2019-09 and 2020-12, the last one
// when it names none. References stay within the schema. Errors: Validation with
// reason invalid_schema or schema_too_costly; the text is equal on every
// replica.
func Compile(text []byte) (*Schema, error) {
	tree, err := jsontree.Parse(text)
	if err != nil {
		return nil, invalid("it is not valid JSON")
	}
	s := &Schema{names: map[string]bool{}}
	values := 0
	if err := s.learn(tree, &values); err != nil {
		return nil, err
	}
	if s.root, err = compile(plain(tree)); err != nil {
		return nil, explain(tree)
	}
	if err := s.weigh(); err != nil {
		return nil, err
	}
	return s, nil
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(fault.Validation, "invalid_schema", "the collection's JSON Schema cannot be used: "+format, args...)
}

// learn notes the schema's names and refuses what would make the library slow.
func (s *Schema) learn(n *jsontree.Node, values *int) error {
	if *values++; *values > maxValues {
		return invalid("it has more than %d values", maxValues).With("maxValues", "%d", maxValues)
	}
	switch n.Kind {
	case jsontree.Number:
		if !small(n.Raw) {
			return invalid("a number in it has more than %d characters or a decimal exponent beyond ±%d", maxNumberBytes, maxExponent)
		}
	case jsontree.Text:
		text, _ := jsontree.ScalarOf(n.Raw).Text()
		s.names[text] = true
	}
	for i := range n.Children {
		s.names[n.Children[i].Name] = true
		if err := s.learn(&n.Children[i], values); err != nil {
			return err
		}
	}
	return nil
}

// compile runs the library. Its errors depend on the order of maps, so no caller
// may show them.
func compile(doc any) (root *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, fmt.Errorf("the schema library failed: %v", p)
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)
	if err := c.AddResource(location, doc); err != nil {
		return nil, err
	}
	return c.Compile(location)
}

// noLoader refuses to load anything.
type noLoader struct{}

var errRemote = errors.New("a schema refers to nothing outside itself")

func (noLoader) Load(string) (any, error) { return nil, errRemote }

// pattern is a regular expression and the size of its compiled form.
type pattern struct {
	*regexp.Regexp
	steps int
}

var errPattern = errors.New("a regular expression is too large")

// compilePattern accepts RE2 expressions, which match in time proportional to
// size × text.
func compilePattern(s string) (jsonschema.Regexp, error) {
	if len(s) > maxPatternBytes {
		return nil, errPattern
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxPatternSteps {
		return nil, errPattern
	}
	re, err := regexp.Compile(s)
	return &pattern{re, len(prog.Inst)}, err
}

// explain says why a schema does not compile, from the schema's text alone and
// in its order.
func explain(tree *jsontree.Node) error {
	var causes []string
	var walk func(n *jsontree.Node)
	walk = func(n *jsontree.Node) {
		for i := range n.Children {
			c := &n.Children[i]
			if text, ok := jsontree.ScalarOf(c.Raw).Text(); ok && n.Kind == jsontree.Object && len(causes) < 4 {
				causes = append(causes, suspect(c.Name, text)...)
			}
			walk(c)
		}
	}
	walk(tree)
	if causes == nil {
		causes = []string{"a keyword has a value the draft does not allow, or a reference leads nowhere"}
	}
	return invalid("%s", strings.Join(causes, "; "))
}

func suspect(keyword, text string) []string {
	told := shorten(text, maxTold)
	switch keyword {
	case "$ref", "$dynamicRef", "$recursiveRef":
		if !strings.HasPrefix(text, "#") {
			return []string{fmt.Sprintf("%s %q may lead outside the schema; only references within it (#…) are followed", keyword, told)}
		}
	case "$schema":
		if !strings.Contains(text, "json-schema.org/") {
			return []string{fmt.Sprintf("$schema %q is not a known draft", told)}
		}
	case "pattern":
		if _, err := compilePattern(text); err != nil {
			return []string{fmt.Sprintf("the pattern %q is no RE2 expression of at most %d steps", told, maxPatternSteps)}
		}
	}
	return nil
}

// maxCached bounds a cache; at the bound it is emptied, which costs time and
// changes no answer.
const maxCached = 256

// Cache keeps compiled schemas by their text, so each is compiled once however
// many documents it checks. It is safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	byText map[string]*Schema
}

// Get is Compile, remembered.
func (c *Cache) Get(text []byte) (*Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.byText[string(text)]; s != nil {
		return s, nil
	}
	s, err := Compile(text)
	if err != nil {
		return nil, err
	}
	if len(c.byText) >= maxCached || c.byText == nil {
		c.byText = map[string]*Schema{}
	}
	c.byText[string(text)] = s
	return s, nil
}
