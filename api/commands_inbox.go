package api

// CommandsInbox processes an input from elsewhere once.
var CommandsInbox = Define[CommandsInboxRequest, CommandsInboxResponse](Operation{
	Name: "commands.inbox", Number: 40, Kind: Command, Scope: PartitionScope,
	Summary: "Commit the effects of an input from elsewhere once, however often it arrives",
	Doc: "For inputs that no queue or group of this store delivered, such as a webhook or a record of another log: applies the " +
		"effects and records that the handler scope has processed this input of this source, all or nothing. If the record " +
		"exists with equal effects the answer is alreadyProcessed and nothing is applied again; with other effects it is a " +
		"Conflict. Records are kept for 30 days and are shared by everybody who may change the partition, so give each source " +
		"and each handler a name of its own. Needs what the effects need; without effects, which records that the input asks " +
		"for nothing, the capability of any kind of mutation on any resource of the database.",
})

// CommandsInboxRequest is what a handler makes of one input.
type CommandsInboxRequest struct {
	CommandID           string       `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Partition           PartitionRef `json:"partition,omitzero" cbor:"2,keyasint" doc:"partition to change; the input is known there only"`
	Source              string       `json:"source" cbor:"3,keyasint" format:"identifier" doc:"where the input comes from, for example the name of the sender, or of the topic and its partition"`
	InputID             string       `json:"inputId" cbor:"4,keyasint" format:"identifier" doc:"which input of the source it is, the same whenever it arrives again, for example the id of a webhook, or an offset"`
	HandlerScope        string       `json:"handlerScope" cbor:"5,keyasint" format:"identifier" doc:"name of the handler; each scope processes an input once"`
	ExecutionGeneration uint64       `json:"executionGeneration,omitzero" cbor:"6,keyasint,omitempty" default:"1" minimum:"1" doc:"raise it to process inputs again on purpose"`
	Effects             []Mutation   `json:"effects,omitempty" cbor:"7,keyasint,omitempty" maxItems:"256" doc:"changes in the partition, applied in order"`
}

// CommandsInboxResponse is what was committed.
type CommandsInboxResponse struct {
	Receipt          Receipt          `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	AlreadyProcessed bool             `json:"alreadyProcessed,omitzero" cbor:"2,keyasint,omitempty" doc:"the effects had been committed before and were not repeated"`
	EffectsToken     CommitToken      `json:"effectsToken" cbor:"3,keyasint" doc:"where the effects were committed"`
	Results          []MutationResult `json:"results,omitempty" cbor:"4,keyasint,omitempty" doc:"one result per effect, in order; absent when already processed"`
}

// TargetPartition is the partition that is changed.
func (r *CommandsInboxRequest) TargetPartition() PartitionRef { return r.Partition }

// GetCommandID is the caller's identity of the write.
func (r *CommandsInboxRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *CommandsInboxRequest) SetCommandID(id string) { r.CommandID = id }

// needs asks of a record without effects what a record with the smallest effect
// would need: whoever could write one may write the other.
func (r *CommandsInboxRequest) needs() []Need {
	if len(r.Effects) == 0 {
		return []Need{{Capability: CapAnyMutation}}
	}
	return mutationNeeds(nil, r.Effects)
}
