package jsontree

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Pick reads the scalars at the pointers out of a text without building a tree.
// The result is parallel to pointers; Absent stands for what is not there or no
// scalar.
func Pick(text []byte, pointers []Pointer) ([]Scalar, error) {
	out := make([]Scalar, len(pointers))
	p := picker{jsontext.NewDecoder(bytes.NewBuffer(text), lenient...), pointers, out, len(pointers)}
	active := make([]int, len(pointers))
	for i := range active {
		active[i] = i
	}
	return out, p.walk(active, 0)
}

type picker struct {
	dec      *jsontext.Decoder
	pointers []Pointer
	out      []Scalar
	open     int // pointers whose place has not been reached; at 0 reading stops
}

// walk reads one value, which the active pointers have followed for level
// tokens.
func (p *picker) walk(active []int, level int) error {
	var deeper []int
	for _, i := range active {
		if len(p.pointers[i]) > level {
			deeper = append(deeper, i)
		} else {
			p.open--
		}
	}
	kind := Kind(p.dec.PeekKind())
	if kind != Object && kind != Array {
		v, err := p.dec.ReadValue()
		if err != nil {
			return err
		}
		for _, i := range active {
			if len(p.pointers[i]) == level {
				p.out[i] = ScalarOf(v)
			}
		}
		return nil
	}
	switch {
	case p.open == 0:
		return nil // nothing more is wanted, whatever follows
	case len(deeper) == 0:
		return p.dec.SkipValue()
	}
	return p.children(kind, deeper, level)
}

// children reads an object or array and follows the pointers that lead into it.
func (p *picker) children(kind Kind, deeper []int, level int) error {
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	end := jsontext.Kind(kind) + 2
	for n := 0; p.open > 0 && p.dec.PeekKind() != end; n++ {
		name := ""
		if kind == Object {
			t, err := p.dec.ReadToken()
			if err != nil {
				return err
			}
			name = t.String()
		}
		var into []int
		for _, i := range deeper {
			token := p.pointers[i][level]
			at, ok := index(token, n+1)
			if kind == Object && token == name || kind == Array && ok && at == n {
				into = append(into, i)
			}
		}
		var err error
		if into == nil {
			err = p.dec.SkipValue()
		} else {
			err = p.walk(into, level+1)
		}
		if err != nil {
			return err
		}
	}
	if p.open == 0 {
		return nil
	}
	_, err := p.dec.ReadToken()
	return err
}
