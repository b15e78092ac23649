package api

// ResourcesGet reads one catalog entry.
var ResourcesGet = Define[ResourcesGetRequest, ResourcesGetResponse](Operation{
	Name: "resources.get", Number: 17, Kind: Query, Scope: CatalogScope, Capability: CapDiagnose,
	Summary: "Read the configuration of one resource",
	Doc:     "Answers the catalog entry with every default filled in. An unknown name is NotFound.",
})

// ResourcesGetRequest names one resource.
type ResourcesGetRequest struct {
	Tenant   string `json:"tenant,omitzero" cbor:"1,keyasint,omitempty" default:"default" format:"identifier" doc:"tenant of the resource"`
	Database string `json:"database,omitzero" cbor:"2,keyasint,omitempty" default:"main" format:"identifier" doc:"database of the resource"`
	Name     string `json:"name" cbor:"3,keyasint" format:"identifier" doc:"name within the database"`
}

// ResourcesGetResponse is the entry.
type ResourcesGetResponse struct {
	Resource Resource `json:"resource" cbor:"1,keyasint" doc:"the resource"`
}

// TargetDatabase is the tenant and database of the resource.
func (r *ResourcesGetRequest) TargetDatabase() (tenant, database string) { return r.Tenant, r.Database }

func (r *ResourcesGetRequest) resourceName() string { return r.Name }
