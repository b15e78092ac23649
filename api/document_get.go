package api

// DocumentsGet reads one document.
var DocumentsGet = Define[DocumentsGetRequest, DocumentsGetResponse](Operation{
	Name: "documents.get", Number: 3, Kind: Query, Scope: PartitionScope, Capability: CapDocumentsRead,
	Summary: "Read one document",
	Doc:     "Answers the document with its revision. A document that was never written or is deleted is NotFound.",
})

// Document is a stored document.
type Document struct {
	ID        string   `json:"id" cbor:"1,keyasint" doc:"id of the document"`
	Revision  uint64   `json:"revision" cbor:"2,keyasint" doc:"rises with every change, from 1"`
	Document  JSON     `json:"document" cbor:"3,keyasint" doc:"the document, an object"`
	UpdatedAt Time     `json:"updatedAt" cbor:"4,keyasint" doc:"logged time of the last change"`
	Redacted  []string `json:"redacted,omitempty" cbor:"5,keyasint,omitempty" doc:"JSON pointers of the fields the caller may not see"`
}

// DocumentsGetRequest names one document.
type DocumentsGetRequest struct {
	Partition  PartitionRef `json:"partition,omitzero" cbor:"1,keyasint" doc:"partition to read"`
	Collection string       `json:"collection" cbor:"2,keyasint" format:"identifier" doc:"name of the collection"`
	ID         string       `json:"id" cbor:"3,keyasint" format:"identifier" doc:"id of the document"`
	MinToken   *CommitToken `json:"minToken,omitzero" cbor:"4,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// DocumentsGetResponse is the document.
type DocumentsGetResponse struct {
	Document Document `json:"document" cbor:"1,keyasint" doc:"the stored document"`
}

// TargetPartition is the partition that is read.
func (r *DocumentsGetRequest) TargetPartition() PartitionRef { return r.Partition }

func (r *DocumentsGetRequest) resourceName() string { return r.Collection }
