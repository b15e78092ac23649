package api

// ResourcesDelete removes a resource.
var ResourcesDelete = Define[ResourcesDeleteRequest, ResourcesDeleteResponse](Operation{
	Name: "resources.delete", Number: 19, Kind: Command, Scope: CatalogScope, Capability: CapSchemaManage, Destructive: true,
	Summary: "Delete a resource",
	Doc: "Refuses a resource that holds anything, unless purge is set: then the content of every partition is removed in " +
		"bounded steps that go on after a restart, and the resource can neither be read nor written meanwhile.",
})

// DeleteStatus says how far a deletion is.
type DeleteStatus string

// How far a deletion is.
const (
	DeleteDone    DeleteStatus = "deleted" // nothing is left
	DeletePurging DeleteStatus = "purging" // the content is being removed
)

// ResourcesDeleteRequest names one resource.
type ResourcesDeleteRequest struct {
	CommandID       string `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Tenant          string `json:"tenant,omitzero" cbor:"2,keyasint,omitempty" default:"default" format:"identifier" doc:"tenant of the resource"`
	Database        string `json:"database,omitzero" cbor:"3,keyasint,omitempty" default:"main" format:"identifier" doc:"database of the resource"`
	Name            string `json:"name" cbor:"4,keyasint" format:"identifier" doc:"name within the database"`
	Purge           bool   `json:"purge,omitzero" cbor:"5,keyasint,omitempty" doc:"remove what the resource holds too: of a topic or stream set also its subscription groups, with what they have not finished"`
	ExpectedVersion uint64 `json:"expectedVersion,omitzero" cbor:"6,keyasint,omitempty" minimum:"1" doc:"version the resource must have; not compared when absent"`
	HoldsRows       bool   `json:"-" cbor:"7,keyasint,omitempty" doc:"whether any partition holds rows of it, filled by the door"`
	Fence           uint64 `json:"-" cbor:"8,keyasint,omitempty" doc:"freeze under which the door looked, filled by the door"`
}

// ResourcesDeleteResponse says how far the deletion is.
type ResourcesDeleteResponse struct {
	Receipt Receipt      `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Status  DeleteStatus `json:"status" cbor:"2,keyasint" enum:"deleted,purging" doc:"whether content is still being removed"`
}

// GetCommandID is the caller's identity of the write.
func (r *ResourcesDeleteRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *ResourcesDeleteRequest) SetCommandID(id string) { r.CommandID = id }

// TargetDatabase is the tenant and database of the resource.
func (r *ResourcesDeleteRequest) TargetDatabase() (tenant, database string) {
	return r.Tenant, r.Database
}

func (r *ResourcesDeleteRequest) resourceName() string { return r.Name }
