package machine

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// Head is where a shard stands. It is written once an entry.
type Head struct {
	Position uint64 // commands applied
	Time     int64  // last logged time, milliseconds
	Digest   uint64 // rolling digest over every write, in order
	Epoch    uint64 // ownership epoch of the last entry
	Prune    int64  // armed instant of receipt pruning; 0 is none
}

const headVersion = 1

var heads = table.Table[uint16, Head]{
	ID: table.ShardHead, Name: "shardHead",
	Key:      func(dst []byte, shard uint16) []byte { return codec.AppendUint16(dst, shard) },
	ParseKey: func(r *codec.KeyReader) uint16 { return r.Uint16() },
	Encode: func(dst []byte, h *Head) []byte {
		dst = append(dst, headVersion)
		dst = codec.AppendUvarint(dst, h.Position)
		dst = codec.AppendVarint(dst, h.Time)
		dst = codec.AppendUint64(dst, h.Digest)
		dst = codec.AppendUvarint(dst, h.Epoch)
		return codec.AppendVarint(dst, h.Prune)
	},
	Decode: func(b []byte, h *Head) error {
		r := codec.NewReader(b)
		r.Version(headVersion)
		h.Position, h.Time = r.Uvarint(), r.Varint()
		if d := r.Fixed(8); d != nil {
			kr := codec.NewKeyReader(d)
			h.Digest = kr.Uint64()
		}
		h.Epoch, h.Prune = r.Uvarint(), r.Varint()
		return r.End()
	},
}

// receiptKey orders receipts by the hour their command id was made in, so that
// pruning removes from the front and needs no index. Ids without a time (not
// version 7) share the last hour; ReceiptAt orders those.
type receiptKey struct {
	Shard     uint16
	Hour      uint32
	Partition [16]byte
	Principal [16]byte // hash of tenant and principal
	ID        [16]byte
}

// noHour is the hour of command ids that carry no time.
const noHour = 0xFFFFFFFF

// receipt is the stored outcome of a command.
type receipt struct {
	Op          uint16
	Fingerprint [32]byte
	Position    uint64
	At          int64
	Epoch       uint64
	Rejected    bool   // Body is a fault.Error
	Body        []byte // else the response, reduced to what the operation keeps
}

const receiptVersion = 1

var receipts = table.Table[receiptKey, receipt]{
	ID: table.Receipt, Name: "receipt",
	Key:      appendReceiptKey,
	ParseKey: readReceiptKey,
	Encode: func(dst []byte, v *receipt) []byte {
		dst = append(dst, receiptVersion)
		dst = codec.AppendUvarint(dst, uint64(v.Op))
		dst = append(dst, v.Fingerprint[:]...)
		dst = codec.AppendUvarint(dst, v.Position)
		dst = codec.AppendVarint(dst, v.At)
		dst = codec.AppendUvarint(dst, v.Epoch)
		dst = codec.AppendBool(dst, v.Rejected)
		return codec.AppendBytes(dst, v.Body)
	},
	Decode: func(b []byte, v *receipt) error {
		r := codec.NewReader(b)
		r.Version(receiptVersion)
		v.Op = uint16(r.Uvarint())
		copy(v.Fingerprint[:], r.Fixed(32))
		v.Position, v.At, v.Epoch = r.Uvarint(), r.Varint(), r.Uvarint()
		v.Rejected, v.Body = r.Bool(), r.Bytes()
		return r.End()
	},
}

// timelessKey orders receipts whose command id has no time by when they were
// stored.
type timelessKey struct {
	Shard uint16
	At    int64
	Key   receiptKey
}

var timeless = table.Table[timelessKey, table.None]{
	ID: table.ReceiptAt, Name: "receiptAt",
	Key: func(dst []byte, k timelessKey) []byte {
		return appendReceiptKey(codec.AppendInt64(codec.AppendUint16(dst, k.Shard), k.At), k.Key)
	},
	ParseKey: func(r *codec.KeyReader) timelessKey {
		return timelessKey{r.Uint16(), r.Int64(), readReceiptKey(r)}
	},
	Encode: table.EncodeNone, Decode: table.DecodeNone,
}

func appendReceiptKey(dst []byte, k receiptKey) []byte {
	dst = codec.AppendUint32(codec.AppendUint16(dst, k.Shard), k.Hour)
	dst = append(dst, k.Partition[:]...)
	dst = append(dst, k.Principal[:]...)
	return append(dst, k.ID[:]...)
}

func readReceiptKey(r *codec.KeyReader) (k receiptKey) {
	k.Shard, k.Hour = r.Uint16(), r.Uint32()
	copy(k.Partition[:], r.Bytes(16))
	copy(k.Principal[:], r.Bytes(16))
	copy(k.ID[:], r.Bytes(16))
	return k
}

// Tables are the tables this package owns.
func Tables() []table.Info {
	return []table.Info{heads.Info(), applied.Info(), receipts.Info(), timeless.Info(), table.DueRows.Info()}
}
