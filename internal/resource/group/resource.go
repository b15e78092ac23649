package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Resource is everything subscription groups bring.
func Resource() op.Resource {
	return op.Resource{
		Name: "group", Tables: Tables(), Handlers: append(deliveries(), management()...),
		Dues:  []op.Due{{Kind: table.DueGroup, Apply: applyDue}, {Kind: table.DueRemoval, Apply: applyRemoval}},
		Check: check, Pins: pins,
		Kinds: []api.ResourceKind{api.KindTopic, api.KindStreamSet}, Purge: purge,
	}
}

// deliveries are what workers call.
func deliveries() []op.Handler {
	return []op.Handler{
		op.Handle(api.SubscriptionsReceive, op.Command[api.SubscriptionsReceiveRequest, api.SubscriptionsReceiveResponse]{
			Cheap: cheapReceive, Apply: applyReceive, Keep: keepReceive, Recall: recallReceive,
			Transient: transientReceive, Finish: finishReceive, Wait: waitReceive(),
		}),
		op.Handle(api.SubscriptionsComplete, op.Command[api.SubscriptionsCompleteRequest, api.SubscriptionsCompleteResponse]{
			Prepare: prepareComplete, Apply: applyComplete, Keep: keepComplete, Recall: recallComplete,
			Finish: finishComplete, Urgent: true,
		}),
		op.Handle(api.SubscriptionsProcess, op.Command[api.SubscriptionsProcessRequest, api.SubscriptionsProcessResponse]{
			Prepare: prepareProcess, Apply: applyProcess, Urgent: true,
		}),
	}
}

// management is what operators call.
func management() []op.Handler {
	return []op.Handler{
		op.Handle(api.SubscriptionsConfigure, op.Command[api.SubscriptionsConfigureRequest, api.SubscriptionsConfigureResponse]{
			Prepare: prepareConfigure, Apply: applyConfigure,
		}),
		op.Handle(api.SubscriptionsSeek, op.Command[api.SubscriptionsSeekRequest, api.SubscriptionsSeekResponse]{
			Prepare: prepareSeek, Apply: applySeek,
		}),
		op.Handle(api.SubscriptionsPause, op.Command[api.SubscriptionsPauseRequest, api.SubscriptionsPauseResponse]{Apply: applyPause, Urgent: true}),
		op.Handle(api.SubscriptionsResume, op.Command[api.SubscriptionsResumeRequest, api.SubscriptionsResumeResponse]{Apply: applyResume, Urgent: true}),
		op.Handle(api.SubscriptionsSkip, op.Command[api.SubscriptionsSkipRequest, api.SubscriptionsSkipResponse]{Apply: applySkip}),
		op.Handle(api.SubscriptionsDelete, op.Command[api.SubscriptionsDeleteRequest, api.SubscriptionsDeleteResponse]{Apply: applyDelete}),
		op.Handle(api.SubscriptionsDeadLettersRedrive, op.Command[api.SubscriptionsDeadLettersRedriveRequest, api.SubscriptionsDeadLettersRedriveResponse]{Apply: applyRedrive}),
		op.Handle(api.SubscriptionsDeadLettersDiscard, op.Command[api.SubscriptionsDeadLettersDiscardRequest, api.SubscriptionsDeadLettersDiscardResponse]{Apply: applyDiscard}),
		op.Ask(api.SubscriptionsStatus, op.Query[api.SubscriptionsStatusRequest, api.SubscriptionsStatusResponse]{Run: runStatus}),
		op.Ask(api.SubscriptionsExplain, op.Query[api.SubscriptionsExplainRequest, api.SubscriptionsExplainResponse]{Run: runExplain}),
		op.Ask(api.SubscriptionsList, op.Query[api.SubscriptionsListRequest, api.SubscriptionsListResponse]{Run: runList}),
		op.Ask(api.SubscriptionsDeadLettersList, op.Query[api.SubscriptionsDeadLettersListRequest, api.SubscriptionsDeadLettersListResponse]{Run: runListDead}),
	}
}
