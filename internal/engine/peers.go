package engine

import (
	"context"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/commitlog"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/members"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/wire"
)

// Peers reaches the other nodes of a cluster.
type Peers interface {
	// Node is the id of this node.
	Node() uint64
	// Call asks another node. Errors are *fault.Error: what the other node answered,
	// OwnershipLost (reason unreachable) when it certainly got nothing, or
	// UnknownWriteOutcome when it may have.
	Call(ctx context.Context, node uint64, kind byte, body []byte) ([]byte, error)
}

// The kinds of calls between engines. Append only.
const (
	callDo       byte = 1 // one attempt of an operation on behalf of a caller
	callInternal byte = 2 // a command of the store's own
	callIdentity byte = 3 // the identity of the store, for a node that joins
	// CallStatus is of package membership.
	CallStatus byte = 4
	callWait   byte = 5 // to wait until an attempt that found nothing may find something
)

// forwarded is a call on its way to the node that leads its shard. The caller was
// authenticated by the node that sends it, and is authorized by the one that gets it.
type forwarded struct {
	Op        uint16 `cbor:"1,keyasint"`
	Tenant    string `cbor:"2,keyasint,omitempty"`
	Principal string `cbor:"3,keyasint"`
	Key       string `cbor:"4,keyasint,omitempty"`
	Request   []byte `cbor:"5,keyasint"`
	// Shard and ID are of a command of the store's own.
	Shard uint16 `cbor:"6,keyasint,omitempty"`
	ID    string `cbor:"7,keyasint,omitempty"`
	// Left is how many milliseconds a call wants to wait, Due the instant at which it
	// tries again in any case (0 is none), Look that it first looks whether there is
	// something.
	Left int64 `cbor:"8,keyasint,omitempty"`
	Due  int64 `cbor:"9,keyasint,omitempty"`
	Look bool  `cbor:"10,keyasint,omitempty"`
}

// Answer carries out what another node asked for. Errors are *fault.Error. from was
// proven by its certificate: a node is trusted to say who its callers are.
func Answer(ctx context.Context, e *Engine, from uint64, kind byte, body []byte) ([]byte, error) {
	if kind == callIdentity {
		return letIn(ctx, e, from, body)
	}
	if err := joined(e, from); err != nil {
		return nil, e.public(err, "")
	}
	var f forwarded
	if err := wire.DecodeLog(body, &f); err != nil {
		return nil, fault.New(fault.Validation, "peer_call", "the call of another node cannot be read; it runs another version perhaps: %v", err)
	}
	h, ok := e.registry.Numbered(f.Op)
	if !ok || !suits(kind, h) {
		return nil, fault.New(fault.UnsupportedCapability, "peer_call", "this node does not know operation %d in a call of kind %d; it runs another version perhaps", f.Op, kind)
	}
	req := h.NewRequest()
	if err := wire.DecodeLog(f.Request, req); err != nil {
		return nil, fault.New(fault.Validation, "peer_call", "the request of another node cannot be read: %v", err)
	}
	if err := e.enter(); err != nil {
		return nil, e.public(err, "")
	}
	defer e.calls.Done()
	resp, err := carryOut(ctx, e, kind, h, &f, req)
	if err != nil {
		return nil, e.public(err, "")
	}
	b, err := wire.EncodeLog(resp)
	if err != nil {
		return nil, e.public(err, "")
	}
	return b, nil
}

// joined refuses a node that is not in the list of members as this node knows it: a
// certificate alone, or one of a node that was removed, speaks for no caller. A list that
// lags by a little refuses for as long, and the other node tries again.
func joined(e *Engine, node uint64) error {
	s := e.store.NewSnapshot()
	defer s.Close()
	n, err := members.Find(s, system.CatalogShard, node)
	if err == nil && n.State == api.NodeJoined {
		return nil
	}
	if err != nil && fault.From(err) == nil {
		return err
	}
	return fault.New(fault.OwnershipLost, reasonUnreachable, "node %d is no member of this cluster; nothing happened", node)
}

// suits says that an operation may come in a call of a kind.
func suits(kind byte, h *op.Handler) bool {
	switch kind {
	case callDo:
		return h.Op.Number < internalNumbers
	case callInternal:
		return h.Op.Number >= internalNumbers
	case callWait:
		return h.WaitMillis != nil
	}
	return false
}

func carryOut(ctx context.Context, e *Engine, kind byte, h *op.Handler, f *forwarded, req any) (any, error) {
	c := &call{Engine: e, h: h, asked: req, given: true, who: &Caller{f.Tenant, f.Principal, f.Key}}
	switch kind {
	case callWait:
		c.req = req
		return park(ctx, c, f)
	case callDo:
		return c.do(ctx)
	}
	if st := e.log.Status(f.Shard); f.Shard > e.identity.Shards || !st.Here {
		return nil, notLeader(f.Shard)
	}
	return spread{e}.propose(ctx, f.Shard, h.Op, f.ID, req, f.Request)
}

// Members is the list of members.
type Members struct {
	All    []api.ClusterNode // that ever were, by id
	Chosen map[uint16]uint64 // the node that should lead a shard, by its number
}

// Standing is where a shard stands on this node.
func Standing(e *Engine, shard uint16) commitlog.Status { return e.log.Status(shard) }
