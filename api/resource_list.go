package api

// ResourcesList lists the catalog of a database.
var ResourcesList = Define[ResourcesListRequest, ResourcesListResponse](Operation{
	Name: "resources.list", Number: 18, Kind: Query, Scope: CatalogScope, Capability: CapDiagnose,
	Summary: "List the resources of a database",
	Doc:     "Answers a page of catalog entries in the order of their names, and a cursor while there may be more.",
})

// ResourcesListRequest asks for one page.
type ResourcesListRequest struct {
	Tenant   string       `json:"tenant,omitzero" cbor:"1,keyasint,omitempty" default:"default" format:"identifier" doc:"tenant to list"`
	Database string       `json:"database,omitzero" cbor:"2,keyasint,omitempty" default:"main" format:"identifier" doc:"database to list"`
	Kind     ResourceKind `json:"kind,omitzero" cbor:"3,keyasint,omitempty" enum:"collection,streamSet,topic,queue" doc:"only resources of this kind"`
	Limit    int64        `json:"limit,omitzero" cbor:"4,keyasint,omitempty" default:"100" minimum:"1" maximum:"1000" doc:"most entries of the page"`
	Cursor   string       `json:"cursor,omitzero" cbor:"5,keyasint,omitempty" maxLength:"2048" doc:"where the last page ended"`
}

// ResourcesListResponse is one page.
type ResourcesListResponse struct {
	Resources []Resource `json:"resources" cbor:"1,keyasint" doc:"resources in the order of their names"`
	Cursor    string     `json:"cursor,omitzero" cbor:"2,keyasint,omitempty" doc:"where to go on; absent at the end"`
}

// TargetDatabase is the tenant and database that are listed.
func (r *ResourcesListRequest) TargetDatabase() (tenant, database string) {
	return r.Tenant, r.Database
}
