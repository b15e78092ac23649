package api

// DocumentsList reads the documents of a collection by id.
var DocumentsList = Define[DocumentsListRequest, DocumentsListResponse](Operation{
	Name: "documents.list", Number: 4, Kind: Query, Scope: PartitionScope, Capability: CapDocumentsRead,
	Summary: "List the documents of a collection in the order of their ids",
	Doc: "Answers a page of documents and a cursor while there may be more. " +
		"Pages are read one by one: a document that changes between them may be seen in its old or its new form.",
})

// DocumentsListRequest asks for one page.
type DocumentsListRequest struct {
	Partition  PartitionRef `json:"partition,omitzero" cbor:"1,keyasint" doc:"partition to read"`
	Collection string       `json:"collection" cbor:"2,keyasint" format:"identifier" doc:"name of the collection"`
	Prefix     string       `json:"prefix,omitzero" cbor:"3,keyasint,omitempty" format:"identifier" doc:"only ids that begin with this"`
	Limit      int64        `json:"limit,omitzero" cbor:"4,keyasint,omitempty" default:"100" minimum:"1" maximum:"1000" doc:"most documents of the page"`
	MaxBytes   int64        `json:"maxBytes,omitzero" cbor:"5,keyasint,omitempty" default:"1048576" minimum:"1" maximum:"8388608" doc:"most bytes of the page; one document is always returned"`
	Cursor     string       `json:"cursor,omitzero" cbor:"6,keyasint,omitempty" maxLength:"2048" doc:"where the last page ended"`
	MinToken   *CommitToken `json:"minToken,omitzero" cbor:"7,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// DocumentsListResponse is one page.
type DocumentsListResponse struct {
	Documents []Document `json:"documents" cbor:"1,keyasint" doc:"documents in the order of their ids"`
	Cursor    string     `json:"cursor,omitzero" cbor:"2,keyasint,omitempty" doc:"where to go on; absent at the end"`
	Examined  Examined   `json:"examined" cbor:"3,keyasint" doc:"what the read cost"`
}

// TargetPartition is the partition that is read.
func (r *DocumentsListRequest) TargetPartition() PartitionRef { return r.Partition }

func (r *DocumentsListRequest) resourceName() string { return r.Collection }
