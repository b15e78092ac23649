package api

// PrincipalsList lists principals.
var PrincipalsList = Define[PrincipalsListRequest, PrincipalsListResponse](Operation{
	Name: "principals.list", Number: 22, Kind: Query, Scope: CatalogScope, Capability: CapSecurityManage,
	Summary: "List the principals of a tenant",
	Doc:     "Answers a page of principals in the order of their names, and a cursor while there may be more.",
})

// PrincipalsListRequest asks for one page.
type PrincipalsListRequest struct {
	Tenant string `json:"tenant,omitzero" cbor:"1,keyasint,omitempty" default:"default" format:"identifier" doc:"tenant to list"`
	Limit  int64  `json:"limit,omitzero" cbor:"2,keyasint,omitempty" default:"100" minimum:"1" maximum:"1000" doc:"most principals of the page"`
	Cursor string `json:"cursor,omitzero" cbor:"3,keyasint,omitempty" maxLength:"2048" doc:"where the last page ended"`
}

// PrincipalsListResponse is one page.
type PrincipalsListResponse struct {
	Principals []Principal `json:"principals" cbor:"1,keyasint" doc:"principals in the order of their names"`
	Cursor     string      `json:"cursor,omitzero" cbor:"2,keyasint,omitempty" doc:"where to go on; absent at the end"`
}

// TargetDatabase is the tenant that is listed.
func (r *PrincipalsListRequest) TargetDatabase() (tenant, database string) { return r.Tenant, "" }
