package api

// APIKeysList lists keys.
var APIKeysList = Define[APIKeysListRequest, APIKeysListResponse](Operation{
	Name: "api-keys.list", Number: 25, Kind: Query, Scope: CatalogScope, Capability: CapSecurityManage,
	Summary: "List the API keys of a tenant",
	Doc:     "Answers a page of keys without their secrets, and a cursor while there may be more.",
})

// APIKeysListRequest asks for one page.
type APIKeysListRequest struct {
	Tenant      string `json:"tenant,omitzero" cbor:"1,keyasint,omitempty" default:"default" format:"identifier" doc:"tenant to list"`
	PrincipalID string `json:"principalId,omitzero" cbor:"2,keyasint,omitempty" format:"identifier" doc:"only keys of this principal"`
	Limit       int64  `json:"limit,omitzero" cbor:"3,keyasint,omitempty" default:"100" minimum:"1" maximum:"1000" doc:"most keys of the page"`
	Cursor      string `json:"cursor,omitzero" cbor:"4,keyasint,omitempty" maxLength:"2048" doc:"where the last page ended"`
}

// APIKeysListResponse is one page.
type APIKeysListResponse struct {
	Keys   []APIKey `json:"keys" cbor:"1,keyasint" doc:"keys without their secrets"`
	Cursor string   `json:"cursor,omitzero" cbor:"2,keyasint,omitempty" doc:"where to go on; absent at the end"`
}

// TargetDatabase is the tenant that is listed.
func (r *APIKeysListRequest) TargetDatabase() (tenant, database string) { return r.Tenant, "" }
