package machine

import (
	"errors"
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/wire"
)

// Machine evaluates one shard's entries. It belongs to one goroutine.
type Machine struct {
	shard       uint16
	incarnation [16]byte
	durability  api.Durability
	registry    *op.Registry
	tx          *kv.Tx
	head        Head
	nextDue     int64
	waits       bool // what is due waits: see NextDue
	dispatched  bool // an entry has changed whether the store delivers
}

// Config says what a machine is for.
type Config struct {
	Shard       uint16
	Incarnation [16]byte
	Durability  api.Durability
	Registry    *op.Registry
}

// recentTables are the tables whose rows are kept in memory for a while after they
// were written, as those who own them say.
func recentTables(r *op.Registry) (ids []byte) {
	for _, res := range r.Resources() {
		for _, t := range res.Tables {
			if t.Recent {
				ids = append(ids, byte(t.ID))
			}
		}
	}
	return ids
}

// New opens the machine of a shard where its last committed entry left it.
func New(store *kv.Store, cfg Config) (*Machine, error) {
	m := &Machine{
		shard: cfg.Shard, incarnation: cfg.Incarnation, durability: cfg.Durability,
		registry: cfg.Registry, tx: store.NewTx(recentTables(cfg.Registry)...),
	}
	var err error
	if m.head, err = StoredHead(m.tx, m.shard); err == nil {
		m.nextDue, err = FirstDue(m.tx, m.shard)
	}
	if err == nil {
		err = m.readDispatch()
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, m.tx.Close() // an iterator left open would pin the state of this moment
}

// Head is where the shard stands, entries not yet durable included.
func (m *Machine) Head() Head { return m.head }

// NextDue is a lower bound of the next instant at which something is due; 0
// when nothing is, or when what is due waits because the store was restored and
// nobody has resumed it: a retention that ran out meanwhile must not take what
// was just brought back. It is exact after a tick.
func (m *Machine) NextDue() int64 {
	if m.waits {
		return 0
	}
	return m.nextDue
}

func (m *Machine) readDispatch() error {
	d, err := dispatch.State(m.tx, m.shard)
	m.waits, m.dispatched = d.Restored, false
	return err
}

// Work is what evaluation has cost since New.
func (m *Machine) Work() kv.Work { return m.tx.Work() }

// Outcome is the answer to one command: a response, or a rejection. Fatal means
// that the shard must stop.
type Outcome struct {
	Response any
	Err      *fault.Error
	Fatal    error
	Replayed bool   // answered from a stored receipt
	Position uint64 // of the command
	Tick     Ticked // for ticks
}

// refuse takes a refusal of the state machine as the outcome. Damage is none,
// though it may wrap an error of the contract: replicas with sound bytes would
// answer otherwise, so the shard stops.
func (o *Outcome) refuse(err error) {
	var f *fault.Error
	if errors.As(err, &f) && f.Reason != wire.Undecodable && !errors.Is(err, kv.ErrCorrupt) {
		o.Err = f
		return
	}
	o.Fatal = err
}

// Apply evaluates an entry and hands its writes to the store. The outcomes may
// be shown once the pending commit is durable. An error stops the shard: state
// in memory is then ahead of the store and must be thrown away.
func (m *Machine) Apply(e *Entry) ([]Outcome, []op.Hint, *kv.Pending, error) {
	return m.apply(e, nil)
}

// ApplyAt is Apply of an entry of a replicated log: the same batch says that the
// state holds it.
func (m *Machine) ApplyAt(at *Applied, e *Entry) ([]Outcome, []op.Hint, *kv.Pending, error) {
	return m.apply(e, at)
}

// Note says in the state that it holds an entry which has no commands.
func (m *Machine) Note(at *Applied) (*kv.Pending, error) {
	m.tx.Begin()
	PutApplied(m.tx, m.shard, at)
	return m.tx.Commit()
}

func (m *Machine) apply(e *Entry, at *Applied) ([]Outcome, []op.Hint, *kv.Pending, error) {
	m.head.Time = max(m.head.Time, e.At)
	m.head.Epoch = max(m.head.Epoch, e.Epoch)
	outcomes := make([]Outcome, len(e.Commands))
	var hints []op.Hint
	for i := range e.Commands {
		m.head.Position++
		m.tx.Begin()
		var c *op.Ctx
		outcomes[i], c = m.evaluate(&e.Commands[i], e.Seed)
		if err := outcomes[i].Fatal; err != nil {
			return nil, nil, nil, fmt.Errorf("machine: shard %d stops at position %d: %w", m.shard, m.head.Position, err)
		}
		m.digest()
		if outcomes[i].Err == nil { // what was dropped hints at nothing
			hints = append(hints, c.Hints()...)
		}
	}
	if m.dispatched {
		if err := m.readDispatch(); err != nil {
			return nil, nil, nil, err
		}
	}
	m.tx.Begin()
	heads.Put(m.tx, m.shard, &m.head)
	if at != nil {
		PutApplied(m.tx, m.shard, at)
	}
	pending, err := m.tx.Commit()
	return outcomes, hints, pending, err
}

// Close releases what the machine holds of the store.
func (m *Machine) Close() error { return m.tx.Close() }

func (m *Machine) evaluate(cmd *Command, seed uint64) (Outcome, *op.Ctx) {
	scope := op.Scope{
		Now: m.head.Time, Partition: cmd.Partition, Incarnation: m.incarnation, Registry: m.registry,
		Space: table.Space{Shard: m.shard, Partition: cmd.Hash},
	}
	c := op.NewCtx(scope, m.tx, cmd.ID, m.head.Position, m.head.Epoch, seed)
	if cmd.Op == TickOp {
		return m.tick(c), c
	}
	out := Outcome{Position: m.head.Position}
	h, ok := m.registry.Numbered(cmd.Op)
	if !ok || h.Apply == nil {
		out.Fatal = fmt.Errorf("the log holds operation %d, which this program does not know", cmd.Op)
		return out, c
	}
	req, err := m.request(h, cmd)
	if err != nil {
		out.Fatal = err
		return out, c
	}
	if err := m.admit(c, h, cmd, req); err != nil {
		out.refuse(err)
		return out, c
	}
	return m.run(c, h, cmd, req), c
}

// request decodes the logged request, unless this is where it was made.
func (m *Machine) request(h *op.Handler, cmd *Command) (any, error) {
	if cmd.request == nil {
		req := h.NewRequest()
		if err := wire.DecodeLog(cmd.Request, req); err != nil {
			return nil, fmt.Errorf("the logged request of %s is damaged: %w", h.Op.Name, err)
		}
		cmd.request = req
	}
	return cmd.request, nil
}

// admit decides, from this shard's own copy of the policies, whether the caller
// may do this now. Its refusals are not stored: a caller without rights leaves
// no trace.
func (m *Machine) admit(c *op.Ctx, h *op.Handler, cmd *Command, req any) error {
	p, err := access.Find(m.tx, m.shard, cmd.Tenant, cmd.Principal)
	if err != nil {
		return err
	}
	if err := access.Active(p, c.Now); err != nil {
		return err
	}
	c.Principal = p
	for _, n := range h.Needs(req) {
		if err := access.Allow(p, n); err != nil {
			return err
		}
	}
	return checkAge(cmd.ID, c.Now)
}

// run answers from the receipt, or carries the command out and stores one.
func (m *Machine) run(c *op.Ctx, h *op.Handler, cmd *Command, req any) Outcome {
	key := keyOf(m.shard, cmd)
	stored, found, err := receipts.Get(m.tx, key)
	if err != nil {
		return Outcome{Fatal: err}
	}
	if found {
		return m.recall(h, c, cmd, &stored)
	}
	out := Outcome{Position: c.Position}
	resp, err := h.Apply(c, req)
	if err != nil {
		m.tx.Drop()
		out.refuse(err)
		if out.Err != nil {
			m.keepRefusal(c, key, cmd, out.Err)
		}
		return out
	}
	out.Response = resp
	r := receipt{Op: cmd.Op, Fingerprint: cmd.Fingerprint, Position: c.Position, At: c.Now, Epoch: c.Epoch}
	if h.Transient == nil || !h.Transient(resp) {
		kept := resp
		if h.Keep != nil {
			kept = h.Keep(resp)
		}
		if r.Body, err = wire.EncodeLog(kept); err != nil {
			return Outcome{Fatal: err}
		}
		m.keep(key, &r)
	}
	if cmd.Hash != [16]byte{} && m.tx.Dirty() {
		if err := partitions.Ensure(m.tx, c.Space, cmd.Partition); err != nil {
			return Outcome{Fatal: err}
		}
	}
	h.SetReceipt(resp, header(cmd, m.incarnation, m.durability, &r))
	return out
}

// keepRefusal stores a refusal that the contract wants answered again. A
// command that named an unknown partition leaves nothing but this row.
func (m *Machine) keepRefusal(c *op.Ctx, key receiptKey, cmd *Command, f *fault.Error) {
	if !f.Code.Recordable() {
		return
	}
	f.Recorded = true
	if f.Retry == fault.RetrySameID {
		f.Retry = fault.RetryNewID
	}
	body, err := wire.EncodeLog(f)
	if err != nil {
		return // a fault has only texts and numbers; there is nothing in it that fails
	}
	m.keep(key, &receipt{
		Op: cmd.Op, Fingerprint: cmd.Fingerprint, Position: c.Position, At: c.Now, Epoch: c.Epoch,
		Rejected: true, Body: body,
	})
}
