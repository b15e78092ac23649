package inbox

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Resource is everything the inbox brings.
func Resource() op.Resource {
	return op.Resource{
		Name:   "inbox",
		Tables: []table.Info{processed.Info(), order.Info(), heads.Info()},
		Handlers: []op.Handler{
			op.Handle(api.QueuesProcess, op.Command[api.QueuesProcessRequest, api.QueuesProcessResponse]{
				Prepare: prepareMessage, Apply: processMessage, Urgent: true,
			}),
			op.Handle(api.CommandsInbox, op.Command[api.CommandsInboxRequest, api.CommandsInboxResponse]{Apply: processElsewhere}),
		},
		Dues:  []op.Due{{Kind: table.DueInbox, Apply: prune}},
		Check: check, Owned: true,
	}
}
