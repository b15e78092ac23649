package client

import (
	"context"
	"iter"

	"github.com/keyload/keyload/api"
)

// Groups are the calls on subscription groups. Package worker runs handlers on
// top of them.
type Groups struct{ doer api.Doer }

// ConfigureGroup creates a group, answers it unchanged, or with
// ExpectedGeneration replaces the definition of a paused one.
func (g Groups) ConfigureGroup(ctx context.Context, req *api.SubscriptionsConfigureRequest) (*api.SubscriptionsConfigureResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsConfigure, req)
}

// ReceiveEvents claims events of a group under a lease. An empty answer says why.
func (g Groups) ReceiveEvents(ctx context.Context, req *api.SubscriptionsReceiveRequest) (*api.SubscriptionsReceiveResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsReceive, req)
}

// CompleteEvents acknowledges, refuses, renews or releases deliveries of one
// group. Each item has its own result, and its own error there.
func (g Groups) CompleteEvents(ctx context.Context, group api.GroupRef, items ...api.CompleteItem) (*api.SubscriptionsCompleteResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsComplete, &api.SubscriptionsCompleteRequest{Group: group, Items: items})
}

// ProcessEvent commits a handler's effects, its inbox record and the
// acknowledgement together, once per handler scope and event.
func (g Groups) ProcessEvent(ctx context.Context, req *api.SubscriptionsProcessRequest) (*api.SubscriptionsProcessResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsProcess, req)
}

// SeekGroup moves a group to another place of its source and pauses it.
func (g Groups) SeekGroup(ctx context.Context, req *api.SubscriptionsSeekRequest) (*api.SubscriptionsSeekResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsSeek, req)
}

// PauseGroup stops the claims of a group at a generation.
func (g Groups) PauseGroup(ctx context.Context, group api.GroupRef, generation uint64) (*api.SubscriptionsPauseResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsPause, &api.SubscriptionsPauseRequest{Group: group, ExpectedGeneration: generation})
}

// ResumeGroup lets a group at a generation deliver again.
func (g Groups) ResumeGroup(ctx context.Context, group api.GroupRef, generation uint64) (*api.SubscriptionsResumeResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsResume, &api.SubscriptionsResumeRequest{Group: group, ExpectedGeneration: generation})
}

// SkipPosition finishes one position of a group without delivering it.
func (g Groups) SkipPosition(ctx context.Context, req *api.SubscriptionsSkipRequest) (*api.SubscriptionsSkipResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsSkip, req)
}

// DeleteGroup removes a group; confirm is its checkpoint.
func (g Groups) DeleteGroup(ctx context.Context, group api.GroupRef, confirm uint64) (*api.SubscriptionsDeleteResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsDelete, &api.SubscriptionsDeleteRequest{Group: group, Confirm: &confirm})
}

// GroupStatus reads where a group stands, with the first rows of its window; 0
// rows is the default number of them.
func (g Groups) GroupStatus(ctx context.Context, group api.GroupRef, rows int64) (*api.SubscriptionsStatusResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsStatus, &api.SubscriptionsStatusRequest{Group: group, Rows: rows})
}

// ExplainPosition says why a position is not being delivered; 0 asks about the
// lowest unfinished one, or the next.
func (g Groups) ExplainPosition(ctx context.Context, group api.GroupRef, position uint64) (*api.SubscriptionsExplainResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsExplain, &api.SubscriptionsExplainRequest{Group: group, Position: position})
}

// RedriveEvent delivers one dead letter of a group, or a held position, again.
func (g Groups) RedriveEvent(ctx context.Context, req *api.SubscriptionsDeadLettersRedriveRequest) (*api.SubscriptionsDeadLettersRedriveResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsDeadLettersRedrive, req)
}

// DiscardEvent removes one dead letter of a group for good.
func (g Groups) DiscardEvent(ctx context.Context, req *api.SubscriptionsDeadLettersDiscardRequest) (*api.SubscriptionsDeadLettersDiscardResponse, error) {
	return api.Call(ctx, g.doer, api.SubscriptionsDeadLettersDiscard, req)
}

// GroupsOf yields the groups of a source by name.
func (g Groups) GroupsOf(ctx context.Context, source api.SourceRef) iter.Seq2[api.GroupInfo, error] {
	return pages(func(cursor string) ([]api.GroupInfo, string, error) {
		resp, err := api.Call(ctx, g.doer, api.SubscriptionsList, &api.SubscriptionsListRequest{Source: source, Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return resp.Groups, resp.Cursor, nil
	})
}

// DeadEvents yields the dead letters of a group by position, with their events.
func (g Groups) DeadEvents(ctx context.Context, group api.GroupRef) iter.Seq2[api.DeadLetter, error] {
	return pages(func(cursor string) ([]api.DeadLetter, string, error) {
		resp, err := api.Call(ctx, g.doer, api.SubscriptionsDeadLettersList, &api.SubscriptionsDeadLettersListRequest{Group: group, Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return resp.DeadLetters, resp.Cursor, nil
	})
}
