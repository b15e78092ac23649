package api

// APIKeysCreate makes a key.
var APIKeysCreate = Define[APIKeysCreateRequest, APIKeysCreateResponse](Operation{
	Name: "api-keys.create", Number: 23, Kind: Command, Scope: CatalogScope, Capability: CapSecurityManage,
	Summary: "Make an API key for a principal",
	Doc: "Answers the key, kl_<id>_<secret>. It is shown by this answer only: the store keeps a hash of the secret. " +
		"An unknown or revoked principal is refused.",
})

// APIKeysCreateRequest asks for a key.
//
// KeyID, SecretHash and Secret have no JSON form: the door makes the key and fills them
// before the command is logged, whatever was there.
type APIKeysCreateRequest struct {
	CommandID   string `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Tenant      string `json:"tenant,omitzero" cbor:"2,keyasint,omitempty" default:"default" format:"identifier" doc:"tenant of the principal"`
	PrincipalID string `json:"principalId" cbor:"3,keyasint" format:"identifier" doc:"whose key it will be"`
	ExpiresAt   Time   `json:"expiresAt,omitzero" cbor:"4,keyasint,omitempty" doc:"refused from this instant on"`
	KeyID       string `json:"-" cbor:"5,keyasint,omitempty" doc:"public part of the key, filled by the door"`
	SecretHash  []byte `json:"-" cbor:"6,keyasint,omitempty" doc:"SHA-256 of the secret, filled by the door"`
	Secret      string `json:"-" cbor:"-"` // the door's own memory; no encoding has it
}

// APIKeysCreateResponse is the key.
//
// APIKey is never stored: the door adds it to the answer.
type APIKeysCreateResponse struct {
	Receipt Receipt `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	KeyID   string  `json:"keyId" cbor:"2,keyasint" doc:"public part of the key"`
	APIKey  string  `json:"apiKey,omitzero" cbor:"3,keyasint,omitempty" doc:"the whole key; keep it, it is not shown again"`
}

// GetCommandID is the caller's identity of the write.
func (r *APIKeysCreateRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *APIKeysCreateRequest) SetCommandID(id string) { r.CommandID = id }

// TargetDatabase is the principal's tenant; keys belong to no database.
func (r *APIKeysCreateRequest) TargetDatabase() (tenant, database string) { return r.Tenant, "" }
