package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/keyload/keyload/internal/wire"
)

// width is how long a line of an answer may be before it is broken.
const width = 170

// node is a JSON value with its members in the order they were written.
type node struct {
	text    string // of a scalar, as JSON
	open    byte   // '{' or '[' otherwise
	names   []string
	members []*node
}

func (b *bed) parse(d *jsontext.Decoder) *node {
	tok, err := d.ReadToken()
	b.must(err)
	switch k := tok.Kind(); k {
	case '{', '[':
		n := &node{open: byte(k)}
		for d.PeekKind() != '}' && d.PeekKind() != ']' {
			if k == '{' {
				name, err := d.ReadToken()
				b.must(err)
				n.names = append(n.names, name.String())
			}
			n.members = append(n.members, b.parse(d))
		}
		_, err := d.ReadToken()
		b.must(err)
		return n
	case '"':
		return &node{text: strconv.Quote(tok.String())}
	default:
		return &node{text: tok.String()}
	}
}

// objects are the JSON values that follow each other in a text.
func objects(t *testing.T, text string) (out []string) {
	d := jsontext.NewDecoder(strings.NewReader(text))
	for {
		v, err := d.ReadValue()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("the body is not a list of JSON objects: %v", err)
		}
		out = append(out, string(v))
	}
}

// member is the value under a name, nil if there is none.
func (n *node) member(name string) *node {
	for i, m := range n.names {
		if m == name {
			return n.members[i]
		}
	}
	return nil
}

// answer shows a response.
func (b *bed) answer(resp any) string {
	raw, err := wire.EncodeJSON(resp)
	b.must(err)
	n := b.parse(jsontext.NewDecoder(bytes.NewReader(raw)))
	b.naming(n)
	return n.print("")
}

// naming puts names in place of what differs with every change of an encoding.
func (b *bed) naming(n *node) {
	for i, m := range n.members {
		name := ""
		if n.open == '{' {
			name = n.names[i]
		}
		switch {
		case name == "token" && m.open == 0 && n.member("messageId") != nil:
			m.text = strconv.Quote(b.name("token:"+unquote(n.member("messageId").text), unquote(m.text)))
		case name == "token" && m.open == 0 && n.delivered() != nil:
			m.text = strconv.Quote(b.name("token:"+n.delivered().text, unquote(m.text)))
		case name == "cursor" && m.text != `""`:
			m.text = strconv.Quote(b.name("cursor", unquote(m.text)))
		case name == "receipt":
			*m = node{text: position(m.member("token"))}
		case m.member("incarnation") != nil:
			*m = node{text: position(m)}
		case name == "error":
			*m = node{text: strconv.Quote(short(m))}
		case name == "examined" && m.member("bytes") != nil:
			m.names, m.members = m.names[:1], m.members[:1]
		case m.open == 0 && m.text[0] == '"':
			m.text = strconv.Quote(b.readable(unquote(m.text)))
		default:
			b.naming(m)
		}
	}
}

// delivered is the position of a group's delivery, or of what became of one.
func (n *node) delivered() *node {
	if event := n.member("event"); event != nil {
		n = event
	}
	return n.member("position")
}

// short is an error inside an answer; its texts are shown where it is the whole
// answer.
func short(n *node) string {
	out := fmt.Sprintf("%s (%s), retry %s", unquote(n.member("code").text), unquote(n.member("reason").text), unquote(n.member("retry").text))
	if n.member("recorded").text == "true" {
		out += ", recorded"
	}
	return out
}

// position is a commit token as a script shows it.
func position(n *node) string {
	if p := n.member("position").text; p != "0" {
		return `"position ` + p + `"`
	}
	return `"no position"`
}

func unquote(s string) string {
	out, err := strconv.Unquote(s)
	if err != nil {
		return s
	}
	return out
}

var (
	stamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	uuids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// readable puts names in place of instants and command ids inside a text.
func (b *bed) readable(s string) string {
	s = stamps.ReplaceAllStringFunc(s, func(text string) string {
		at, err := time.Parse(time.RFC3339, text)
		b.must(err)
		if !near(at.UnixMilli()) {
			return text
		}
		return when(at.UnixMilli())
	})
	return uuids.ReplaceAllStringFunc(s, func(text string) string {
		if name, ok := b.idText[text]; ok {
			return name
		}
		return text
	})
}

// near says that a number is an instant of a script's time.
func near(millis int64) bool {
	const year = 366 * 24 * 3600 * 1000
	return millis > start-year && millis < start+2*year
}

// when is an instant as scripts write it.
func when(millis int64) string {
	return "t+" + (time.Duration(millis-start) * time.Millisecond).String()
}

// instant reads what when wrote.
func (b *bed) instant(text string) int64 {
	d, err := time.ParseDuration(strings.TrimPrefix(text, "t+"))
	b.must(err)
	return start + d.Milliseconds()
}

// flat is the value on one line.
func (n *node) flat() string {
	if n.open == 0 {
		return n.text
	}
	parts := make([]string, len(n.members))
	for i, m := range n.members {
		if parts[i] = m.flat(); n.open == '{' {
			parts[i] = strconv.Quote(n.names[i]) + ": " + parts[i]
		}
	}
	return string(n.open) + strings.Join(parts, ", ") + string(n.open+2)
}

// print breaks what does not fit on a line.
func (n *node) print(indent string) string {
	if flat := n.flat(); n.open == 0 || len(indent)+len(flat) <= width {
		return flat
	}
	var out strings.Builder
	out.WriteByte(n.open)
	for i, m := range n.members {
		out.WriteString("\n" + indent + "  ")
		if n.open == '{' {
			out.WriteString(strconv.Quote(n.names[i]) + ": ")
		}
		out.WriteString(m.print(indent + "  "))
		if i+1 < len(n.members) {
			out.WriteByte(',')
		}
	}
	return out.String() + "\n" + indent + string(n.open+2)
}
