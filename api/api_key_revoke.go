package api

// APIKeysRevoke ends a key.
var APIKeysRevoke = Define[APIKeysRevokeRequest, APIKeysRevokeResponse](Operation{
	Name: "api-keys.revoke", Number: 24, Kind: Command, Scope: CatalogScope, Capability: CapSecurityManage, Destructive: true,
	Summary: "Revoke an API key for good",
	Doc:     "The key is refused from now on. Revoking it again changes nothing. An unknown key is NotFound.",
})

// APIKeysRevokeRequest names one key.
type APIKeysRevokeRequest struct {
	CommandID string `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Tenant    string `json:"tenant,omitzero" cbor:"2,keyasint,omitempty" default:"default" format:"identifier" doc:"tenant of the key's principal"`
	KeyID     string `json:"keyId" cbor:"3,keyasint" format:"identifier" doc:"public part of the key"`
}

// APIKeysRevokeResponse says whether anything changed.
type APIKeysRevokeResponse struct {
	Receipt Receipt `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	KeyID   string  `json:"keyId" cbor:"2,keyasint" doc:"public part of the key"`
	Changed bool    `json:"changed,omitzero" cbor:"3,keyasint,omitempty" doc:"it was not revoked before"`
}

// GetCommandID is the caller's identity of the write.
func (r *APIKeysRevokeRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *APIKeysRevokeRequest) SetCommandID(id string) { r.CommandID = id }

// TargetDatabase is the tenant of the key; keys belong to no database.
func (r *APIKeysRevokeRequest) TargetDatabase() (tenant, database string) { return r.Tenant, "" }
