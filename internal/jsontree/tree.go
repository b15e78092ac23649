package jsontree

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind is the kind of a JSON value, named by the first byte of its text. The
// zero Kind is no value.
type Kind byte

// The kinds.
const (
	Null   Kind = 'n'
	False  Kind = 'f'
	True   Kind = 't'
	Number Kind = '0'
	Text   Kind = '"'
	Array  Kind = '['
	Object Kind = '{'
)

// Node is one value of a tree.
type Node struct {
	Kind     Kind
	Raw      []byte // a scalar as it was written; aliases the parsed text
	Name     string // of a member of an object, unescaped
	Children []Node // members or elements, in order

	rawName []byte // of a member, as it was written, with its quotes
	gone    bool   // marked by Remove
}

// lenient reads text that was validated when it came in, so nothing is checked
// twice.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// Parse reads one value. The tree aliases text, which must not be changed.
func Parse(text []byte) (*Node, error) {
	p := parser{text, jsontext.NewDecoder(bytes.NewBuffer(text), lenient...)}
	n := new(Node)
	return n, p.value(n)
}

type parser struct {
	text []byte
	dec  *jsontext.Decoder
}

// raw reads a scalar or a name and returns its bytes within the text.
func (p *parser) raw() ([]byte, error) {
	v, err := p.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(p.dec.InputOffset())
	return p.text[end-len(v) : end : end], nil
}

func (p *parser) value(n *Node) (err error) {
	n.Kind = Kind(p.dec.PeekKind())
	if n.Kind != Object && n.Kind != Array {
		n.Raw, err = p.raw()
		return err
	}
	end := jsontext.Kind(n.Kind) + 2 // '{' to '}', '[' to ']'
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	for p.dec.PeekKind() != end {
		var child Node
		if n.Kind == Object {
			if child.rawName, err = p.raw(); err != nil {
				return err
			}
			child.Name = unquote(child.rawName)
		}
		if err := p.value(&child); err != nil {
			return err
		}
		n.Children = append(n.Children, child)
	}
	_, err = p.dec.ReadToken()
	return err
}

// unquote is the text a JSON string stands for.
func unquote(raw []byte) string {
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	b, _ := jsontext.AppendUnquote(nil, raw) // a fault would be invalid UTF-8, which was refused
	return string(b)
}

// Append appends the value as text without white space between tokens.
func (n *Node) Append(dst []byte) []byte {
	if n.Kind != Object && n.Kind != Array {
		return append(dst, n.Raw...)
	}
	dst = append(dst, byte(n.Kind))
	first := true
	for i := range n.Children {
		c := &n.Children[i]
		if c.gone {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if n.Kind == Object {
			dst = append(append(dst, c.rawName...), ':')
		}
		dst = c.Append(dst)
	}
	return append(dst, byte(n.Kind)+2)
}

// Depth is the most levels of objects and arrays: 0 for a scalar, 1 for {}.
func (n *Node) Depth() int {
	if n.Kind != Object && n.Kind != Array {
		return 0
	}
	d := 0
	for i := range n.Children {
		d = max(d, n.Children[i].Depth())
	}
	return d + 1
}

// Compact is text without white space between tokens; text itself when it has
// none. Names, texts and numbers keep their spelling.
func Compact(text []byte) ([]byte, error) {
	if !bytes.ContainsAny(text, " \t\r\n") {
		return text, nil
	}
	n, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return n.Append(make([]byte, 0, len(text))), nil
}
