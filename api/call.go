package api

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"

	"github.com/keyload/keyload/fault"
)

// Doer evaluates operations: an embedded store, a remote client, a narrowed
// view of either. The request and response are pointers to the operation's
// types. The request is complete: defaults applied, command id set. Errors are
// *fault.Error.
type Doer interface {
	Do(ctx context.Context, op *Operation, req, resp any) error
}

// Call evaluates one operation. It works on a copy of the request, in which it
// fills in absent fields that have a default and, for commands, a new command
// id. To repeat a command after a lost reply, set the id yourself, or take it
// from the error's CommandID. The request must not change during the call.
func Call[Req, Resp any](ctx context.Context, d Doer, op Op[Req, Resp], req *Req) (*Resp, error) {
	own := *req
	id := ""
	if c, ok := any(&own).(CommandRequest); ok {
		if id = c.GetCommandID(); id == "" {
			id = NewCommandID()
			c.SetCommandID(id)
		}
	}
	if c, ok := any(&own).(CompositeRequest); ok {
		c.NameParts()
	}
	ApplyDefaults(&own)
	resp := new(Resp)
	if err := d.Do(ctx, op.Operation, &own, resp); err != nil {
		if e := fault.From(err); e != nil && e.CommandID == "" && id != "" {
			named := *e
			named.CommandID = id
			return nil, &named
		}
		return nil, err
	}
	return resp, nil
}

// NewCommandID makes a command id: a UUID of version 7, whose time lets the
// store refuse retries older than its receipts.
func NewCommandID() string { return uuid.Must(uuid.NewV7()).String() }

// PartID is the command id of the i-th part of a composite operation whose id is
// whole, where the caller gives the part none: a call that is repeated under its id
// repeats its parts under theirs. It keeps the time of a version 7 id.
func PartID(whole string, i int) string {
	id, err := uuid.Parse(whole)
	if err != nil {
		return "" // which is refused, with the id of the whole
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(id[:], uint64(i)))
	part := id
	copy(part[6:], sum[:])
	part[6] = part[6]&0x0f | id[6]&0xf0
	part[8] = part[8]&0x3f | 0x80
	return part.String()
}
