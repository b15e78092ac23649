package api

// DocumentsQuery finds documents by their fields.
var DocumentsQuery = Define[DocumentsQueryRequest, DocumentsQueryResponse](Operation{
	Name: "documents.query", Number: 5, Kind: Query, Scope: PartitionScope, Capability: CapQuery,
	Summary: "Find documents by the values of their fields",
	Doc: "All conditions must hold. An index is used where one fits; without one the query is refused unless " +
		"allowFullScan is set. The work is bounded: a query that would look at more than 10,000 records or 64 MiB " +
		"ends with BudgetExceeded, or with a cursor where it made progress.",
})

// ConditionOp compares a field with a value.
type ConditionOp string

// The comparisons.
const (
	OpEqual        ConditionOp = "eq"
	OpLess         ConditionOp = "lt"
	OpLessEqual    ConditionOp = "le"
	OpGreater      ConditionOp = "gt"
	OpGreaterEqual ConditionOp = "ge"
	OpPrefix       ConditionOp = "prefix" // the field is a text that begins with the value
)

// Condition is one comparison of a query.
type Condition struct {
	Path  string      `json:"path" cbor:"1,keyasint" format:"pointer" doc:"JSON pointer of the field"`
	Op    ConditionOp `json:"op,omitzero" cbor:"2,keyasint,omitempty" default:"eq" enum:"eq,lt,le,gt,ge,prefix" doc:"how to compare"`
	Value JSON        `json:"value" cbor:"3,keyasint" maxLength:"65536" doc:"a text, a number, true, false or null"`
}

// DocumentsQueryRequest is one query.
type DocumentsQueryRequest struct {
	Partition     PartitionRef `json:"partition,omitzero" cbor:"1,keyasint" doc:"partition to read"`
	Collection    string       `json:"collection" cbor:"2,keyasint" format:"identifier" doc:"name of the collection"`
	Where         []Condition  `json:"where,omitempty" cbor:"3,keyasint,omitempty" maxItems:"16" doc:"conditions that must all hold"`
	Index         string       `json:"index,omitzero" cbor:"4,keyasint,omitempty" format:"identifier" doc:"index to use; the best one when absent"`
	OrderBy       string       `json:"orderBy,omitzero" cbor:"5,keyasint,omitempty" format:"pointer" doc:"JSON pointer of the indexed field that orders the result; the order of the index used, or of the ids, when absent"`
	Descending    bool         `json:"descending,omitzero" cbor:"6,keyasint,omitempty" doc:"largest first"`
	AllowFullScan bool         `json:"allowFullScan,omitzero" cbor:"7,keyasint,omitempty" doc:"look at every document when no index fits"`
	Limit         int64        `json:"limit,omitzero" cbor:"8,keyasint,omitempty" default:"100" minimum:"1" maximum:"1000" doc:"most documents of the page"`
	MaxBytes      int64        `json:"maxBytes,omitzero" cbor:"9,keyasint,omitempty" default:"1048576" minimum:"1" maximum:"8388608" doc:"most bytes of the page; one document is always returned"`
	Cursor        string       `json:"cursor,omitzero" cbor:"10,keyasint,omitempty" maxLength:"2048" doc:"where the last page ended"`
	MinToken      *CommitToken `json:"minToken,omitzero" cbor:"11,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// DocumentsQueryResponse is one page of the result.
type DocumentsQueryResponse struct {
	Documents []Document `json:"documents" cbor:"1,keyasint" doc:"documents that satisfy every condition"`
	Cursor    string     `json:"cursor,omitzero" cbor:"2,keyasint,omitempty" doc:"where to go on; absent at the end"`
	Examined  Examined   `json:"examined" cbor:"3,keyasint" doc:"what the query cost"`
	Index     string     `json:"index,omitzero" cbor:"4,keyasint,omitempty" doc:"index that was used; absent for a full scan"`
}

// TargetPartition is the partition that is read.
func (r *DocumentsQueryRequest) TargetPartition() PartitionRef { return r.Partition }

func (r *DocumentsQueryRequest) resourceName() string { return r.Collection }
