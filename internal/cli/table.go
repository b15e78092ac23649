package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// shortCell is how many characters of a JSON value a table on a terminal shows.
const shortCell = 60

// A printer writes responses for people: names as in the JSON form, empty
// fields left out.
type printer struct {
	w        io.Writer
	terminal bool // shorten long cells
	name     typedName
	subject  subject // what the response answers
	position uint64  // that the response is about; 0 when it is about none
}

// print writes any response.
func (p *printer) print(response any) error {
	v := reflect.ValueOf(response).Elem()
	var b bytes.Buffer
	p.position, _ = fieldOf[uint64](response, "Position")
	p.structure(&b, "", only(v))
	if f := v.FieldByName("Receipt"); f.IsValid() && f.Type() == reflect.TypeFor[api.Receipt]() {
		x := itemsOf(response)
		b.WriteString(receiptLine(f.Interface().(api.Receipt), x) + p.name.in(x.advice(p.subject)))
	}
	_, err := p.w.Write(b.Bytes())
	return err
}

// only is the one structure of a response that has nothing else to say, such as
// the document of documents.get; otherwise the response itself. That nothing
// changed is something to say.
func only(v reflect.Value) reflect.Value {
	var found []reflect.Value
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Type() == reflect.TypeFor[api.Receipt]() || f.IsZero() && f.Kind() == reflect.Bool && v.Type().Field(i).Name != "Changed" {
			continue
		}
		found = append(found, f)
	}
	if len(found) == 1 && found[0].Kind() == reflect.Struct {
		return found[0]
	}
	return v
}

// structure writes the fields of one structure: first the plain ones side by
// side with their names, then the nested ones under headings.
func (p *printer) structure(b *bytes.Buffer, indent string, v reflect.Value) {
	var plain [][2]string
	var nested []func()
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if name == "-" || f.IsZero() && strings.Contains(options, "omit") || f.Type() == reflect.TypeFor[api.Receipt]() {
			continue
		}
		if s, ok := p.cell(f); ok {
			if name == "changedBy" {
				s = p.name.in(p.subject.runnable(s, p.position))
			}
			plain = append(plain, [2]string{name, s})
			continue
		}
		nested = append(nested, func() { p.nested(b, indent, name, f) })
	}
	width := 0
	for _, row := range plain {
		width = max(width, len(row[0]))
	}
	for _, row := range plain {
		value := strings.ReplaceAll(row[1], "\n", "\n"+indent+strings.Repeat(" ", width+2))
		fmt.Fprintf(b, "%s%-*s  %s\n", indent, width, row[0], value)
	}
	for _, write := range nested {
		write()
	}
}

// nested writes a structure or a list of structures under a heading.
func (p *printer) nested(b *bytes.Buffer, indent, name string, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		fmt.Fprintf(b, "%s%s\n", indent, name)
		p.structure(b, indent+"  ", v)
		return
	}
	if v.Len() == 0 {
		fmt.Fprintf(b, "%s%s: none\n", indent, name)
		return
	}
	more := ""
	if columnsOf(v.Type().Elem()) != nil {
		more = " (--json shows every field)"
	}
	fmt.Fprintf(b, "%s%s: %d%s\n", indent, name, v.Len(), more)
	if hasTokens(v) {
		for i := range v.Len() {
			p.structure(b, indent+"  ", v.Index(i))
			if i < v.Len()-1 {
				b.WriteByte('\n')
			}
		}
		return
	}
	p.table(b, indent+"  ", v)
}

// hasTokens says that elements hold tokens, which are too long for a column and
// must not be shortened.
func hasTokens(list reflect.Value) bool {
	f, ok := list.Type().Elem().FieldByName("Token")
	if !ok || f.Type.Kind() != reflect.String {
		return false
	}
	for i := range list.Len() {
		if !list.Index(i).FieldByIndex(f.Index).IsZero() {
			return true
		}
	}
	return false
}

// plainStyle is columns with two spaces between them and nothing else.
func plainStyle() table.Style {
	s := table.StyleDefault
	s.Options = table.OptionsNoBordersAndSeparators
	s.Format = table.FormatOptions{Header: text.FormatDefault, Row: text.FormatDefault}
	s.Box.PaddingLeft, s.Box.PaddingRight = "", "  "
	return s
}

// cell is a value in one piece, indented where it is long; false for a
// structure or a list of structures.
func (p *printer) cell(v reflect.Value) (string, bool) {
	if j, ok := v.Interface().(api.JSON); ok {
		return pretty(j), true
	}
	if v.Kind() == reflect.Pointer && v.Type() != reflect.TypeFor[*fault.Error]() {
		if v.IsNil() {
			return "", true
		}
		return p.cell(v.Elem())
	}
	if s, ok := single(v); ok {
		return s, true
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct || v.Kind() == reflect.Struct {
		return "", false
	}
	return fmt.Sprint(v.Interface()), true
}

// inCell is a value on one line. Structures are written as JSON.
func (p *printer) inCell(v reflect.Value) string {
	s, ok := single(v)
	if !ok {
		b, err := json.Marshal(v.Interface())
		if err != nil {
			return err.Error()
		}
		s = string(b)
	}
	s = strings.Join(strings.Fields(s), " ")
	if _, refusal := v.Interface().(*fault.Error); p.terminal && !refusal && utf8.RuneCountInString(s) > shortCell {
		s = string([]rune(s)[:shortCell-1]) + "…"
	}
	return s
}

// single is the text of a value that is no structure and no list of them.
func single(v reflect.Value) (string, bool) {
	switch x := v.Interface().(type) {
	case api.JSON:
		return string(x), true
	case api.Examined:
		return fmt.Sprintf("%d records, %d bytes", x.Records, x.Bytes), true
	case api.ReceiveExamined:
		return fmt.Sprintf("%d ready, %d expired, %d scheduled", x.Ready, x.Expired, x.Scheduled), true
	case api.PartitionRef:
		return x.String(), true
	case *fault.Error:
		return string(x.Code) + ": " + x.Detail, true
	case []byte:
		return base64.StdEncoding.EncodeToString(x), true
	case map[string]string:
		return pairs(x), true
	case fmt.Stringer:
		return x.String(), true
	}
	switch {
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = v.Index(i).String()
		}
		return strings.Join(parts, ", "), true
	case v.Kind() == reflect.Pointer, v.Kind() == reflect.Struct, v.Kind() == reflect.Slice:
		return "", false
	}
	return fmt.Sprint(v.Interface()), true
}

// pairs writes a map in the order of its names.
func pairs(m map[string]string) string {
	out := make([]string, 0, len(m))
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// pretty leaves a short value on its line and indents a long one.
func pretty(j api.JSON) string {
	if len(j) <= shortCell {
		return string(j)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, j, "", "  "); err != nil {
		return string(j)
	}
	return b.String()
}
