package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/token"
)

// claims are what a group's delivery token proves: which lease of which position
// it is, of which group at which generation, and whose.
type claims struct {
	partition  [16]byte
	resource   uint32
	principal  [16]byte
	id         uint64 // number of the group
	generation uint64
	epoch      uint64 // ownership epoch
	place      place
	version    uint64 // number of the lease
	policy     uint64 // the holder's policy epoch
}

const claimsVersion = 1

func (x *claims) append(dst []byte) []byte {
	dst = append(append(dst, claimsVersion), x.partition[:]...)
	dst = append(codec.AppendUint32(dst, x.resource), x.principal[:]...)
	for _, v := range [...]uint64{x.id, x.generation, x.epoch, x.place.code(), x.version, x.policy} {
		dst = codec.AppendUvarint(dst, v)
	}
	return dst
}

// readClaims takes verified claims apart.
func readClaims(b []byte) (x claims, ok bool) {
	const fixed = 1 + 16 + 4 + 16
	if len(b) < fixed || b[0] != claimsVersion {
		return x, false
	}
	kr := codec.NewKeyReader(b[1:fixed])
	copy(x.partition[:], kr.Bytes(16))
	x.resource = kr.Uint32()
	copy(x.principal[:], kr.Bytes(16))
	r := codec.NewReader(b[fixed:])
	var code uint64
	for _, v := range []*uint64{&x.id, &x.generation, &x.epoch, &code, &x.version, &x.policy} {
		*v = r.Uvarint()
	}
	x.place = placeOf(code)
	return x, r.End() == nil && x.place.Position > 0
}

// holder is the part of claims that all deliveries of one caller and group
// share.
func holder(g *group) claims {
	p := g.c.Principal
	return claims{
		partition: g.ref.Owner.Partition, resource: g.ref.Owner.Resource, principal: access.Hash(p.Tenant, p.ID),
		id: g.ref.ID, generation: g.head.Generation, epoch: g.head.Epoch, policy: p.PolicyEpoch,
	}
}

// holder is who the lease was given to.
func (x *claims) holder() leasing.Holder {
	return leasing.Holder{Principal: x.principal, Policy: x.policy}
}

// unsealed is the claims of a place's lease as they stand in a response until the
// door seals them.
func (x claims) unsealed(p place, version uint64) string {
	x.place, x.version = p, version
	return string(x.append(make([]byte, 0, 80)))
}

// verifyToken refuses, at the door, a delivery token that does not hold.
func verifyToken(d *op.Door, text string) error {
	_, err := d.Tokens.Open(token.GroupDelivery, text)
	return err
}

// scoped takes a token apart that the door has let through and checks that it is
// for this group, as it is now, and for this caller. Errors: TokenInvalidated,
// PermissionDenied, Validation.
func scoped(text string, want *claims) (claims, error) {
	b, ok, err := leasing.Claims(text)
	if err != nil {
		return claims{}, err
	}
	x, readable := readClaims(b)
	switch {
	case !ok || !readable:
		return claims{}, fault.New(fault.Validation, "bad_token", "this is not a delivery token of a group as the store gave it; use the token exactly as it was delivered")
	case x.partition != want.partition || x.resource != want.resource || x.id != want.id:
		return claims{}, fault.New(fault.TokenInvalidated, "other_group", "the token is for another group, source or partition, or for one of the same name that was deleted since")
	}
	if err := x.holder().Check(want.holder()); err != nil {
		return claims{}, err
	}
	if x.generation != want.generation || x.epoch != want.epoch {
		return claims{}, fault.New(fault.TokenInvalidated, "generation_changed", "the group was moved or given another filter since the delivery (generation %d then, %d now); drop the delivery and receive again", x.generation, want.generation).
			With("generation", "%d", want.generation).With("tokenGeneration", "%d", x.generation)
	}
	return x, nil
}

// live checks that the lease the claims name is the one the place is under.
// Errors: NotFound, StaleLease, LeaseExpired.
func live(x *claims, e *entry, now int64) error {
	at := x.place.Position
	switch {
	case e == nil:
		return fault.New(fault.NotFound, "unknown_delivery", "position %d is not with any worker: it is finished for the group", at).
			With("position", "%d", at)
	case e.State != leased || e.Batch != x.version:
		return fault.New(fault.StaleLease, "lease_replaced", "the lease ended and position %d has moved on: it is %s now; whatever the handler did, only the current holder may complete it", at, e.State.name()).
			With("position", "%d", at).With("state", "%s", e.State.name()).With("serverTime", "%s", api.Time(now)).With("attempts", "%d", e.Attempts).
			With("nextAction", "drop this delivery; subscriptions.process with the same handler scope answers the next holder alreadyProcessed if the effects were committed")
	case e.Until <= now:
		return fault.New(fault.LeaseExpired, "lease_expired", "the lease on position %d ended at %s and it is %s now; the event will be delivered again. Renew before the deadline, ask for a longer lease, or commit effects with subscriptions.process so that a repeat is harmless",
			at, api.Time(e.Until), api.Time(now)).
			With("position", "%d", at).With("deadline", "%s", api.Time(e.Until)).With("serverTime", "%s", api.Time(now)).
			With("state", "%s", e.State.name()).With("attempts", "%d", e.Attempts).
			With("nextAction", "receive again; any worker of the group may")
	}
	return nil
}
