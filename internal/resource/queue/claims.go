package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/table"
)

// Claims are what a delivery token proves: which lease of which message it is,
// of which lane, and whose. With the longest message id the token text takes
// 478 bytes of the 512 there are.
type Claims struct {
	MessageID    string
	Generation   uint64 // delivery generation
	LeaseVersion uint64
	epoch        uint64 // the holder's policy epoch
	partition    [16]byte
	resource     uint32
	principal    [16]byte
}

const claimsVersion = 1

// append is the form of claims inside a token.
func (x *Claims) append(dst []byte) []byte {
	dst = append(dst, claimsVersion)
	dst = append(dst, x.partition[:]...)
	dst = codec.AppendUint32(dst, x.resource)
	dst = append(dst, x.principal[:]...)
	dst = codec.AppendUvarint(dst, x.Generation)
	dst = codec.AppendUvarint(dst, x.LeaseVersion)
	dst = codec.AppendUvarint(dst, x.epoch)
	return append(dst, x.MessageID...)
}

// readClaims takes verified claims apart.
func readClaims(b []byte) (Claims, bool) {
	const fixed = 1 + 16 + 4 + 16
	if len(b) < fixed || b[0] != claimsVersion {
		return Claims{}, false
	}
	var x Claims
	kr := codec.NewKeyReader(b[1:fixed])
	copy(x.partition[:], kr.Bytes(16))
	x.resource = kr.Uint32()
	copy(x.principal[:], kr.Bytes(16))
	r := codec.NewReader(b[fixed:])
	x.Generation, x.LeaseVersion, x.epoch = r.Uvarint(), r.Uvarint(), r.Uvarint()
	if r.Err() != nil {
		return Claims{}, false
	}
	used := fixed + uvarintBytes(x.Generation) + uvarintBytes(x.LeaseVersion) + uvarintBytes(x.epoch)
	x.MessageID = string(b[used:])
	return x, x.MessageID != ""
}

// holder is the part of claims that all deliveries of one caller and lane
// share.
func holder(owner table.Owner, p *api.Principal) Claims {
	return Claims{partition: owner.Partition, resource: owner.Resource, principal: access.Hash(p.Tenant, p.ID), epoch: p.PolicyEpoch}
}

// holder is who the lease was given to.
func (x *Claims) holder() leasing.Holder {
	return leasing.Holder{Principal: x.principal, Policy: x.epoch}
}

// unsealed is the claims of a message's lease as they stand in a response until
// the door seals them.
func (x Claims) unsealed(id string, m *message) string {
	x.MessageID, x.Generation, x.LeaseVersion = id, m.Generation, m.LeaseVersion
	return string(x.append(make([]byte, 0, 64+len(id))))
}

// scoped takes a token apart that the door has let through and checks that it
// is for this lane and this caller. Errors: TokenInvalidated, PermissionDenied,
// Validation.
func scoped(text string, want *Claims) (Claims, error) {
	b, ok, err := leasing.Claims(text)
	if err != nil {
		return Claims{}, err
	}
	x, readable := readClaims(b)
	switch {
	case !ok || !readable:
		return Claims{}, fault.New(fault.Validation, "bad_token", "this is not a delivery token as the store gave it; use the token exactly as it was delivered")
	case x.partition != want.partition || x.resource != want.resource:
		return Claims{}, fault.New(fault.TokenInvalidated, "other_lane", "the token is for another queue or partition, or for one of the same name that was deleted since")
	}
	if err := x.holder().Check(want.holder()); err != nil {
		return Claims{}, err
	}
	return x, nil
}

// live checks that the lease the claims name is the one the message is under.
// Errors: NotFound, StaleLease, LeaseExpired.
func live(x *Claims, m *message, now int64) error {
	switch {
	case m == nil:
		return unknownMessage(x.MessageID)
	case m.State != leased || m.Generation != x.Generation || m.LeaseVersion != x.LeaseVersion:
		return fault.New(fault.StaleLease, "lease_replaced", "the lease ended and the message has moved on: it is %s now; whatever the handler did, only the current holder may complete it", m.State.name()).
			With("state", "%s", m.State.name()).With("serverTime", "%s", api.Time(now)).
			With("attempts", "%d", m.Attempts).With("nextAction", "drop this delivery; queues.process with the same handler scope answers the next holder alreadyProcessed if the effects were committed")
	case m.Lease.Until <= now:
		return fault.New(fault.LeaseExpired, "lease_expired", "the lease ended at %s and it is %s now; the message will be delivered again. Renew before the deadline, ask for a longer lease, or commit effects with queues.process so that a repeat is harmless",
			api.Time(m.Lease.Until), api.Time(now)).
			With("deadline", "%s", api.Time(m.Lease.Until)).With("serverTime", "%s", api.Time(now)).
			With("state", "%s", m.State.name()).With("attempts", "%d", m.Attempts).
			With("nextAction", "receive again; any worker of the queue may")
	}
	return nil
}
