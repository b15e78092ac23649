package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Resource is everything subscription groups bring.
func Resource() op.Resource {
	return op.Resource{
		Name: "group", Tables: Tables(), Handlers: append(deliveries(), management()...),
		Dues:  []op.Due{{Kind: table.DueGroup, Apply: applyDue}},
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

// pins visits the checkpoints of the groups of a source, paused and held ones
// too: what is after a checkpoint stays.
func pins(s *op.Scope, source []byte, visit func(op.Pin) (more bool, err error)) error {
	return definitions.Scan(s.R, table.Range{Prefix: source}, func(n name, def *definition) (bool, error) {
		h, err := headOf(s, def.ref(n))
		if err != nil {
			return false, err
		}
		return visit(op.Pin{Holder: n.Group, Position: h.Checkpoint})
	})
}

// purge removes at most budget rows of the groups of a deleted topic or stream
// set in one partition.
func purge(c *op.Ctx, owner table.Owner, budget int) (removed int, err error) {
	prefix := owner.Append(nil)
	var armed []name
	err = definitions.Scan(c.Tx, table.Range{Prefix: prefix}, func(n name, _ *definition) (bool, error) {
		armed = append(armed, n)
		return len(armed) < budget, nil
	})
	if err != nil {
		return 0, err
	}
	for _, n := range armed { // its due row goes with it
		if err := forget(c, n); err != nil {
			return removed, err
		}
		removed++
	}
	for _, t := range Tables() {
		if removed >= budget {
			break
		}
		n, err := removeSome(c.Tx, append([]byte{byte(t.ID)}, prefix...), budget-removed)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// forget removes the definition of a group and its due row.
func forget(c *op.Ctx, n name) error {
	def, err := definitions.Shared(c.Tx, n)
	if err != nil || def == nil {
		return err
	}
	h, err := headOf(&c.Scope, def.ref(n))
	if err != nil {
		return err
	}
	armed := h.Armed
	table.Arm(c.Tx, n.Source.Owner.Shard, table.DueGroup, n.append(nil), &armed, 0)
	definitions.Delete(c.Tx, n)
	return nil
}

// shardRange is every row of a table in a shard.
func shardRange(shard uint16) table.Range { return table.Range{Prefix: codec.AppendUint16(nil, shard)} }
