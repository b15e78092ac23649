package queue

import (
	"reflect"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
)

func TestTheLongestTokenFitsItsBound(t *testing.T) {
	const most = 1<<63 - 1
	x := Claims{MessageID: strings.Repeat("é", 128), Generation: most, LeaseVersion: most, epoch: most, resource: 1<<32 - 1}
	for i := range x.partition {
		x.partition[i], x.principal[i] = 0xFF, 0xFE
	}
	s := token.NewSealer(incarnation, token.Keys{make([]byte, 32)})
	text := s.Seal(token.Delivery, x.append(nil))
	if len(text) > token.MaxBytes {
		t.Errorf("a token takes %d bytes, at most %d", len(text), token.MaxBytes)
	}
	b, err := s.Open(token.Delivery, text)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := readClaims(b); !ok || got != x {
		t.Errorf("read %+v, want %+v", got, x)
	}
	for n := range b {
		if got, ok := readClaims(b[:n]); ok && n < len(b)-len(x.MessageID)+1 {
			t.Errorf("%d of %d bytes read as %+v", n, len(b), got)
		}
	}
}

func TestARepeatedReceiveAnswersTheSameDeliveriesWhileTheLeasesLast(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue(api.Message{MessageID: "a", Payload: api.Of(1), Headers: map[string]string{"k": "v"}}, api.Message{MessageID: "b", PayloadBase64: []byte("x"), ContentType: "t"})
	req := api.QueuesReceiveRequest{RequestID: b.id(), MaxMessages: 2}
	first, err := b.tryReceive(req)
	b.must(err)
	b.now += 5_000
	b.restart()
	before := b.rows()
	second, err := b.tryReceive(req)
	b.must(err)
	if !reflect.DeepEqual(first, second) || len(second.Deliveries) != 2 {
		t.Errorf("first %+v\nthen %+v", first, second)
	}
	if !equalRows(before, b.rows()) {
		t.Errorf("a repeat changed rows")
	}
	b.now = start + 30_000
	if _, err := b.tryReceive(req); code(err) != "LeaseExpired/lease_expired" {
		t.Errorf("after the leases: %v", err)
	}
	b.enqueue(msg("c"))
	req = api.QueuesReceiveRequest{RequestID: b.id()}
	r, err := b.tryReceive(req)
	b.must(err)
	b.ack(r.Deliveries[0])
	if _, err := b.tryReceive(req); code(err) != "StaleLease/lease_replaced" {
		t.Errorf("after an ack: %v", err)
	}
}

func TestAnEmptyReceiveIsNoReceipt(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	req := api.QueuesReceiveRequest{RequestID: b.id()}
	if r, err := b.tryReceive(req); err != nil || len(r.Deliveries) != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	b.enqueue(msg("a"))
	if r, err := b.tryReceive(req); err != nil || len(r.Deliveries) != 1 {
		t.Errorf("the same request after an enqueue: %+v %v", r, err)
	}
}

func TestARepeatedCompleteAnswersItsResultsWithTheSameTokens(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(3)
	ds := b.receive(3).Deliveries
	req := &api.QueuesCompleteRequest{CommandID: b.id(), Lane: b.lane(), Items: []api.CompleteItem{
		{Token: ds[0].Token, Action: api.ActionAck}, {Token: "bad", Action: api.ActionAck},
		{Token: ds[1].Token, Action: api.ActionRenew, LeaseSeconds: 100}, {Token: ds[2].Token, Action: api.ActionNack},
	}}
	first, err := call(b, api.QueuesComplete, req)
	b.must(err)
	if len(req.Items[1].Token) != 3 {
		t.Errorf("the caller's request was changed")
	}
	b.restart()
	b.now += 500_000
	before := b.rows()
	second, err := call(b, api.QueuesComplete, req)
	b.must(err)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("first %+v\nthen %+v", first.Results, second.Results)
	}
	if !equalRows(before, b.rows()) {
		t.Errorf("a repeat changed rows")
	}
}

func TestATokenHoldsForItsLanePrincipalPolicyAndIncarnationOnly(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.configure("other", api.QueuePolicy{}, func(*api.Resource) {})
	b.principal(api.Principal{ID: "w1", Tenant: "default", Roles: []api.Role{api.RoleWorker}, PolicyEpoch: 1})
	b.principal(api.Principal{ID: "w2", Tenant: "default", Roles: []api.Role{api.RoleWorker}, PolicyEpoch: 1})
	b.fill(2)
	b.tenant, b.who = "default", "w1"
	req := api.QueuesReceiveRequest{RequestID: b.id()}
	r, err := b.tryReceive(req)
	b.must(err)
	d := r.Deliveries[0]
	attempt := func(want string) {
		t.Helper()
		before := b.rows()
		if r := b.ack(d)[0]; code(r.Error) != want {
			t.Errorf("%v, want %s", r.Error, want)
		}
		if !equalRows(before, b.rows()) {
			t.Errorf("%s changed rows", want)
		}
	}
	b.who = "w2"
	attempt("PermissionDenied/other_principal")
	b.who = "w1"
	lane := b.lane()
	lane.Queue = "other"
	other, err := call(b, api.QueuesComplete, &api.QueuesCompleteRequest{CommandID: b.id(), Lane: lane, Items: []api.CompleteItem{{Token: d.Token, Action: api.ActionAck}}})
	b.must(err)
	if code(other.Results[0].Error) != "TokenInvalidated/other_lane" {
		t.Errorf("another lane: %v", other.Results[0].Error)
	}
	b.place.Key = "elsewhere"
	attempt("TokenInvalidated/other_lane")
	b.place.Key = "main"
	good := b.sealer
	b.sealer = token.NewSealer([16]byte{9}, token.Keys{[]byte(strings.Repeat("k", 32))})
	attempt("TokenInvalidated/other_incarnation")
	b.sealer = good
	b.principal(api.Principal{ID: "w1", Tenant: "default", Roles: []api.Role{api.RoleWorker}, PolicyEpoch: 2})
	attempt("PermissionDenied/policy_epoch")
	if _, err := b.tryReceive(req); code(err) != "PermissionDenied/policy_epoch" {
		t.Errorf("a repeated receive after a policy change: %v", err)
	}
	b.tenant, b.who = "", "root"
}

func TestForgedTokensChangeNothingAndCrashNothing(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(1)
	d := b.one()
	before := b.rows()
	for i := range d.Token {
		c := byte('A')
		if d.Token[i] == c {
			c = 'B'
		}
		r := b.complete(api.CompleteItem{Token: d.Token[:i] + string(c) + d.Token[i+1:], Action: api.ActionAck})[0]
		if r.Error == nil {
			t.Fatalf("a token with byte %d altered was accepted", i)
		}
	}
	for _, text := range []string{"-", "A", strings.Repeat("A", 512), "..", "é"} {
		if r := b.complete(api.CompleteItem{Token: text, Action: api.ActionAck})[0]; code(r.Error) != "Validation/bad_token" {
			t.Errorf("%q: %v", text, r.Error)
		}
	}
	if !equalRows(before, b.rows()) {
		t.Errorf("a forged token changed rows")
	}
}

func TestAReceiptHoldsNoPayloadAndNoToken(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue(api.Message{MessageID: "a", Payload: api.Of("SECRETPAYLOAD"), Headers: map[string]string{"h": "SECRETHEADER"}})
	d := b.one()
	b.complete(api.CompleteItem{Token: d.Token, Action: api.ActionRenew})
	snap := b.store.NewSnapshot()
	defer snap.Close()
	b.must(snap.Scan([]byte{byte(table.Receipt)}, []byte{byte(table.Receipt) + 1}, false, func(_, v []byte) (bool, error) {
		if s := string(v); strings.Contains(s, "SECRETPAYLOAD") && !strings.Contains(s, "enqueue") || strings.Contains(s, d.Token[:40]) {
			t.Errorf("a receipt holds what it must not: %q", s)
		}
		return true, nil
	}))
}
