package group

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/token"
)

// refuses tries a token with every use a token has and wants the same code each
// time, and no row changed.
func (b *bed) refuses(what, text, want string) {
	b.t.Helper()
	before := b.rows()
	for _, action := range []api.CompleteAction{api.ActionAck, api.ActionNack, api.ActionRenew, api.ActionRelease} {
		r, err := b.tryComplete("g", api.CompleteItem{Token: text, Action: action})
		if err == nil {
			err = r.Results[0].Error
		}
		if got := code(err); got != want {
			b.t.Errorf("%s with %s: %s, want %s", action, what, got, want)
		}
	}
	_, err := b.process(api.GroupDelivery{Token: text}, "scope", output("never"))
	if got := code(err); got != want {
		b.t.Errorf("process with %s: %s, want %s", what, got, want)
	}
	b.same(what, before)
}

func TestATokenHoldsForNothingButTheDeliveryItIsOf(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.create("other", api.GroupDefinition{})
	b.must(b.commit(api.Mutation{AppendEvents: &api.AppendEvents{StreamSet: "streams", StreamID: "s", Generation: 1, Expected: api.ExpectAny(), Events: []api.Event{event("a")}}}))
	elsewhere := api.GroupRef{Source: b.stream("s"), Group: "g"}
	_, err := call(b, api.SubscriptionsConfigure, &api.SubscriptionsConfigureRequest{CommandID: b.id(), Group: elsewhere, Definition: defined(api.GroupDefinition{})})
	b.must(err)
	b.fill(2)
	mine := b.one()
	b.refuses("a token of another group", b.of("other", 1).Deliveries[0].Token, "TokenInvalidated/other_group")
	r, err := b.tryReceive(api.SubscriptionsReceiveRequest{Group: elsewhere})
	b.must(err)
	b.refuses("a token of another source", r.Deliveries[0].Token, "TokenInvalidated/other_group")
	b.refuses("nonsense", "nonsense", "Validation/bad_token")
	b.refuses("a truncated token", mine.Token[:len(mine.Token)-4], "Validation/bad_token")
	for i := range len(mine.Token) {
		letter := byte('A')
		if mine.Token[i] == letter {
			letter = 'B'
		}
		altered := mine.Token[:i] + string(letter) + mine.Token[i+1:]
		out, err := b.tryComplete("g", api.CompleteItem{Token: altered, Action: api.ActionAck})
		if err == nil {
			err = out.Results[0].Error
		}
		if err == nil {
			t.Fatalf("a token altered at %d is accepted", i)
		}
	}
	b.refuses("a token longer than any", strings.Repeat("A", limits.TokenBytes+1), "Validation/invalid_field")
	b.refuses("one as long as any", strings.Repeat("A", limits.TokenBytes), "Validation/bad_token")
	cursor, err := ask(b, api.EventsRead, &api.EventsReadRequest{Source: b.news()})
	b.must(err)
	b.refuses("a cursor", cursor.Cursor, "Validation/bad_token")
	claims, err := b.sealer.Open(token.GroupDelivery, mine.Token)
	b.must(err)
	b.refuses("a queue's token of the same claims", b.sealer.Seal(token.Delivery, claims), "Validation/bad_token")
	restored := token.NewSealer([16]byte{9}, token.Keys{bytes.Repeat([]byte{7}, 32)})
	b.refuses("a token of another history", restored.Seal(token.GroupDelivery, claims), "TokenInvalidated/other_incarnation")
	stranger := token.NewSealer(incarnation, token.Keys{bytes.Repeat([]byte{8}, 32)})
	b.refuses("a token of another key", stranger.Seal(token.GroupDelivery, claims), "Validation/bad_token")
	for n := range len(claims) { // sealed by the store, and of no form it gives
		b.refuses(fmt.Sprintf("%d bytes of claims", n), b.sealer.Seal(token.GroupDelivery, claims[:n]), "Validation/bad_token")
	}
	b.refuses("claims with a byte more", b.sealer.Seal(token.GroupDelivery, append(slices.Clone(claims), 0)), "Validation/bad_token")
	later := slices.Clone(claims)
	later[0]++
	b.refuses("claims of a later version", b.sealer.Seal(token.GroupDelivery, later), "Validation/bad_token")
	b.ack(mine)
	b.refuses("a token whose work is done", mine.Token, "NotFound/unknown_delivery")
}

func TestATokenHoldsForItsPrincipalAtItsPolicyOnly(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	worker := api.Principal{ID: "worker", Tenant: "default", Roles: []api.Role{api.RoleWorker}, PolicyEpoch: 1}
	b.principal(worker)
	b.fill(2)
	mine := b.one()
	b.as("worker", func() { b.refuses("another principal's token", mine.Token, "PermissionDenied/other_principal") })
	var theirs api.GroupDelivery
	b.as("worker", func() { theirs = b.one() })
	b.refuses("a worker's token", theirs.Token, "PermissionDenied/other_principal")
	worker.PolicyEpoch++
	b.principal(worker)
	b.as("worker", func() { b.refuses("a token of an older policy", theirs.Token, "PermissionDenied/policy_epoch") })
	b.later(31_000)
	b.as("worker", func() { b.later(1_000); b.ack(b.receive(2).Deliveries...) })
}

func TestATokenOfAnOlderGenerationHoldsNoMore(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(3)
	first := b.one()
	b.seek(1)
	b.refuses("a token from before a seek", first.Token, "TokenInvalidated/generation_changed")
	second := b.one()
	if second.Event.Position != 1 {
		t.Fatalf("%+v", second)
	}
	b.refuses("a token from before a seek, the position leased again", first.Token, "TokenInvalidated/generation_changed")
	b.reconfigure(typed("a"))
	b.refuses("a token from before an update", second.Token, "TokenInvalidated/generation_changed")
	b.ack(b.one())
	b.must(b.delete("g", 1))
	b.create("g", api.GroupDefinition{})
	b.refuses("a token of the group of this name that was deleted", first.Token, "TokenInvalidated/other_group")
}

func TestATokenOfAnEarlierLeaseIsStale(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(1)
	first := b.one()
	b.now += 30_000
	b.refuses("a token whose lease is over", first.Token, "LeaseExpired/lease_expired")
	b.tick()
	b.refuses("a token whose lease was lost", first.Token, "StaleLease/lease_replaced")
	b.later(1_000)
	second := b.one()
	b.refuses("a token whose position another holds", first.Token, "StaleLease/lease_replaced")
	renewed := b.did(api.CompleteItem{Token: second.Token, Action: api.ActionRenew, LeaseSeconds: 60})
	b.refuses("a token that was renewed", second.Token, "StaleLease/lease_replaced")
	b.ack(api.GroupDelivery{Token: renewed.Token})
}

func TestTokensAreShortEnough(t *testing.T) {
	x := claims{
		partition: [16]byte(bytes.Repeat([]byte{255}, 16)), resource: 1<<32 - 1, principal: [16]byte(bytes.Repeat([]byte{255}, 16)),
		id: 1<<64 - 1, generation: 1<<64 - 1, epoch: 1<<64 - 1, policy: 1<<64 - 1,
	}
	text := token.NewSealer(incarnation, token.Keys{bytes.Repeat([]byte{7}, 32)}).Seal(token.GroupDelivery, []byte(x.unsealed(place{true, limits.Number}, 1<<64-1)))
	if len(text) > limits.TokenBytes {
		t.Errorf("the longest token has %d bytes", len(text))
	}
}

func FuzzClaimsAreReadOrRefused(f *testing.F) {
	x := claims{partition: [16]byte{1}, resource: 2, principal: [16]byte{3}, id: 4, generation: 5, epoch: 6, place: place{true, 7}, version: 8, policy: 9}
	f.Add(x.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, ok := readClaims(b)
		if !ok {
			return
		}
		again, ok := readClaims(x.append(nil))
		if !ok || again != x {
			t.Errorf("%+v is read back as %+v", x, again)
		}
	})
}
