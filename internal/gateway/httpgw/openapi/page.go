package openapi

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/apischema"
)

//go:embed page.html
var pageText string

// pageTemplate is parsed once; the text is a constant of the program.
var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template shows.
type page struct {
	Version string
	Areas   []area
	Types   []typeRows
	Codes   []codeRow
}

type area struct {
	Name       string
	Operations []operationRows
}

type operationRows struct {
	*api.Operation
	Command      bool
	RequestRows  []row
	ResponseRows []row
}

type typeRows struct {
	Name, About string
	Rows        []row
	Variants    []string // names of the alternatives, for a type that has some
}

// row is one field.
type row struct {
	Name, Type, Link, Bounds, Doc string
	Required                      bool
	Key                           int64
}

type codeRow struct {
	Code   fault.Code
	Status int
	Title  string
	Retry  fault.Retry
}

// Page is the documentation of the operations as one HTML page that needs
// nothing else: no script, no style sheet, no font.
func Page(ops []*api.Operation, version string) ([]byte, error) {
	s := apischema.NewSet(refPrefix)
	data := page{Version: version}
	shown := map[string]bool{}
	for _, o := range ops {
		request, response := s.Of(o.Request), s.Of(o.Response)
		shown[bare(request.Ref)], shown[bare(response.Ref)] = true, true
		if n := len(data.Areas); n == 0 || data.Areas[n-1].Name != o.Area() {
			data.Areas = append(data.Areas, area{Name: o.Area()})
		}
		in := &data.Areas[len(data.Areas)-1]
		in.Operations = append(in.Operations, operationRows{
			Operation: o, Command: o.Writes(),
			RequestRows: rows(s, bare(request.Ref)), ResponseRows: rows(s, bare(response.Ref)),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Named)) {
		if shown[name] {
			continue
		}
		t := typeRows{Name: name, About: s.Named[name].Description, Rows: rows(s, name)}
		for _, v := range s.Named[name].OneOf {
			t.Variants = append(t.Variants, bare(v.Ref))
		}
		data.Types = append(data.Types, t)
	}
	for _, c := range fault.Codes() {
		data.Codes = append(data.Codes, codeRow{c, c.Status(), c.Title(), fault.New(c, "", "").Retry})
	}
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, data)
	return out.Bytes(), err
}

func bare(ref string) string { return strings.TrimPrefix(ref, refPrefix) }

func rows(s *apischema.Set, name string) []row {
	t := s.Named[name]
	var out []row
	for _, p := range t.Properties {
		r := row{Name: p.Name, Doc: p.Schema.Description, Key: p.Schema.CBORKey, Required: slices.Contains(t.Required, p.Name)}
		r.Type, r.Link = typeText(p.Schema)
		r.Bounds = boundsText(p.Schema)
		out = append(out, r)
	}
	return out
}

// typeText is the type in words, and the named type it links to.
func typeText(s *apischema.Schema) (text, link string) {
	switch {
	case s.Ref != "":
		return bare(s.Ref), bare(s.Ref)
	case s.Type == "array":
		text, link = typeText(s.Items)
		return "list of " + text, link
	case s.Type == "object" && s.AdditionalProperties != nil:
		return "object of texts", ""
	case s.Const != "":
		return `"` + s.Const + `"`, ""
	case s.ContentEncoding != "":
		return "bytes in base64", ""
	case s.Format == "date-time":
		return "time", ""
	case s.Format != "" && s.Type == "string":
		return s.Format, ""
	case s.Type == "string":
		return "text", ""
	case s.Type == "":
		return "any JSON value", ""
	default:
		return s.Type, ""
	}
}

func boundsText(s *apischema.Schema) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	one := s
	if s.Items != nil {
		one = s.Items
	}
	if len(one.Enum) > 0 {
		add("one of %s", strings.Join(one.Enum, ", "))
	}
	if s.Minimum != nil && *s.Maximum != math.MaxInt64 {
		add("%d to %d", *s.Minimum, *s.Maximum)
	} else if s.Minimum != nil && *s.Minimum > 0 {
		add("at least %d", *s.Minimum)
	}
	if one.MaxBytes > 0 && one.Format == "" {
		add("at most %d bytes", one.MaxBytes)
	}
	if s.MaxItems > 0 {
		add("%d to %d entries", s.MinItems, s.MaxItems)
	}
	if s.MaxProperties > 0 {
		add("at most %d entries", s.MaxProperties)
	}
	if s.Default != nil {
		add("default %v", s.Default)
	}
	return strings.Join(parts, "; ")
}
