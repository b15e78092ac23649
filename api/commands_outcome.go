package api

import "github.com/keyload/keyload/fault"

// CommandsOutcome settles a lost reply.
var CommandsOutcome = Define[CommandsOutcomeRequest, CommandsOutcomeResponse](Operation{
	Name: "commands.outcome", Number: 2, Kind: Query, Scope: PartitionScope,
	Summary: "Ask what became of a command",
	Doc: "Answers committed with the receipt, rejected with the stored error, or unknown when nothing is stored under " +
		"the command id: it was never evaluated, or its receipt is older than the horizon. Only the caller's own commands are seen.",
})

// CommandStatus is what became of a command.
type CommandStatus string

// The outcomes of a command.
const (
	CommandCommitted CommandStatus = "committed"
	CommandRejected  CommandStatus = "rejected"
	CommandUnknown   CommandStatus = "unknown"
)

// CommandsOutcomeRequest names a command.
type CommandsOutcomeRequest struct {
	Partition PartitionRef `json:"partition,omitzero" cbor:"1,keyasint" doc:"partition the command was sent to"`
	CommandID string       `json:"commandId" cbor:"2,keyasint" format:"uuid" doc:"identity of the command"`
	MinToken  *CommitToken `json:"minToken,omitzero" cbor:"3,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// CommandsOutcomeResponse is what became of it.
type CommandsOutcomeResponse struct {
	Status    CommandStatus `json:"status" cbor:"1,keyasint" enum:"committed,rejected,unknown" doc:"what became of the command"`
	Operation string        `json:"operation,omitzero" cbor:"2,keyasint,omitempty" doc:"name of the command's operation, unless unknown"`
	Receipt   *Receipt      `json:"receipt,omitzero" cbor:"3,keyasint,omitempty" doc:"the stored receipt, when committed"`
	Error     *fault.Error  `json:"error,omitzero" cbor:"4,keyasint,omitempty" doc:"the stored refusal, when rejected"`
}

// TargetPartition is the partition the command was sent to.
func (r *CommandsOutcomeRequest) TargetPartition() PartitionRef { return r.Partition }
