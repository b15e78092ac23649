package api

// AdminCheck verifies one shard of a store that goes on working.
var AdminCheck = Define[AdminCheckRequest, AdminCheckResponse](Operation{
	Name: "admin.check", Number: 45, Kind: Query, Scope: NodeScope, Capability: CapDiagnose, Long: true,
	Summary: "Verify every row and rule of one shard",
	Doc: "Reads every row of one shard on a snapshot, verifies every rule between them, and answers what it counted and found. " +
		"Commands go on meanwhile. Shard 0 holds the catalog; ask for each shard in turn, up to shards. " +
		"It needs an administrator, since it reads what belongs to every tenant; findings name rows and rules, never contents. " +
		"A node checks one shard at a time and refuses other calls with ResourceExhausted (reason check_running). " +
		"It has no deadline and ends when its caller leaves.",
})

// AdminCheckRequest names the shard.
type AdminCheckRequest struct {
	Shard int64 `json:"shard,omitzero" cbor:"1,keyasint,omitempty" minimum:"0" maximum:"65535" doc:"number of the shard; 0 is that of the catalog"`
}

// TargetShard is the shard that is read.
func (r *AdminCheckRequest) TargetShard() int64 { return r.Shard }

// CheckCount is one thing that was counted.
type CheckCount struct {
	Name  string `json:"name" cbor:"1,keyasint" doc:"what was counted"`
	Count int64  `json:"count" cbor:"2,keyasint" doc:"how many there are"`
}

// CheckFinding is one rule that does not hold.
type CheckFinding struct {
	Invariant string `json:"invariant" cbor:"1,keyasint" doc:"name of the rule"`
	Where     string `json:"where" cbor:"2,keyasint" doc:"rows it does not hold for"`
	Text      string `json:"text" cbor:"3,keyasint" doc:"what is wrong"`
	Derived   bool   `json:"derived,omitzero" cbor:"4,keyasint,omitempty" doc:"the rows follow from others: keyload check --repair-indexes makes them anew"`
}

// AdminCheckResponse is what the check of one shard came to.
type AdminCheckResponse struct {
	Incarnation  string         `json:"incarnation" cbor:"1,keyasint" doc:"identity of the store's history"`
	Format       int64          `json:"format" cbor:"2,keyasint" doc:"version of the stored format"`
	Shard        int64          `json:"shard" cbor:"3,keyasint" doc:"the shard that was read"`
	Shards       int64          `json:"shards" cbor:"4,keyasint" doc:"how many shards there are, that of the catalog included; they are numbered from 0"`
	Position     uint64         `json:"position" cbor:"5,keyasint" doc:"last log entry the snapshot holds"`
	Rows         int64          `json:"rows" cbor:"6,keyasint" doc:"rows read"`
	Bytes        int64          `json:"bytes" cbor:"7,keyasint" doc:"bytes of their keys and values"`
	Counts       []CheckCount   `json:"counts" cbor:"8,keyasint" doc:"what was counted, by name"`
	Findings     []CheckFinding `json:"findings" cbor:"9,keyasint" doc:"the first rules that do not hold; none in a sound shard"`
	MoreFindings int64          `json:"moreFindings,omitzero" cbor:"10,keyasint,omitempty" doc:"findings beyond those listed"`
}
