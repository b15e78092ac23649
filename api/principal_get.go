package api

// PrincipalsGet reads one principal.
var PrincipalsGet = Define[PrincipalsGetRequest, PrincipalsGetResponse](Operation{
	Name: "principals.get", Number: 21, Kind: Query, Scope: CatalogScope, Capability: CapSecurityManage,
	Summary: "Read the policy of one principal",
	Doc:     "Answers the principal's roles, grants and policy epoch. An unknown one is NotFound.",
})

// PrincipalsGetRequest names one principal.
type PrincipalsGetRequest struct {
	Tenant string `json:"tenant,omitzero" cbor:"1,keyasint,omitempty" default:"default" format:"identifier" doc:"tenant of the principal"`
	ID     string `json:"id" cbor:"2,keyasint" format:"identifier" doc:"name within the tenant"`
}

// PrincipalsGetResponse is the principal.
type PrincipalsGetResponse struct {
	Principal Principal `json:"principal" cbor:"1,keyasint" doc:"the principal"`
}

// TargetDatabase is the principal's tenant; it belongs to no database.
func (r *PrincipalsGetRequest) TargetDatabase() (tenant, database string) { return r.Tenant, "" }
