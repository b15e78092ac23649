package inbox

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// Costs of Process beside those of the acknowledgement and the effects: get
// processed · put processed, order; and the owner's head and due row when nothing
// is armed yet.

// key names one input of one handler scope. Owner is the lane or the source of
// events it came from; that of inputs from elsewhere has the resource number 0.
type key struct {
	Owner      table.Owner
	Input      string // as Input says
	Scope      string
	Generation uint64 // execution generation
}

// record says with what an input was processed, and where its effects are.
type record struct {
	Fingerprint [32]byte // over the input's identity and the effects
	Position    uint64   // of the effects' command
	Epoch       uint64   // ownership epoch then
	At          int64    // logged time then
}

const version = 1

func appendKey(dst []byte, k key) []byte {
	dst = codec.AppendText(codec.AppendText(k.Owner.Append(dst), k.Input), k.Scope)
	return codec.AppendUint64(dst, k.Generation)
}

func readKey(r *codec.KeyReader) key { return key{table.ReadOwner(r), r.Text(), r.Text(), r.Uint64()} }

var processed = table.Table[key, record]{
	ID: table.Inbox, Name: "inbox",
	Key: appendKey, ParseKey: readKey,
	Encode: func(dst []byte, v *record) []byte {
		dst = append(append(dst, version), v.Fingerprint[:]...)
		dst = codec.AppendUvarint(codec.AppendUvarint(dst, v.Position), v.Epoch)
		return codec.AppendVarint(dst, v.At)
	},
	Decode: func(b []byte, v *record) error {
		r := codec.NewReader(b)
		r.Version(version)
		copy(v.Fingerprint[:], r.Fixed(len(v.Fingerprint)))
		v.Position, v.Epoch, v.At = r.Uvarint(), r.Uvarint(), r.Varint()
		return r.End()
	},
}

// orderKey orders the records of an owner by when they were made.
type orderKey struct {
	Owner    table.Owner
	At       int64
	Position uint64
}

// order is what is pruned first.
var order = table.Table[orderKey, key]{
	ID: table.InboxAt, Name: "inboxAt",
	Key: func(dst []byte, k orderKey) []byte {
		return codec.AppendUint64(codec.AppendInt64(k.Owner.Append(dst), k.At), k.Position)
	},
	ParseKey: func(r *codec.KeyReader) orderKey { return orderKey{table.ReadOwner(r), r.Int64(), r.Uint64()} },
	Encode:   func(dst []byte, v *key) []byte { return appendKey(append(dst, version), *v) },
	Decode: func(b []byte, v *key) error {
		r := codec.NewReader(b)
		r.Version(version)
		if err := r.Err(); err != nil {
			return err
		}
		kr := codec.NewKeyReader(b[1:])
		*v = readKey(&kr)
		return kr.End()
	},
}

// head remembers what is armed for an owner, and when its oldest record was made:
// pruning begins there, so it does not walk over what it deleted. It is written
// only when what is armed changes.
type head struct {
	Armed  int64
	Oldest int64 // a lower bound; heads of version 1 have none
}

const headVersion = 2

var heads = table.Table[table.Owner, head]{
	ID: table.InboxHead, Name: "inboxHead", Hot: true,
	Key:      func(dst []byte, o table.Owner) []byte { return o.Append(dst) },
	ParseKey: table.ReadOwner,
	Encode: func(dst []byte, v *head) []byte {
		return codec.AppendVarint(codec.AppendVarint(append(dst, headVersion), v.Armed), v.Oldest)
	},
	Decode: func(b []byte, v *head) error {
		r := codec.NewReader(b)
		found := r.Version(headVersion)
		v.Armed = r.Varint()
		if found > 1 {
			v.Oldest = r.Varint()
		}
		return r.End()
	},
}
