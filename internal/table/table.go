package table

import (
	"fmt"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/wire"
)

// Space is where a row lives: a shard, and a partition within it. The zero
// partition holds the shard's own rows.
type Space struct {
	Shard     uint16
	Partition [16]byte // first half of SHA-256 over the partition's text form
}

// Owner is one resource in one partition: a lane, a source, a collection.
type Owner struct {
	Space
	Resource uint32 // the catalog's number of the resource
}

// OwnerBytes is the length of an Owner in a key.
const OwnerBytes = 2 + 16 + 4

// Append appends the space as key parts.
func (s Space) Append(dst []byte) []byte {
	return append(codec.AppendUint16(dst, s.Shard), s.Partition[:]...)
}

// Append appends the owner as key parts.
func (o Owner) Append(dst []byte) []byte {
	return codec.AppendUint32(o.Space.Append(dst), o.Resource)
}

// ReadSpace reads what Space.Append wrote.
func ReadSpace(r *codec.KeyReader) (s Space) {
	s.Shard = r.Uint16()
	copy(s.Partition[:], r.Bytes(16))
	return s
}

// ReadOwner reads what Owner.Append wrote.
func ReadOwner(r *codec.KeyReader) (o Owner) {
	o.Space = ReadSpace(r)
	o.Resource = r.Uint32()
	return o
}

// Damage says that a row is not what its table fixes. It is never a rejection:
// it stops the shard.
type Damage struct {
	Table string
	Key   []byte
	Cause error
}

func (d *Damage) Error() string {
	return fmt.Sprintf("damaged row in table %s at key %x: %v", d.Table, d.place(), d.Cause)
}

// place is the key, without the fields of documents that the keys of their indexes
// hold: those are somebody's data, and may be protected.
func (d *Damage) place() []byte {
	if len(d.Key) > 1+OwnerBytes && (d.Key[0] == byte(DocumentIndex) || d.Key[0] == byte(DocumentUniq)) {
		return d.Key[:1+OwnerBytes]
	}
	return d.Key
}

// Unwrap makes errors.Is(err, kv.ErrCorrupt) true.
func (d *Damage) Unwrap() []error { return []error{kv.ErrCorrupt, d.Cause} }

// Table describes rows of one kind. Its functions must be pure.
type Table[K, V any] struct {
	ID   ID
	Name string
	// Key appends the key's parts after the table id; the shard comes first.
	Key func(dst []byte, k K) []byte
	// ParseKey reads what Key wrote.
	ParseKey func(r *codec.KeyReader) K
	// Encode appends the record; Decode reads all of it and may alias b.
	Encode func(dst []byte, v *V) []byte
	Decode func(b []byte, v *V) error
	// Hot rows are read by most commands and kept in memory.
	Hot bool
	// Recent rows are usually read again soon after they were written: those
	// written last stay in memory.
	Recent bool
}

// Info is what the machine, the goldens and the checker know of a table.
type Info struct {
	ID     ID
	Name   string
	Recent bool // as Table says
	// Read decodes a row, so that a person can be shown it. The error is a
	// *Damage.
	Read func(key, value []byte) (k, v any, err error)
}

// Info names the table.
func (t *Table[K, V]) Info() Info {
	return Info{t.ID, t.Name, t.Recent, func(key, value []byte) (any, any, error) { return erase(t.row(key, value)) }}
}

func erase[K, V any](k K, v *V, err error) (any, any, error) { return k, v, err }

// Row decodes a row given by its whole key. Nothing of the result aliases key or
// value. The error is a *Damage.
func (t *Table[K, V]) Row(key, value []byte) (K, *V, error) { return t.row(key, value) }

// row decodes a row. Nothing of the result aliases key or value.
func (t *Table[K, V]) row(key, value []byte) (k K, v *V, err error) {
	kr := codec.NewKeyReader(key[1:])
	k, v = t.ParseKey(&kr), new(V)
	if err := kr.End(); err != nil {
		return k, nil, &Damage{t.Name, append([]byte(nil), key...), err}
	}
	if err := t.Decode(append([]byte(nil), value...), v); err != nil {
		return k, nil, &Damage{t.Name, append([]byte(nil), key...), err}
	}
	return k, v, nil
}

// Bytes is the whole key of a row.
func (t *Table[K, V]) Bytes(k K) []byte {
	return t.Key(append(make([]byte, 0, 64), byte(t.ID)), k)
}

// Get reads a row.
func (t *Table[K, V]) Get(r kv.Reader, k K) (v V, ok bool, err error) {
	if _, isTx := r.(*kv.Tx); isTx && t.Hot {
		shared, err := t.Shared(r, k)
		if err != nil || shared == nil {
			return v, false, err
		}
		return *shared, true, nil
	}
	key := t.Bytes(k)
	b, ok, err := r.Get(key)
	if err != nil || !ok {
		return v, false, err
	}
	if err := t.Decode(b, &v); err != nil {
		return v, false, &Damage{t.Name, key, err}
	}
	return v, true, nil
}

// Shared reads a row of a hot table without decoding it again while it is
// unchanged. The result is shared with others: it must not be changed. nil
// means absent.
func (t *Table[K, V]) Shared(r kv.Reader, k K) (*V, error) {
	key := t.Bytes(k)
	d, err := r.Shared(key, func(b []byte) (any, error) {
		v := new(V)
		if err := t.Decode(b, v); err != nil {
			return nil, &Damage{t.Name, key, err}
		}
		return v, nil
	})
	if err != nil || d == nil {
		return nil, err
	}
	return d.(*V), nil
}

// Has says whether a row exists.
func (t *Table[K, V]) Has(r kv.Reader, k K) (bool, error) {
	_, ok, err := r.Get(t.Bytes(k))
	return ok, err
}

// Put writes a row. Of a hot table, a copy of *v is kept as it is and encoded
// when the command ends; what *v refers to must not be changed afterwards.
func (t *Table[K, V]) Put(tx *kv.Tx, k K, v *V) {
	if !t.Hot {
		tx.Put(t.Bytes(k), t.encode(v))
		return
	}
	own := *v
	tx.PutDecoded(t.Bytes(k), &own, func(dst []byte, decoded any) []byte {
		return nonNil(t.Encode(dst, decoded.(*V)))
	})
}

// Insert writes a row that the caller knows to be absent from the store.
func (t *Table[K, V]) Insert(tx *kv.Tx, k K, v *V) { tx.Insert(t.Bytes(k), t.encode(v)) }

// encode never returns nil, which would mean a deletion.
func (t *Table[K, V]) encode(v *V) []byte {
	return nonNil(t.Encode(make([]byte, 0, 96), v))
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Size is the number of bytes of a row as it is stored: key and record.
func (t *Table[K, V]) Size(k K, v *V) int { return len(t.Bytes(k)) + len(t.encode(v)) }

// Delete removes a row, present or not.
func (t *Table[K, V]) Delete(tx *kv.Tx, k K) { tx.Delete(t.Bytes(k)) }

// Range says which rows a Scan visits: those whose key starts with Prefix, from
// From on (within the prefix; nil is its start), in reverse if so said (then
// From is where to stop looking, exclusive: rows below it are visited).
type Range struct {
	Prefix  []byte // after the table id; see Owner.Append
	From    []byte // after the table id; a whole or partial key
	Reverse bool
}

// Scan calls fn for each row of the range until fn says stop or fails. fn must
// not write to the transaction it scans.
func (t *Table[K, V]) Scan(r kv.Reader, rg Range, fn func(k K, v *V) (more bool, err error)) error {
	lower := append([]byte{byte(t.ID)}, rg.Prefix...)
	upper := codec.PrefixEnd(lower)
	if rg.From != nil {
		from := append([]byte{byte(t.ID)}, rg.From...)
		if rg.Reverse {
			upper = from
		} else {
			lower = from
		}
	}
	return r.Scan(lower, upper, rg.Reverse, func(key, value []byte) (bool, error) {
		k, v, err := t.row(key, value)
		if err != nil {
			return false, err
		}
		return fn(k, v)
	})
}

// EncodeCBOR and DecodeCBOR are the codec of tables that are not hot enough for
// a hand-written one: CBOR with integer keys, so fields are added freely.
func EncodeCBOR[V any](dst []byte, v *V) []byte {
	b, err := wire.EncodeLog(v)
	if err != nil {
		panic(fmt.Sprintf("table: %T has no encoding: %v", v, err))
	}
	return append(dst, b...)
}

// DecodeCBOR reads what EncodeCBOR wrote.
func DecodeCBOR[V any](b []byte, v *V) error { return wire.DecodeLog(b, v) }

// Clone is a copy of a CBOR record that shares nothing with it. A hot table keeps
// what is put into it, so what came from a caller is cloned first.
func Clone[V any](v *V) *V {
	own := new(V)
	if err := wire.DecodeLog(EncodeCBOR(nil, v), own); err != nil {
		panic(fmt.Sprintf("table: %T does not read what it wrote: %v", v, err))
	}
	return own
}

// None is the record of a table that is an index: the key says it all.
type None struct{}

// EncodeNone and DecodeNone are the codec of None.
func EncodeNone(dst []byte, _ *None) []byte { return dst }

// DecodeNone refuses any bytes.
func DecodeNone(b []byte, _ *None) error {
	if len(b) != 0 {
		return codec.ErrRecord
	}
	return nil
}
