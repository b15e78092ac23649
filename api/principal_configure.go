package api

// PrincipalsConfigure creates or updates a principal.
var PrincipalsConfigure = Define[PrincipalsConfigureRequest, PrincipalsConfigureResponse](Operation{
	Name: "principals.configure", Number: 20, Kind: Command, Scope: CatalogScope, Capability: CapSecurityManage,
	Summary: "Create a principal or replace its policy",
	Doc: "Replaces the whole policy. The policyEpoch must be greater than the stored one, unless the policy is equal: then " +
		"nothing changes. Delivery tokens given under an older epoch no longer hold.",
})

// PrincipalsConfigureRequest is the whole policy of one principal.
type PrincipalsConfigureRequest struct {
	CommandID string    `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Principal Principal `json:"principal" cbor:"2,keyasint" doc:"the principal"`
}

// PrincipalsConfigureResponse is the principal as it is now.
type PrincipalsConfigureResponse struct {
	Receipt   Receipt   `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Principal Principal `json:"principal" cbor:"2,keyasint" doc:"the principal"`
	Created   bool      `json:"created,omitzero" cbor:"3,keyasint,omitempty" doc:"it did not exist before"`
	Changed   bool      `json:"changed,omitzero" cbor:"4,keyasint,omitempty" doc:"it was created or its policy differed"`
}

// GetCommandID is the caller's identity of the write.
func (r *PrincipalsConfigureRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *PrincipalsConfigureRequest) SetCommandID(id string) { r.CommandID = id }

// TargetDatabase is the principal's tenant; it belongs to no database.
func (r *PrincipalsConfigureRequest) TargetDatabase() (tenant, database string) {
	return r.Principal.Tenant, ""
}
