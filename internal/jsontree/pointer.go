package jsontree

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Pointer is a JSON pointer (RFC 6901) taken apart: names and indexes from the
// root, unescaped. The empty one is the whole value.
type Pointer []string

// ErrPointer says that a text is no JSON pointer.
var ErrPointer = errors.New("is not a JSON pointer (RFC 6901)")

var unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")

// ParsePointer reads "" or "/name/0/…" with ~1 for '/' and ~0 for '~'.
func ParsePointer(s string) (Pointer, error) {
	if s == "" {
		return Pointer{}, nil
	}
	if s[0] != '/' {
		return nil, ErrPointer
	}
	p := Pointer(strings.Split(s[1:], "/"))
	for i, token := range p {
		if strings.IndexByte(token, '~') < 0 {
			continue
		}
		for j := range len(token) {
			if token[j] == '~' && (j+1 == len(token) || token[j+1] != '0' && token[j+1] != '1') {
				return nil, ErrPointer
			}
		}
		p[i] = unescapeToken.Replace(token)
	}
	return p, nil
}

var escapeToken = strings.NewReplacer("~", "~0", "/", "~1")

// String is the text form.
func (p Pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		b.WriteString(escapeToken.Replace(token))
	}
	return b.String()
}

// Below says whether p is at or below base, and what remains of it below.
func (p Pointer) Below(base Pointer) (rest Pointer, ok bool) {
	if len(p) < len(base) {
		return nil, false
	}
	for i := range base {
		if p[i] != base[i] {
			return nil, false
		}
	}
	return p[len(base):], true
}

// index reads an array index: digits without a leading zero, below n.
func index(token string, n int) (int, bool) {
	if token == "" || len(token) > 9 || token[0] == '0' && len(token) > 1 {
		return 0, false
	}
	for i := range len(token) {
		if token[i] < '0' || token[i] > '9' {
			return 0, false
		}
	}
	i, err := strconv.Atoi(token)
	return i, err == nil && i < n
}

// child finds the place of a member or element, -1 when there is none.
func (n *Node) child(token string) int {
	switch n.Kind {
	case Object:
		for i := range n.Children {
			if n.Children[i].Name == token {
				return i
			}
		}
	case Array:
		if i, ok := index(token, len(n.Children)); ok {
			return i
		}
	}
	return -1
}

// Find returns the value at p within n; nil when there is none. It is a part of
// the tree and valid until the tree is changed.
func (n *Node) Find(p Pointer) *Node {
	for _, token := range p {
		i := n.child(token)
		if i < 0 {
			return nil
		}
		n = &n.Children[i]
	}
	return n
}

// Why a field cannot be set or removed.
var (
	ErrNoField  = errors.New("there is no such field")
	ErrNoParent = errors.New("the object or array that would hold the field does not exist")
	ErrNoPlace  = errors.New("the array has no such place; it is an index of an element, the length, or -")
)

// parent finds what holds, or would hold, the field at p, which is not empty.
func (n *Node) parent(p Pointer) (holder *Node, token string, err error) {
	holder = n.Find(p[:len(p)-1])
	if holder == nil || holder.Kind != Object && holder.Kind != Array {
		return nil, "", ErrNoParent
	}
	return holder, p[len(p)-1], nil
}

// Set stores a value at p, which is not empty: an existing field is replaced
// where it stands; a new member goes to the end of its object; in an array the
// index that is its length, and "-", append. Errors: ErrNoParent, ErrNoPlace.
func (n *Node) Set(p Pointer, value *Node) error {
	holder, token, err := n.parent(p)
	if err != nil {
		return err
	}
	v := *value
	if i := holder.child(token); i >= 0 {
		v.Name, v.rawName = holder.Children[i].Name, holder.Children[i].rawName
		holder.Children[i] = v
		return nil
	}
	switch {
	case holder.Kind == Object:
		raw, err := jsontext.AppendQuote(nil, token)
		if err != nil {
			return ErrPointer // invalid UTF-8
		}
		v.Name, v.rawName = token, raw
	case token != "-" && token != strconv.Itoa(len(holder.Children)):
		return ErrNoPlace
	}
	holder.Children = append(holder.Children, v)
	return nil
}

// Delete removes the field at p, which is not empty; elements after it move up.
// Errors: ErrNoParent, ErrNoField.
func (n *Node) Delete(p Pointer) error {
	holder, token, err := n.parent(p)
	if err != nil {
		return err
	}
	i := holder.child(token)
	if i < 0 {
		return ErrNoField
	}
	holder.Children = append(holder.Children[:i:i], holder.Children[i+1:]...)
	return nil
}
