package client

import (
	"context"

	"github.com/keyload/keyload/api"
)

// Calls are the typed calls of every operation on anything that evaluates
// operations: a Client, an embedded store, a narrowed view of either. Embed it.
//
// A write that is not given a command id gets a new one; the error of a write
// names it in CommandID. Absent fields of a request take the defaults of its
// type; the zero PartitionRef is default/main/main/main.
type Calls struct {
	Data
	Reads
	Groups
	Admin
}

// CallsOf makes the typed calls of d.
func CallsOf(d api.Doer) Calls { return Calls{Data{d}, Reads{d}, Groups{d}, Admin{d}} }

// Data are the calls on documents, events and messages.
type Data struct{ doer api.Doer }

// Commit applies 1 to 256 mutations to one partition in order, all or none.
func (d Data) Commit(ctx context.Context, p api.PartitionRef, mutations ...api.Mutation) (*api.CommandsCommitResponse, error) {
	return d.CommitAs(ctx, "", p, mutations...)
}

// CommitAs is Commit under a command id of yours, a UUID: keep it to repeat the
// commit after a restart of your program, or derive it from your input.
func (d Data) CommitAs(ctx context.Context, commandID string, p api.PartitionRef, mutations ...api.Mutation) (*api.CommandsCommitResponse, error) {
	return api.Call(ctx, d.doer, api.CommandsCommit, &api.CommandsCommitRequest{CommandID: commandID, Partition: p, Mutations: mutations})
}

// Outcome says what became of a command of the caller.
func (d Data) Outcome(ctx context.Context, p api.PartitionRef, commandID string) (*api.CommandsOutcomeResponse, error) {
	return api.Call(ctx, d.doer, api.CommandsOutcome, &api.CommandsOutcomeRequest{Partition: p, CommandID: commandID})
}

// Get reads one document; one that does not exist is NotFound.
func (d Data) Get(ctx context.Context, p api.PartitionRef, collection, id string) (*api.Document, error) {
	resp, err := api.Call(ctx, d.doer, api.DocumentsGet, &api.DocumentsGetRequest{Partition: p, Collection: collection, ID: id})
	if err != nil {
		return nil, err
	}
	return &resp.Document, nil
}

// ListDocuments reads one page of a collection in the order of ids. See also
// Documents.
func (d Data) ListDocuments(ctx context.Context, req *api.DocumentsListRequest) (*api.DocumentsListResponse, error) {
	return api.Call(ctx, d.doer, api.DocumentsList, req)
}

// QueryDocuments reads one page of the documents that satisfy every condition.
// See also Query.
func (d Data) QueryDocuments(ctx context.Context, req *api.DocumentsQueryRequest) (*api.DocumentsQueryResponse, error) {
	return api.Call(ctx, d.doer, api.DocumentsQuery, req)
}

// ReadStream reads one page of a stream, forward or backward. See also Stream.
func (d Data) ReadStream(ctx context.Context, req *api.StreamsReadRequest) (*api.StreamsReadResponse, error) {
	return api.Call(ctx, d.doer, api.StreamsRead, req)
}

// ReadEvents reads one page of a topic or stream. See also Events and Tail.
func (d Data) ReadEvents(ctx context.Context, req *api.EventsReadRequest) (*api.EventsReadResponse, error) {
	return api.Call(ctx, d.doer, api.EventsRead, req)
}

// Receive claims messages of a queue under a lease. An empty answer says why.
func (d Data) Receive(ctx context.Context, req *api.QueuesReceiveRequest) (*api.QueuesReceiveResponse, error) {
	return api.Call(ctx, d.doer, api.QueuesReceive, req)
}

// ReceiveAcrossLanes claims messages of up to eight queues, one after the other. Each
// receive has its own outcome, and its own error there. Receives without an id get
// one that follows from the id of the whole, so the same request is the same
// receives.
func (d Data) ReceiveAcrossLanes(ctx context.Context, req *api.QueuesReceiveAcrossLanesRequest) (*api.QueuesReceiveAcrossLanesResponse, error) {
	return api.Call(ctx, d.doer, api.QueuesReceiveAcrossLanes, req)
}

// Complete acknowledges, refuses, renews or releases deliveries of one lane.
// Each item has its own result, and its own error there.
func (d Data) Complete(ctx context.Context, lane api.LaneRef, items ...api.CompleteItem) (*api.QueuesCompleteResponse, error) {
	return api.Call(ctx, d.doer, api.QueuesComplete, &api.QueuesCompleteRequest{Lane: lane, Items: items})
}

// Process commits a handler's effects, its inbox record and the acknowledgement
// together, once per handler scope and message.
func (d Data) Process(ctx context.Context, req *api.QueuesProcessRequest) (*api.QueuesProcessResponse, error) {
	return api.Call(ctx, d.doer, api.QueuesProcess, req)
}

// ProcessInput commits the effects of an input from elsewhere, such as a
// webhook, once per handler scope and input.
func (d Data) ProcessInput(ctx context.Context, req *api.CommandsInboxRequest) (*api.CommandsInboxResponse, error) {
	return api.Call(ctx, d.doer, api.CommandsInbox, req)
}

// InspectMessage reads everything about one message except its payload.
func (d Data) InspectMessage(ctx context.Context, lane api.LaneRef, messageID string) (*api.MessageInfo, error) {
	resp, err := api.Call(ctx, d.doer, api.QueuesInspect, &api.QueuesInspectRequest{Lane: lane, MessageID: messageID})
	if err != nil {
		return nil, err
	}
	return &resp.Message, nil
}

// ListMessages reads one page of the messages of a lane. See also Messages.
func (d Data) ListMessages(ctx context.Context, req *api.QueuesListRequest) (*api.QueuesListResponse, error) {
	return api.Call(ctx, d.doer, api.QueuesList, req)
}

// QueueStatus reads the counters, quotas and oldest message of a lane.
func (d Data) QueueStatus(ctx context.Context, lane api.LaneRef) (*api.QueuesStatusResponse, error) {
	return api.Call(ctx, d.doer, api.QueuesStatus, &api.QueuesStatusRequest{Lane: lane})
}

// ExplainMessage says why a message is not being delivered.
func (d Data) ExplainMessage(ctx context.Context, lane api.LaneRef, messageID string) (*api.QueuesExplainResponse, error) {
	return api.Call(ctx, d.doer, api.QueuesExplain, &api.QueuesExplainRequest{Lane: lane, MessageID: messageID})
}

// RedriveMessage delivers one dead letter again.
func (d Data) RedriveMessage(ctx context.Context, req *api.QueuesRedriveRequest) (*api.QueuesRedriveResponse, error) {
	return api.Call(ctx, d.doer, api.QueuesRedrive, req)
}
