package lineage

import (
	"slices"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Ended is an incarnation that a restore ended, as one shard knows it.
type Ended struct {
	Shard       uint16
	Last        uint64 // the last position of the shard that belongs to it
	Incarnation [16]byte
	At          int64 // logged time of the restore, milliseconds
}

// maxEnded bounds what a shard remembers. Positions of histories before those
// belong to the oldest one remembered, which is over all the same.
const maxEnded = 1_000

// record is what a shard knows of its past, the oldest history first.
type record struct {
	Ended []history `cbor:"1,keyasint"`
}

type history struct {
	Last        uint64   `cbor:"1,keyasint"`
	Incarnation [16]byte `cbor:"2,keyasint"`
	At          int64    `cbor:"3,keyasint"`
}

// records has one row a shard, and none in a store that was never restored.
var records = table.Table[uint16, record]{
	ID: table.Lineage, Name: "lineage", Hot: true,
	Key:      func(dst []byte, shard uint16) []byte { return codec.AppendUint16(dst, shard) },
	ParseKey: func(r *codec.KeyReader) uint16 { return r.Uint16() },
	Encode:   table.EncodeCBOR[record], Decode: table.DecodeCBOR[record],
}

// Tables are the tables this package owns.
func Tables() []table.Info { return []table.Info{records.Info()} }

// End notes that the history which committed everything up to c's position,
// that command included, is over.
func End(c *op.Ctx) error {
	r, _, err := records.Get(c.Tx, c.Space.Shard)
	if err != nil {
		return err
	}
	kept := r.Ended[max(0, len(r.Ended)+1-maxEnded):]
	records.Put(c.Tx, c.Space.Shard, &record{append(slices.Clone(kept), history{c.Position, c.Incarnation, c.Now})})
	return nil
}

// Of is the history that a position of a shard belongs to; false when it is the
// present one. It costs one hot read.
func Of(r kv.Reader, shard uint16, position uint64) (Ended, bool, error) {
	past, err := records.Shared(r, shard)
	if err != nil || past == nil {
		return Ended{}, false, err
	}
	for _, h := range past.Ended {
		if position <= h.Last {
			return Ended{shard, h.Last, h.Incarnation, h.At}, true, nil
		}
	}
	return Ended{}, false, nil
}

// Latest lists the histories of a shard before the present one, the last to end
// first, at most limit of them.
func Latest(r kv.Reader, shard uint16, limit int) (out []Ended, err error) {
	past, err := records.Shared(r, shard)
	if err != nil || past == nil {
		return nil, err
	}
	for i := len(past.Ended) - 1; i >= 0 && len(out) < limit; i-- {
		h := past.Ended[i]
		out = append(out, Ended{shard, h.Last, h.Incarnation, h.At})
	}
	return out, nil
}
