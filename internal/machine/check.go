package machine

import (
	"fmt"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/wire"
)

// check verifies the receipts of a shard: each stands where its command id says,
// names a command that was applied, and holds an outcome that can be answered. The
// order of those without a time follows from them, and so does the one due row.
func check(a *op.Audit) error {
	a.Derives(op.Derived{Table: timeless.Info(), Subject: timelessOf})
	head, err := StoredHead(a.R, a.Space.Shard)
	if err != nil {
		return err
	}
	if err := op.Each(a, &heads, func(uint16, *Head) error { return nil }); err != nil {
		return err
	}
	if err := op.Each(a, &applied, func(_ uint16, at *Applied) error { at.check(a, head); return nil }); err != nil {
		return err
	}
	x := auditor{Audit: a, head: head, callers: map[[16]byte]bool{}}
	if err := access.Hashes(a, func(h [16]byte) { x.callers[h] = true }); err != nil {
		return err
	}
	a.ImplyDue(table.DueReceipts, pruneOwner, head.Prune)
	if err := op.Each(a, &receipts, x.receipt); err != nil {
		return err
	}
	a.Count("receipts", x.stored)
	if x.stored > 0 && (head.Prune == 0 || head.Prune > max(x.first, a.Now)) { // what a step left over is due from then on
		a.Report("due", "receipts", "receipts go from %d on, and their pruning is armed for %d", x.first, head.Prune)
	}
	return nil
}

// timelessOf is the receipt that a row of the order is of: the key after the instant.
func timelessOf(dst, key, _ []byte) []byte {
	const at = 1 + 2 // where the instant stands, of 8 bytes
	return append(dst, key[min(at+8, len(key)):]...)
}

type auditor struct {
	*op.Audit
	head      Head
	callers   map[[16]byte]bool
	positions op.Positions
	stored    int64
	first     int64 // instant from which on the first receipt is pruned
}

func (x *auditor) receipt(k receiptKey, r *receipt) error {
	where := func() string { return fmt.Sprintf("receipt of command %x", k.ID) }
	x.stored++
	due := r.At + keepMillis
	if k.Hour == noHour {
		op.Imply(x.Audit, &timeless, timelessKey{k.Shard, r.At, k}, &table.None{})
	} else {
		due = max(due, (int64(k.Hour)+1)*hourMillis+keepMillis) // prune arms for the second, keep for the first
	}
	if x.first == 0 || due < x.first {
		x.first = due
	}
	if hour := hourOf(k.ID); hour != k.Hour {
		x.Report("receipt", where(), "it stands at hour %d, its command id is of hour %d", k.Hour, hour)
	}
	switch {
	case r.Position == 0 || r.Position > x.head.Position || r.Epoch == 0 || r.Epoch > x.head.Epoch:
		x.Report("receipt", where(), "it names position %d of epoch %d; the shard is at %d of %d", r.Position, r.Epoch, x.head.Position, x.head.Epoch)
	case !x.positions.Add(r.Position):
		x.Report("receipt", where(), "another command was applied at position %d", r.Position)
	}
	if x.Future(r.At) {
		x.Past(where(), "its command", r.At)
	}
	if !x.callers[k.Principal] {
		x.Report("receipt", where(), "it is of a caller whom the shard does not know")
	}
	x.place(where, k, r)
	if err := x.readable(r); err != nil {
		x.Report("receipt", where(), "its outcome cannot be read")
	}
	return nil
}

// place: a receipt is in the shard of its partition, and what was carried out has
// left the partition's name.
func (x *auditor) place(where func() string, k receiptKey, r *receipt) {
	if k.Partition == [16]byte{} {
		if k.Shard != 0 && x.Shards > 0 {
			x.Report("receipt", where(), "it is of a command of the catalog, in another shard")
		}
		return
	}
	if x.Shards > 0 && partitions.ShardOf(k.Partition, x.Shards) != k.Shard {
		x.Report("receipt", where(), "its partition belongs to another shard")
	}
	if !r.Rejected && !x.Partitions[k.Partition] {
		x.Report("receipt", where(), "its partition has no name")
	}
}

// readable: what is stored of an outcome is a refusal, or a response of the
// operation.
func (x *auditor) readable(r *receipt) error {
	h, ok := x.Registry.Numbered(r.Op)
	if !ok || h.Apply == nil {
		return fmt.Errorf("operation %d is none", r.Op)
	}
	if r.Rejected {
		return wire.DecodeLog(r.Body, new(fault.Error))
	}
	return wire.DecodeLog(r.Body, h.NewResponse())
}
