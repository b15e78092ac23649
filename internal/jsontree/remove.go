package jsontree

import (
	"bytes"
)

// Remove takes the fields at the pointers out of a value. Every pointer is read
// against the value as it was, so an element that goes does not move the others
// before they are found. found holds the pointers that were there, in the order
// given; when none was, text itself is returned. Removing the root leaves null.
func Remove(text []byte, pointers []string) (out []byte, found []string, err error) {
	if !mayHold(text, pointers) {
		return text, nil, nil
	}
	root, err := Parse(text)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range pointers {
		p, err := ParsePointer(s)
		if err != nil {
			return nil, nil, err
		}
		if n := root.Find(p); n != nil {
			n.gone = true
			found = append(found, s)
		}
	}
	switch {
	case found == nil:
		return text, nil, nil
	case root.gone:
		return []byte("null"), found, nil
	}
	return root.Append(make([]byte, 0, len(text))), found, nil
}

// mayHold is false when none of the pointers can be in the text: then it need
// not be parsed. A pointer into a container cannot be in a scalar.
func mayHold(text []byte, pointers []string) bool {
	kind := bytes.TrimLeft(text, " \t\r\n")
	container := len(kind) > 0 && (kind[0] == '{' || kind[0] == '[')
	for _, p := range pointers {
		if container || p == "" || p[0] != '/' {
			return true
		}
	}
	return false
}
