package machine

import (
	"encoding/binary"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/lineage"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/wire"
)

const (
	hourMillis = 3_600_000
	// horizonMillis is how old a version 7 command id may be. Receipts are kept
	// twice as long, so that one stored at the last moment still lives its time.
	horizonMillis = int64(limits.ReceiptSeconds) * 1000
	keepMillis    = 2 * horizonMillis
	// futureMillis is how far a command id may be ahead of logged time.
	futureMillis = 24 * hourMillis
)

// idTime is the instant in a version 7 UUID, in milliseconds.
func idTime(id [16]byte) (int64, bool) {
	if id[6]>>4 != 7 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(id[:8]) >> 16), true
}

func keyOf(shard uint16, cmd *Command) receiptKey {
	return receiptKey{shard, hourOf(cmd.ID), cmd.Hash, access.Hash(cmd.Tenant, cmd.Principal), cmd.ID}
}

// hourOf is the hour a command id was made in, noHour when it does not say.
func hourOf(id [16]byte) uint32 {
	if t, ok := idTime(id); ok {
		return uint32(t / hourMillis)
	}
	return noHour
}

// checkAge refuses command ids that a receipt could no longer answer for, and
// ids from a future in which their receipt might already be gone.
func checkAge(id [16]byte, now int64) error {
	t, ok := idTime(id)
	switch {
	case !ok:
		return nil
	case t < now-horizonMillis:
		return fault.New(fault.CursorExpired, "receipt_horizon",
			"the command id was made more than %d days ago; whether it was carried out can no longer be told from its receipt. Look at the data, then use a new id", horizonMillis/(24*hourMillis))
	case t > now+futureMillis:
		return fault.New(fault.Validation, "command_id_in_future", "the command id carries a time more than a day ahead of the store's clock; check the clock that made it")
	}
	return nil
}

// recall answers a command whose receipt is stored.
func (m *Machine) recall(h *op.Handler, c *op.Ctx, cmd *Command, r *receipt) Outcome {
	out := Outcome{Position: c.Position, Replayed: true}
	if r.Fingerprint != cmd.Fingerprint {
		out.Err = fault.New(fault.Conflict, "command_id_reused", "this command id was used for a different request; use a new id for a new request")
		return out
	}
	if err := ofThisHistory(m.tx, m.shard, r); err != nil {
		out.refuse(err)
		return out
	}
	if r.Rejected {
		out.Err = new(fault.Error)
		if err := wire.DecodeLog(r.Body, out.Err); err != nil {
			out.Fatal = err
		}
		return out
	}
	resp := h.NewResponse()
	if err := wire.DecodeLog(r.Body, resp); err != nil {
		out.Fatal = err
		return out
	}
	if h.Recall != nil {
		req, err := m.request(h, cmd)
		if err == nil {
			err = h.Recall(c, req, resp)
		}
		if err != nil {
			out.refuse(err)
			return out
		}
	}
	h.SetReceipt(resp, header(cmd, c.Incarnation, m.durability, r))
	out.Response = resp
	return out
}

// ofThisHistory refuses a receipt that came back with a restore: its outcome is
// part of this store, but what it promised (leases, tokens) ended with the
// history it was given in. Error: TokenInvalidated.
func ofThisHistory(r kv.Reader, shard uint16, stored *receipt) error {
	e, earlier, err := lineage.Of(r, shard, stored.Position)
	if err != nil || !earlier {
		return err
	}
	outcome := "committed"
	if stored.Rejected {
		outcome = "rejected"
	}
	return fault.New(fault.TokenInvalidated, "earlier_history",
		"the command was %s at %s, in a history of this store that a restore has ended; nothing happened now. What it did is part of the restored data: look there, and use a new id for new work",
		outcome, api.Time(stored.At)).
		With("outcome", "%s", outcome).With("incarnation", "%s", uuid.UUID(e.Incarnation)).With("position", "%d", stored.Position)
}

// header is the head of a response that carries the receipt.
func header(cmd *Command, incarnation [16]byte, durability api.Durability, r *receipt) api.Receipt {
	return api.Receipt{
		CommandID: uuid.UUID(cmd.ID).String(),
		Token: api.CommitToken{
			Incarnation: uuid.UUID(incarnation).String(), Partition: cmd.Partition,
			Position: r.Position, OwnershipEpoch: r.Epoch,
		},
		CommittedAt: api.Time(r.At), Durability: durability,
	}
}

// keep stores a receipt and arms pruning.
func (m *Machine) keep(k receiptKey, r *receipt) {
	receipts.Put(m.tx, k, r)
	due := r.At + keepMillis
	if k.Hour == noHour {
		timeless.Put(m.tx, timelessKey{k.Shard, r.At, k}, &table.None{})
	}
	table.ArmBy(m.tx, m.shard, table.DueReceipts, pruneOwner, &m.head.Prune, due)
}

// pruneOwner is the owner of the shard's one receipt row in the due table; the
// shard is already part of its key.
var pruneOwner = []byte{}

// prune removes at most budget receipts past their time and arms the next
// instant. It is the handler of the shard's receipt row in the due table.
func (m *Machine) prune(c *op.Ctx, budget int) error {
	m.head.Prune = 0
	var old []receiptKey
	next := int64(0)
	prefix := codec.AppendUint16(nil, m.shard)
	err := receipts.Scan(c.Tx, table.Range{Prefix: prefix}, func(k receiptKey, _ *receipt) (bool, error) {
		if end := (int64(k.Hour) + 1) * hourMillis; k.Hour == noHour || end+keepMillis > c.Now {
			if k.Hour != noHour {
				next = end + keepMillis
			}
			return false, nil
		}
		old = append(old, k)
		return len(old) < budget, nil
	})
	if err != nil {
		return err
	}
	var oldTimeless []timelessKey
	err = timeless.Scan(c.Tx, table.Range{Prefix: prefix}, func(k timelessKey, _ *table.None) (bool, error) {
		if k.At+keepMillis > c.Now {
			if next == 0 || k.At+keepMillis < next {
				next = k.At + keepMillis
			}
			return false, nil
		}
		oldTimeless = append(oldTimeless, k)
		return len(oldTimeless) < budget, nil
	})
	if err != nil {
		return err
	}
	for _, k := range old {
		receipts.Delete(c.Tx, k)
	}
	for _, k := range oldTimeless {
		receipts.Delete(c.Tx, k.Key)
		timeless.Delete(c.Tx, k)
	}
	if len(old) == budget || len(oldTimeless) == budget {
		next = c.Now
	}
	table.Arm(c.Tx, m.shard, table.DueReceipts, pruneOwner, &m.head.Prune, next)
	return nil
}

// StoredHead reads where a shard stands from any state, for status and checks.
func StoredHead(r kv.Reader, shard uint16) (Head, error) {
	h, _, err := heads.Get(r, shard)
	return h, err
}

// HasReceipt says whether the outcome of a command is stored.
func HasReceipt(r kv.Reader, shard uint16, cmd *Command) (bool, error) {
	return receipts.Has(r, keyOf(shard, cmd))
}
