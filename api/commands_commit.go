package api

// CommandsCommit is the atomic batch.
var CommandsCommit = Define[CommandsCommitRequest, CommandsCommitResponse](Operation{
	Name: "commands.commit", Number: 1, Kind: Command, Scope: PartitionScope,
	Summary: "Commit a batch of changes to one partition, all of them or none",
	Doc: "Applies 1 to 256 mutations in order, in one transaction: documents, events, messages and repairs. " +
		"If one is refused nothing is stored but the refusal. Repeating the same command id with the same content " +
		"answers the stored result; with other content it is a Conflict. The encoded batch is at most 8 MiB.",
})

// CommandsCommitRequest is one batch.
type CommandsCommitRequest struct {
	CommandID string       `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Partition PartitionRef `json:"partition,omitzero" cbor:"2,keyasint" doc:"partition to change"`
	Mutations []Mutation   `json:"mutations" cbor:"3,keyasint" minItems:"1" maxItems:"256" doc:"changes, applied in order"`
}

// CommandsCommitResponse is what the batch did.
type CommandsCommitResponse struct {
	Receipt Receipt          `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Results []MutationResult `json:"results" cbor:"2,keyasint" doc:"one result per mutation, in order"`
}

// TargetPartition is the partition that is changed.
func (r *CommandsCommitRequest) TargetPartition() PartitionRef { return r.Partition }

// GetCommandID is the caller's identity of the batch.
func (r *CommandsCommitRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *CommandsCommitRequest) SetCommandID(id string) { r.CommandID = id }

func (r *CommandsCommitRequest) needs() []Need { return mutationNeeds(nil, r.Mutations) }

// mutationNeeds adds the needs of the mutations, each once.
func mutationNeeds(out []Need, ms []Mutation) []Need {
	seen := make(map[Need]bool, len(ms))
	for _, m := range ms {
		b := m.Body()
		if b == nil {
			continue
		}
		if n := b.Need(); !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}
