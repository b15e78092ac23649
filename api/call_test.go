package api

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/keyload/keyload/fault"
)

// doer answers with a function: the smallest store there is.
type doer func(op *Operation, req, resp any) error

func (d doer) Do(_ context.Context, op *Operation, req, resp any) error { return d(op, req, resp) }

func TestACallIsCompleteWhenItReachesTheStore(t *testing.T) {
	req := QueuesReceiveRequest{Lane: LaneRef{Queue: "q"}, WaitMillis: 5}
	var ids []string
	d := doer(func(op *Operation, r, resp any) error {
		got := r.(*QueuesReceiveRequest)
		if op.Name != "queues.receive" || got.MaxMessages != 1 || got.LeaseSeconds != 30 || got.WaitMillis != 5 || got.Lane.Partition.Tenant != "default" {
			t.Errorf("%s got %+v", op.Name, got)
		}
		if v := Validate(r); v != nil {
			t.Errorf("not valid: %v", v)
		}
		ids = append(ids, got.RequestID)
		resp.(*QueuesReceiveResponse).Reason = ReasonEmpty
		return nil
	})
	for range 2 {
		if resp, err := Call(context.Background(), d, QueuesReceive, &req); err != nil || resp.Reason != ReasonEmpty {
			t.Fatalf("%+v, %v", resp, err)
		}
	}
	if ids[0] == ids[1] || req.RequestID != "" {
		t.Errorf("two calls have the ids %v; the request's became %q", ids, req.RequestID)
	}
	for _, id := range ids {
		if u, err := uuid.Parse(id); err != nil || u.Version() != 7 {
			t.Errorf("%s is no UUID of version 7", id)
		}
	}
	req.RequestID = someUUID
	if _, err := Call(context.Background(), d, QueuesReceive, &req); err != nil || ids[2] != someUUID {
		t.Errorf("the caller's id became %s, %v", ids[2], err)
	}
}

func TestAFailedCommandNamesItsIDSoThatItCanBeRepeated(t *testing.T) {
	shared := fault.New(fault.UnknownWriteOutcome, "connection_lost", "the connection was lost")
	var sent string
	d := doer(func(_ *Operation, req, _ any) error {
		sent = req.(CommandRequest).GetCommandID()
		return shared
	})
	_, err := Call(context.Background(), d, CommandsCommit, &CommandsCommitRequest{})
	if e := fault.From(err); e == nil || e.CommandID != sent || sent == "" || e.Code != fault.UnknownWriteOutcome {
		t.Errorf("sent %q, got %v", sent, err)
	}
	if shared.CommandID != "" {
		t.Error("the store's error was changed")
	}
	other := errors.New("not one of ours")
	if _, err := Call(context.Background(), doer(func(*Operation, any, any) error { return other }), DocumentsGet, &DocumentsGetRequest{}); !errors.Is(err, other) {
		t.Errorf("got %v", err)
	}
}

func TestTheNeedsOfARequestAreThoseOfItsParts(t *testing.T) {
	commit := &CommandsCommitRequest{Mutations: []Mutation{
		{PutDocument: &PutDocument{Collection: "orders"}}, {PatchDocument: &PatchDocument{Collection: "orders"}},
		{DeleteDocument: &DeleteDocument{Collection: "carts"}}, {AppendEvents: &AppendEvents{StreamSet: "s"}},
		{Publish: &Publish{Topic: "t"}}, {PurgeTopic: &PurgeTopic{Topic: "t"}}, {Enqueue: &Enqueue{Queue: "q"}},
		{CancelMessage: &CancelMessage{Queue: "q"}}, {RescheduleMessage: &RescheduleMessage{Queue: "q"}},
		{RedriveMessage: &RedriveMessage{Queue: "q"}}, {},
	}}
	all := []Need{
		{CapDocumentsWrite, "orders"}, {CapDocumentsWrite, "carts"}, {CapEventsAppend, "s"}, {CapTopicsPublish, "t"},
		{CapTopicsPurge, "t"}, {CapQueuesPublish, "q"}, {CapQueuesManage, "q"}, {CapDeadLettersRedrive, "q"},
	}
	for _, c := range []struct {
		op   *Operation
		req  any
		want []Need
	}{
		{CommandsCommit.Operation, commit, all},
		{
			QueuesProcess.Operation, &QueuesProcessRequest{Lane: LaneRef{Queue: "in"}, Effects: commit.Mutations},
			append([]Need{{CapQueuesConsume, "in"}}, all...),
		},
		{QueuesReceive.Operation, &QueuesReceiveRequest{Lane: LaneRef{Queue: "in"}}, []Need{{CapQueuesConsume, "in"}}},
		{EventsRead.Operation, &EventsReadRequest{Source: SourceRef{Resource: "t", Kind: SourceTopic}}, []Need{{CapTopicsRead, "t"}}},
		{EventsRead.Operation, &EventsReadRequest{Source: SourceRef{Resource: "s", Kind: SourceStream}}, []Need{{CapEventsRead, "s"}}},
		{CommandsInbox.Operation, &CommandsInboxRequest{Effects: commit.Mutations}, all},
		{CommandsInbox.Operation, &CommandsInboxRequest{}, []Need{{CapAnyMutation, ""}}},
		{CommandsOutcome.Operation, &CommandsOutcomeRequest{}, nil},
		{AdminStatus.Operation, &AdminStatusRequest{}, []Need{{CapDiagnose, ""}}},
		{PrincipalsGet.Operation, &PrincipalsGetRequest{ID: "p"}, []Need{{CapSecurityManage, ""}}},
	} {
		got := c.op.Needs(c.req)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", c.op.Name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", c.op.Name, got[i], c.want[i])
			}
		}
	}
}

func TestEveryOperationOnAResourceNeedsACapabilityOnIt(t *testing.T) {
	for _, op := range Operations() {
		switch op.Name {
		case "commands.commit", "commands.inbox", "commands.outcome":
			continue // the mutations' needs; the caller's own commands
		}
		if op.Capability == "" {
			t.Errorf("%s: anybody may call it", op.Name)
		}
	}
}

func TestTheNeedForAnyMutationIsMetByEveryKindsAndIsNoCapability(t *testing.T) {
	want := []Capability{
		CapDocumentsWrite, CapEventsAppend, CapTopicsPublish, CapTopicsPurge, CapQueuesPublish, CapQueuesManage, CapDeadLettersRedrive,
	}
	if got := MutationCapabilities(); !slices.Equal(got, want) {
		t.Errorf("mutations need %v, want %v", got, want)
	}
	if CapAnyMutation.Known() {
		t.Error("it could be granted")
	}
}

func TestRolesGrowFromReaderToAdmin(t *testing.T) {
	has := func(r Role) map[Capability]bool {
		m := map[Capability]bool{}
		for _, c := range RoleCapabilities(r) {
			if !c.Known() || m[c] {
				t.Errorf("%s: %s is unknown or repeated", r, c)
			}
			m[c] = true
		}
		return m
	}
	reader, operator, admin := has(RoleReader), has(RoleOperator), has(RoleAdmin)
	for c := range reader {
		if !operator[c] {
			t.Errorf("an operator lacks %s", c)
		}
	}
	for _, c := range AllCapabilities() {
		if !admin[c] {
			t.Errorf("an admin lacks %s", c)
		}
	}
	for _, c := range []Capability{CapDocumentsWrite, CapQueuesConsume, CapSecurityManage} {
		if reader[c] || operator[c] {
			t.Errorf("a reader or operator may %s", c)
		}
	}
	if has(RoleProducer)[CapQueuesConsume] || has(RoleWorker)[CapQueuesManage] || has(RoleWorker)[CapSecurityManage] {
		t.Error("a producer or worker may too much")
	}
	if RoleCapabilities("root") != nil {
		t.Error("an unknown role may do something")
	}
}
