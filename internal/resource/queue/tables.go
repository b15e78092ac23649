package queue

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// What each operation reads and writes, per message where n is the number of
// messages of the command (the heads of lanes stay in memory; a command writes
// its lane's head once, and the lane's due row only when something earlier than
// what is armed turns up):
//
//	enqueue        get message · put message, body, ready (or scheduled; with an
//	               expiry also expiring)
//	receive of n   one scan of n ready entries · get message, body · put message,
//	               delete ready · one lease row for all n
//	ack of n       get message · put message, delete body · of one batch: delete
//	               the lease row when all its messages are in this command, else
//	               get and put the row of those left · one finished row for all n
//	nack, release  get message · put message, and scheduled or ready; lease as ack
//	renew          get message · put message · one lease row for all of one
//	               deadline; the old row as ack
//	pruning        scan finished rows · delete message · delete the finished row
//	lowered limit  per shard: scan partitions, get each lane's head; per waiting
//	               message: scan scheduled or ready · get message, put as dead
//
// Receive costs the same whatever else the lane holds: nothing is read that is
// not delivered, and no scan begins before the first live entry of its index.

// messageKey names a message within its lane.
type messageKey struct {
	Owner table.Owner
	ID    string
}

// seqKey orders rows of a lane by a sequence number.
type seqKey struct {
	Owner table.Owner
	Seq   uint64
}

// timeKey orders rows of a lane by an instant, equal ones by a number.
type timeKey struct {
	Owner table.Owner
	When  int64
	Seq   uint64
}

// readyKey is the claim order: priority, then the start tag of fair share (0
// while no share is configured), then the order of becoming ready.
type readyKey struct {
	Owner    table.Owner
	Priority uint8
	Tag      uint64
	Seq      uint64
}

func appendSeq(dst []byte, k seqKey) []byte { return codec.AppendUint64(k.Owner.Append(dst), k.Seq) }
func readSeq(r *codec.KeyReader) seqKey     { return seqKey{table.ReadOwner(r), r.Uint64()} }

func appendTime(dst []byte, k timeKey) []byte {
	return codec.AppendUint64(codec.AppendInt64(k.Owner.Append(dst), k.When), k.Seq)
}
func readTime(r *codec.KeyReader) timeKey { return timeKey{table.ReadOwner(r), r.Int64(), r.Uint64()} }

func appendReady(dst []byte, k readyKey) []byte {
	dst = codec.AppendUint8(k.Owner.Append(dst), k.Priority)
	return codec.AppendUint64(codec.AppendUint64(dst, k.Tag), k.Seq)
}

func readReady(r *codec.KeyReader) readyKey {
	return readyKey{table.ReadOwner(r), r.Uint8(), r.Uint64(), r.Uint64()}
}

// messages holds every message, finished ones until they are pruned.
var messages = table.Table[messageKey, message]{
	ID: table.Message, Name: "message", Recent: true,
	Key:      func(dst []byte, k messageKey) []byte { return codec.AppendText(k.Owner.Append(dst), k.ID) },
	ParseKey: func(r *codec.KeyReader) messageKey { return messageKey{table.ReadOwner(r), r.Text()} },
	Encode:   encodeMessage, Decode: decodeMessage,
}

// bodies holds the content of unfinished messages by sequence number.
var bodies = table.Table[seqKey, body]{
	ID: table.MessageBody, Name: "messageBody", Recent: true,
	Key: appendSeq, ParseKey: readSeq, Encode: encodeBody, Decode: decodeBody,
}

var heads = table.Table[table.Owner, head]{
	ID: table.LaneHead, Name: "laneHead", Hot: true,
	Key:      func(dst []byte, o table.Owner) []byte { return o.Append(dst) },
	ParseKey: table.ReadOwner, Encode: encodeHead, Decode: decodeHead,
}

// readyEntry holds what a claim must know to decide without reading the
// message.
type readyEntry struct {
	ID        string
	Content   uint64
	Charge    uint64
	ExpiresAt int64
}

var readies = table.Table[readyKey, readyEntry]{
	ID: table.Ready, Name: "ready",
	Key: appendReady, ParseKey: readReady,
	Encode: func(dst []byte, v *readyEntry) []byte {
		dst = codec.AppendString(append(dst, indexVersion), v.ID)
		dst = codec.AppendUvarint(codec.AppendUvarint(dst, v.Content), v.Charge)
		return codec.AppendVarint(dst, v.ExpiresAt)
	},
	Decode: func(b []byte, v *readyEntry) error {
		r := codec.NewReader(b)
		r.Version(indexVersion)
		v.ID, v.Content, v.Charge, v.ExpiresAt = r.String(), r.Uvarint(), r.Uvarint(), r.Varint()
		return r.End()
	},
}

const indexVersion = 1

// idEntry is the record of an index over messages.
type idEntry struct{ ID string }

func encodeID(dst []byte, v *idEntry) []byte {
	return codec.AppendString(append(dst, indexVersion), v.ID)
}

func decodeID(b []byte, v *idEntry) error {
	r := codec.NewReader(b)
	r.Version(indexVersion)
	v.ID = r.String()
	return r.End()
}

// schedules orders scheduled messages by when they become ready; expiries
// orders scheduled and ready ones by when they expire; deads and pendingDeads
// order dead letters as they were enqueued.
var (
	schedules    = table.Table[timeKey, idEntry]{ID: table.Scheduled, Name: "scheduled", Key: appendTime, ParseKey: readTime, Encode: encodeID, Decode: decodeID}
	expiries     = table.Table[timeKey, idEntry]{ID: table.Expiring, Name: "expiring", Key: appendTime, ParseKey: readTime, Encode: encodeID, Decode: decodeID}
	deads        = table.Table[seqKey, idEntry]{ID: table.Dead, Name: "dead", Key: appendSeq, ParseKey: readSeq, Encode: encodeID, Decode: decodeID}
	pendingDeads = table.Table[seqKey, idEntry]{ID: table.PendingDead, Name: "pendingDead", Key: appendSeq, ParseKey: readSeq, Encode: encodeID, Decode: decodeID}
)

// batch is a list of messages that share a fate: those one command leased until
// one instant, or finished in one way.
type batch struct {
	State state // of finished messages
	IDs   []string
}

func encodeBatch(dst []byte, v *batch) []byte {
	dst = codec.AppendUvarint(append(dst, indexVersion, byte(v.State)), uint64(len(v.IDs)))
	for _, id := range v.IDs {
		dst = codec.AppendString(dst, id)
	}
	return dst
}

func decodeBatch(b []byte, v *batch) error {
	r := codec.NewReader(b)
	r.Version(indexVersion)
	v.State = state(r.Byte())
	n := r.Uvarint()
	if n > uint64(len(b)) || v.State >= states {
		return codec.ErrRecord
	}
	v.IDs = make([]string, n)
	for i := range v.IDs {
		v.IDs[i] = r.String()
	}
	return r.End()
}

// leases holds one row for all messages leased by one command until one
// instant, keyed by that instant and the batch number. The row is written once;
// which of its messages are still leased stands in leasesLeft, by batch number,
// once some and not all have gone.
var (
	leases    = table.Table[timeKey, batch]{ID: table.Lease, Name: "lease", Recent: true, Key: appendTime, ParseKey: readTime, Encode: encodeBatch, Decode: decodeBatch}
	finisheds = table.Table[timeKey, batch]{ID: table.Finished, Name: "finished", Key: appendTime, ParseKey: readTime, Encode: encodeBatch, Decode: decodeBatch}
)

// bits is a set of places in a batch.
type bits [256 / 64]uint64

func (b *bits) set(i uint64)      { b[i/64] |= 1 << (i % 64) }
func (b *bits) has(i uint64) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b *bits) empty() bool       { return *b == bits{} }

// firstBits is the set of the first n places.
func firstBits(n uint64) (b bits) {
	for i := range n {
		b.set(i)
	}
	return b
}

var leasesLeft = table.Table[seqKey, bits]{
	ID: table.LeaseLeft, Name: "leaseLeft",
	Key: appendSeq, ParseKey: readSeq,
	Encode: func(dst []byte, v *bits) []byte {
		dst = append(dst, indexVersion)
		for _, w := range v {
			dst = codec.AppendUvarint(dst, w)
		}
		return dst
	},
	Decode: func(b []byte, v *bits) error {
		r := codec.NewReader(b)
		r.Version(indexVersion)
		for i := range v {
			v[i] = r.Uvarint()
		}
		return r.End()
	},
}

// Tables are the tables this package owns.
func Tables() []table.Info {
	return []table.Info{
		messages.Info(), bodies.Info(), heads.Info(), readies.Info(), schedules.Info(), leases.Info(),
		expiries.Info(), finisheds.Info(), deads.Info(), pendingDeads.Info(), leasesLeft.Info(),
		limitSweeps.Info(),
	}
}
