package api

// QueuesProcess commits what a handler did together with its acknowledgement.
var QueuesProcess = Define[QueuesProcessRequest, QueuesProcessResponse](Operation{
	Name: "queues.process", Number: 10, Kind: Command, Scope: PartitionScope, Capability: CapQueuesConsume,
	Summary: "Commit a handler's effects, its inbox record and the acknowledgement together",
	Doc: "Acknowledges the delivery, applies the effects and records that the handler scope has processed this message, all or " +
		"nothing. If the record exists with equal effects the answer is alreadyProcessed and nothing is applied again; " +
		"with other effects it is a Conflict. A stale or expired lease commits nothing.",
})

// QueuesProcessRequest is what a handler did with one delivery.
type QueuesProcessRequest struct {
	CommandID           string     `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Lane                LaneRef    `json:"lane" cbor:"2,keyasint" doc:"queue the delivery came from"`
	Token               string     `json:"token" cbor:"3,keyasint" minLength:"1" maxLength:"512" doc:"token of the delivery"`
	HandlerScope        string     `json:"handlerScope" cbor:"4,keyasint" format:"identifier" doc:"name of the handler; each scope processes a message once"`
	ExecutionGeneration uint64     `json:"executionGeneration,omitzero" cbor:"5,keyasint,omitempty" default:"1" minimum:"1" doc:"raise it to process messages again on purpose"`
	Effects             []Mutation `json:"effects,omitempty" cbor:"6,keyasint,omitempty" maxItems:"256" doc:"changes in the lane's partition, applied in order"`
}

// QueuesProcessResponse is what was committed.
type QueuesProcessResponse struct {
	Receipt          Receipt          `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	AlreadyProcessed bool             `json:"alreadyProcessed,omitzero" cbor:"2,keyasint,omitempty" doc:"the effects had been committed before and were not repeated"`
	EffectsToken     CommitToken      `json:"effectsToken" cbor:"3,keyasint" doc:"where the effects were committed"`
	Results          []MutationResult `json:"results,omitempty" cbor:"4,keyasint,omitempty" doc:"one result per effect, in order; absent when already processed"`
	MessageID        string           `json:"messageId" cbor:"5,keyasint" doc:"id of the message"`
	State            MessageState     `json:"state" cbor:"6,keyasint" enum:"scheduled,ready,leased,acked,deadLettered,pendingDeadLetter,expired,cancelled" doc:"where the message is now"`
	StateVersion     uint64           `json:"stateVersion,omitzero" cbor:"7,keyasint,omitempty" doc:"state version of the message"`
}

// TargetPartition is the lane's partition.
func (r *QueuesProcessRequest) TargetPartition() PartitionRef { return r.Lane.Partition }

// GetCommandID is the caller's identity of the write.
func (r *QueuesProcessRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *QueuesProcessRequest) SetCommandID(id string) { r.CommandID = id }

func (r *QueuesProcessRequest) needs() []Need {
	return mutationNeeds([]Need{{CapQueuesConsume, r.Lane.Queue}}, r.Effects)
}
