package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Resource is everything queues bring.
func Resource() op.Resource {
	return op.Resource{
		Name:   "queue",
		Tables: Tables(),
		Handlers: []op.Handler{
			op.Handle(api.QueuesReceive, op.Command[api.QueuesReceiveRequest, api.QueuesReceiveResponse]{
				Cheap: cheapReceive, Apply: applyReceive, Keep: keepReceive, Recall: recallReceive,
				Transient: transientReceive, Finish: finishReceive, Wait: waitReceive(),
			}),
			op.Compose(api.QueuesReceiveAcrossLanes, op.Composite[api.QueuesReceiveAcrossLanesRequest, api.QueuesReceiveAcrossLanesResponse]{
				Parts: acrossParts, Join: joinAcross,
			}),
			op.Handle(api.QueuesComplete, op.Command[api.QueuesCompleteRequest, api.QueuesCompleteResponse]{
				Prepare: prepareComplete, Apply: applyComplete, Keep: keepComplete, Recall: recallComplete,
				Finish: finishComplete, Urgent: true,
			}),
			op.Handle(api.QueuesRedrive, op.Command[api.QueuesRedriveRequest, api.QueuesRedriveResponse]{Apply: applyRedrive}),
			op.Ask(api.QueuesInspect, op.Query[api.QueuesInspectRequest, api.QueuesInspectResponse]{Run: runInspect}),
			op.Ask(api.QueuesList, op.Query[api.QueuesListRequest, api.QueuesListResponse]{Run: runList}),
			op.Ask(api.QueuesStatus, op.Query[api.QueuesStatusRequest, api.QueuesStatusResponse]{Run: runStatus}),
			op.Ask(api.QueuesExplain, op.Query[api.QueuesExplainRequest, api.QueuesExplainResponse]{Run: runExplain}),
		},
		Mutations: []op.Mutation{
			{Kind: "enqueue", Apply: applyEnqueue},
			{Kind: "cancelMessage", Apply: applyCancel},
			{Kind: "rescheduleMessage", Apply: applyReschedule},
			{Kind: "redriveMessage", Apply: applyRedriveMutation},
		},
		Dues:    []op.Due{{Kind: table.DueLane, Apply: applyDue}, {Kind: table.DueLimit, Apply: applyLimit}},
		Check:   check,
		Kinds:   []api.ResourceKind{api.KindQueue},
		Purge:   purge,
		Changed: changed,
	}
}
