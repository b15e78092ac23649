package op

import (
	"reflect"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/table"
)

// Need is one capability a request requires: api.Operation.Needs with the
// tenant and database it is required in. Resource "" means the whole database,
// Database "" the whole tenant.
type Need struct {
	Capability api.Capability
	Tenant     string
	Database   string
	Resource   string
}

// Needs lists what the caller of a request must be allowed. It is evaluated at
// the door and again by the state machine.
func (h *Handler) Needs(req any) []Need {
	var tenant, database string
	switch r := req.(type) {
	case api.PartitionRequest:
		p := r.TargetPartition()
		tenant, database = p.Tenant, p.Database
	case interface{ TargetDatabase() (string, string) }:
		tenant, database = r.TargetDatabase()
	}
	needs := h.Op.Needs(req)
	out := make([]Need, len(needs))
	for i, n := range needs {
		out[i] = Need{n.Capability, tenant, database, n.Resource}
	}
	return out
}

// Wait lets a call wait outside the log until something may have changed.
type Wait[Req, Resp any] struct {
	// Millis is how long the caller wants to wait; 0 is not at all.
	Millis func(*Req) int64
	// Keys are the wake keys to wait for, and the class of those who take from each
	// other what they wait for: of a class only as many are woken as a hint counts.
	// Who leaves to others what it finds has class "", and is always woken.
	Keys func(*View, *Req) (keys []string, class string, err error)
	// Again says that the response is empty and the call should wait.
	Again func(*Resp) bool
	// Until is the instant (milliseconds) at which trying again makes sense
	// whatever happens; 0 is none.
	Until func(*Resp) int64
	// Expired changes an empty response after the whole wait was in vain.
	Expired func(*Resp)
}

// Command is the behaviour of a command. Only Apply is required.
type Command[Req, Resp any] struct {
	// Prepare runs at the door before the log: it verifies tokens and fills what
	// only the door can know. It says whether it changed the request; the
	// fingerprint is of the request as the caller sent it, so a retry is equal.
	Prepare func(*Door, *Req) (changed bool, err error)
	// Cheap answers from a snapshot when the answer is certain and changes
	// nothing; nil, nil means that the command must be proposed.
	Cheap func(*View, *Req) (*Resp, error)
	// Apply is the behaviour: all refusals first, then the writes. It is
	// deterministic. A *fault.Error is a rejection; any other error stops the
	// shard.
	Apply func(*Ctx, *Req) (*Resp, error)
	// Keep reduces the response to what its receipt stores; nil keeps all.
	Keep func(*Resp) *Resp
	// Recall completes a stored response from state when a retry asks for it, or
	// refuses; nil answers what was stored.
	Recall func(*Ctx, *Req, *Resp) error
	// Transient says that the outcome is no receipt: a retry evaluates again.
	Transient func(*Resp) bool
	// Finish runs at the door after the outcome is durable: it seals tokens.
	Finish func(*Door, *Req, *Resp) error
	Wait   *Wait[Req, Resp]
	// Urgent commands may use the reserve of admission.
	Urgent bool
}

// Query is the behaviour of a query. Only Run is required.
type Query[Req, Resp any] struct {
	Run  func(*View, *Req) (*Resp, error)
	Wait *Wait[Req, Resp]
}

// Composite is the behaviour of an operation that is carried out as several
// commands, each through the door as if its caller had sent it alone. It has no
// place in the log.
type Composite[Req, Resp any] struct {
	// Parts lists the commands in their order: complete and valid when the request is.
	Parts func(*Req) []Part
	// Join makes the response of what became of them, in the same order.
	Join func(*Req, []PartOutcome) *Resp
}

// Part is one command of a composite operation.
type Part struct {
	Op  *api.Operation
	Req api.CommandRequest
}

// PartOutcome is what became of a part: Response when it is committed, Err when it
// is rejected or unknown.
type PartOutcome struct {
	Status   api.PartStatus
	Response any
	Err      *fault.Error
}

// Handler is a Command, Query or Composite with its types erased. Requests and responses
// are pointers to the descriptor's types.
type Handler struct {
	Op        *api.Operation
	Prepare   func(*Door, any) (bool, error)
	Cheap     func(*View, any) (any, error)
	Apply     func(*Ctx, any) (any, error)
	Keep      func(any) any
	Recall    func(*Ctx, any, any) error
	Transient func(any) bool
	Finish    func(d *Door, req, resp any) error
	Run       func(*View, any) (any, error)
	Parts     func(req any) []Part
	Join      func(req any, outcomes []PartOutcome) any
	Urgent    bool

	// AnswerBytes is how many bytes the request wants of the answer at most, 0 where it
	// does not say.
	AnswerBytes func(any) int64

	WaitMillis  func(any) int64
	WaitKeys    func(*View, any) (keys []string, class string, err error)
	WaitAgain   func(any) bool
	WaitUntil   func(any) int64
	WaitExpired func(any)

	receipt []int // index of the response's Receipt field
}

// NewRequest and NewResponse make empty values of the operation's types.
func (h *Handler) NewRequest() any  { return reflect.New(h.Op.Request).Interface() }
func (h *Handler) NewResponse() any { return reflect.New(h.Op.Response).Interface() }

// Receipt is the head of a command's response.
func (h *Handler) Receipt(resp any) api.Receipt {
	return reflect.ValueOf(resp).Elem().FieldByIndex(h.receipt).Interface().(api.Receipt)
}

// SetReceipt fills the head of a command's response.
func (h *Handler) SetReceipt(resp any, r api.Receipt) {
	reflect.ValueOf(resp).Elem().FieldByIndex(h.receipt).Set(reflect.ValueOf(r))
}

// Handle makes the handler of a command.
func Handle[Req, Resp any](o api.Op[Req, Resp], c Command[Req, Resp]) Handler {
	if o.Kind != api.Command || c.Apply == nil {
		panic("op: " + o.Name + " is not a command with behaviour")
	}
	f, ok := o.Response.FieldByName("Receipt")
	if !ok {
		panic("op: the response of " + o.Name + " has no Receipt")
	}
	h := Handler{
		Op: o.Operation, Urgent: c.Urgent, receipt: f.Index, AnswerBytes: answerBytes(o.Operation),
		Apply: func(x *Ctx, req any) (any, error) { return erase(c.Apply(x, req.(*Req))) },
	}
	if c.Prepare != nil {
		h.Prepare = func(d *Door, req any) (bool, error) { return c.Prepare(d, req.(*Req)) }
	}
	if c.Cheap != nil {
		h.Cheap = func(v *View, req any) (any, error) { return erase(c.Cheap(v, req.(*Req))) }
	}
	if c.Keep != nil {
		h.Keep = func(resp any) any { return c.Keep(resp.(*Resp)) }
	}
	if c.Recall != nil {
		h.Recall = func(x *Ctx, req, resp any) error { return c.Recall(x, req.(*Req), resp.(*Resp)) }
	}
	if c.Transient != nil {
		h.Transient = func(resp any) bool { return c.Transient(resp.(*Resp)) }
	}
	if c.Finish != nil {
		h.Finish = func(d *Door, req, resp any) error { return c.Finish(d, req.(*Req), resp.(*Resp)) }
	}
	setWait(&h, c.Wait)
	return h
}

// Ask makes the handler of a query.
func Ask[Req, Resp any](o api.Op[Req, Resp], q Query[Req, Resp]) Handler {
	if o.Kind != api.Query || q.Run == nil {
		panic("op: " + o.Name + " is not a query with behaviour")
	}
	h := Handler{
		Op: o.Operation, AnswerBytes: answerBytes(o.Operation),
		Run: func(v *View, req any) (any, error) { return erase(q.Run(v, req.(*Req))) },
	}
	setWait(&h, q.Wait)
	return h
}

// Compose makes the handler of a composite operation.
func Compose[Req, Resp any](o api.Op[Req, Resp], c Composite[Req, Resp]) Handler {
	if o.Kind != api.Composite || c.Parts == nil || c.Join == nil {
		panic("op: " + o.Name + " is not a composite with behaviour")
	}
	return Handler{
		Op:    o.Operation,
		Parts: func(req any) []Part { return c.Parts(req.(*Req)) },
		Join:  func(req any, outcomes []PartOutcome) any { return c.Join(req.(*Req), outcomes) },
	}
}

// answerBytes reads the field MaxBytes of requests that have one.
func answerBytes(o *api.Operation) func(any) int64 {
	f, ok := o.Request.FieldByName("MaxBytes")
	if !ok {
		return func(any) int64 { return 0 }
	}
	return func(req any) int64 { return reflect.ValueOf(req).Elem().FieldByIndex(f.Index).Int() }
}

// erase keeps a nil pointer nil inside the interface.
func erase[Resp any](resp *Resp, err error) (any, error) {
	if resp == nil {
		return nil, err
	}
	return resp, err
}

func setWait[Req, Resp any](h *Handler, w *Wait[Req, Resp]) {
	if w == nil {
		return
	}
	h.WaitMillis = func(req any) int64 { return w.Millis(req.(*Req)) }
	h.WaitKeys = func(v *View, req any) ([]string, string, error) { return w.Keys(v, req.(*Req)) }
	h.WaitAgain = func(resp any) bool { return w.Again(resp.(*Resp)) }
	h.WaitUntil = func(resp any) int64 {
		if w.Until == nil {
			return 0
		}
		return w.Until(resp.(*Resp))
	}
	h.WaitExpired = func(resp any) {
		if w.Expired != nil {
			w.Expired(resp.(*Resp))
		}
	}
}

// Mutation is the behaviour of one kind of mutation within a batch.
type Mutation struct {
	Kind string
	// Apply evaluates it as the i-th of its batch.
	Apply func(c *Ctx, i int, m *api.Mutation) (api.MutationResult, error)
}

// Due is the behaviour of one kind of due row: do at most budget rows of what
// is due at c.Now for the owner, and arm the next instant. The row that led
// here is already deleted, so the owner's head must be told: its armed instant
// is 0 when the handler begins.
type Due struct {
	Kind  table.DueKind
	Apply func(c *Ctx, owner []byte, budget int) error
}
