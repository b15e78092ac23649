package source

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// markers pin sources as groups do: a row for each holder says how far it is.
var markers = table.Table[marker, uint64]{
	ID: 250, Name: "marker",
	Key:      func(dst []byte, m marker) []byte { return codec.AppendText(m.Source.Append(dst), m.Holder) },
	ParseKey: func(r *codec.KeyReader) marker { return marker{ReadKey(r), r.Text()} },
	Encode:   func(dst []byte, v *uint64) []byte { return codec.AppendUvarint(dst, *v) },
	Decode: func(b []byte, v *uint64) error {
		r := codec.NewReader(b)
		*v = r.Uvarint()
		return r.End()
	},
}

type marker struct {
	Source Key
	Holder string
}

func markerResource() op.Resource {
	return op.Resource{
		Name:   "marker",
		Tables: []table.Info{markers.Info()},
		Pins: func(s *op.Scope, source []byte, visit func(op.Pin) (bool, error)) error {
			return markers.Scan(s.R, table.Range{Prefix: source}, func(m marker, v *uint64) (bool, error) {
				return visit(op.Pin{Holder: m.Holder, Position: *v})
			})
		},
	}
}

// pin sets how far a holder is. A new one, and one that goes back, says so to the
// source.
func (b *bed) pin(k Key, holder string, position uint64) {
	b.t.Helper()
	b.must(b.apply(func(c *op.Ctx) error {
		was, ok, err := markers.Get(c.R, marker{k, holder})
		if err != nil {
			return err
		}
		markers.Put(c.Tx, marker{k, holder}, &position)
		if !ok || position < was {
			return Repin(c, k)
		}
		return nil
	}))
}

func (b *bed) unpin(k Key, holder string) {
	b.t.Helper()
	b.must(b.apply(func(c *op.Ctx) error {
		markers.Delete(c.Tx, marker{k, holder})
		return Repin(c, k)
	}))
}
