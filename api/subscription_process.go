package api

// SubscriptionsProcess commits what a handler did together with its acknowledgement.
var SubscriptionsProcess = Define[SubscriptionsProcessRequest, SubscriptionsProcessResponse](Operation{
	Name: "subscriptions.process", Number: 30, Kind: Command, Scope: PartitionScope, Capability: CapGroupsConsume,
	Summary: "Commit a handler's effects, its inbox record and the acknowledgement of a group delivery together",
	Doc: "Acknowledges the delivery, applies the effects and records that the handler scope has processed this event of the source, " +
		"all or nothing. If the record exists with equal effects the answer is alreadyProcessed and nothing is applied again; " +
		"with other effects it is a Conflict. A stale or expired lease commits nothing. The record is of the source's event, not " +
		"of the group: groups whose handlers shall act independently name different scopes.",
})

// SubscriptionsProcessRequest is what a handler did with one delivery.
type SubscriptionsProcessRequest struct {
	CommandID           string     `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Group               GroupRef   `json:"group" cbor:"2,keyasint" doc:"group and its source"`
	Token               string     `json:"token" cbor:"3,keyasint" minLength:"1" maxLength:"512" doc:"token of the delivery"`
	HandlerScope        string     `json:"handlerScope" cbor:"4,keyasint" format:"identifier" doc:"name of the handler; each scope processes an event once"`
	ExecutionGeneration uint64     `json:"executionGeneration,omitzero" cbor:"5,keyasint,omitempty" default:"1" minimum:"1" doc:"raise it to process events again on purpose"`
	Effects             []Mutation `json:"effects,omitempty" cbor:"6,keyasint,omitempty" maxItems:"256" doc:"changes in the source's partition, applied in order"`
}

// SubscriptionsProcessResponse is what was committed.
type SubscriptionsProcessResponse struct {
	Receipt          Receipt          `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	AlreadyProcessed bool             `json:"alreadyProcessed,omitzero" cbor:"2,keyasint,omitempty" doc:"the effects had been committed before and were not repeated"`
	EffectsToken     CommitToken      `json:"effectsToken" cbor:"3,keyasint" doc:"where the effects were committed"`
	Results          []MutationResult `json:"results,omitempty" cbor:"4,keyasint,omitempty" doc:"one result per effect, in order; absent when already processed"`
	Position         uint64           `json:"position" cbor:"5,keyasint" doc:"position of the event"`
	State            PositionState    `json:"state" cbor:"6,keyasint" enum:"ready,leased,waiting,blocked,held,finished,deadLettered,pending" doc:"where the position is now"`
	Checkpoint       uint64           `json:"checkpoint" cbor:"7,keyasint" doc:"the group's checkpoint after the command"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsProcessRequest) TargetPartition() PartitionRef { return r.Group.Source.Partition }

// GetCommandID is the caller's identity of the write.
func (r *SubscriptionsProcessRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *SubscriptionsProcessRequest) SetCommandID(id string) { r.CommandID = id }

func (r *SubscriptionsProcessRequest) needs() []Need {
	return mutationNeeds([]Need{{CapGroupsConsume, r.Group.Source.Resource}}, r.Effects)
}
