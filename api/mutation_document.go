package api

// PutDocument stores a document under an id, whatever was there.
type PutDocument struct {
	Collection       string  `json:"collection" cbor:"1,keyasint" format:"identifier" doc:"name of the collection"`
	ID               string  `json:"id" cbor:"2,keyasint" format:"identifier" doc:"id of the document"`
	Document         JSON    `json:"document" cbor:"3,keyasint" maxLength:"1048576" format:"object" doc:"the document, an object"`
	ExpectedRevision *uint64 `json:"expectedRevision,omitzero" cbor:"4,keyasint,omitempty" doc:"revision the document must have; 0 means it must not exist"`
}

// Need is the right to write documents.
func (m *PutDocument) Need() Need { return Need{CapDocumentsWrite, m.Collection} }

// PatchDocument changes fields of a stored document.
type PatchDocument struct {
	Collection       string  `json:"collection" cbor:"1,keyasint" format:"identifier" doc:"name of the collection"`
	ID               string  `json:"id" cbor:"2,keyasint" format:"identifier" doc:"id of the document"`
	Patches          []Patch `json:"patches" cbor:"3,keyasint" minItems:"1" maxItems:"256" doc:"changes, applied in order"`
	ExpectedRevision *uint64 `json:"expectedRevision,omitzero" cbor:"4,keyasint,omitempty" doc:"revision the document must have"`
}

// Need is the right to write documents.
func (m *PatchDocument) Need() Need { return Need{CapDocumentsWrite, m.Collection} }

// DeleteDocument removes a document; its revision is kept as a tombstone.
type DeleteDocument struct {
	Collection       string  `json:"collection" cbor:"1,keyasint" format:"identifier" doc:"name of the collection"`
	ID               string  `json:"id" cbor:"2,keyasint" format:"identifier" doc:"id of the document"`
	ExpectedRevision *uint64 `json:"expectedRevision,omitzero" cbor:"3,keyasint,omitempty" doc:"revision the document must have"`
}

// Need is the right to write documents.
func (m *DeleteDocument) Need() Need { return Need{CapDocumentsWrite, m.Collection} }
