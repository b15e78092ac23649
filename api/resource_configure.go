package api

import "github.com/keyload/keyload/fault"

// ResourcesConfigure creates or updates a resource.
var ResourcesConfigure = Define[ResourcesConfigureRequest, ResourcesConfigureResponse](Operation{
	Name: "resources.configure", Number: 16, Kind: Command, Scope: CatalogScope, Capability: CapSchemaManage,
	Summary: "Create a collection, stream set, topic or queue, or change its policy",
	Doc: "Creates the resource; or answers it unchanged when the configuration is equal; or, with its exact expectedVersion, " +
		"replaces the policy as a whole: what is absent takes its default. Kind and domain never change.",
})

// ResourcesConfigureRequest is the whole configuration of one resource.
type ResourcesConfigureRequest struct {
	CommandID       string            `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Tenant          string            `json:"tenant,omitzero" cbor:"2,keyasint,omitempty" default:"default" format:"identifier" doc:"tenant of the resource"`
	Database        string            `json:"database,omitzero" cbor:"3,keyasint,omitempty" default:"main" format:"identifier" doc:"database of the resource"`
	Name            string            `json:"name" cbor:"4,keyasint" format:"identifier" doc:"name within the database"`
	Domain          string            `json:"domain,omitzero" cbor:"5,keyasint,omitempty" default:"main" format:"identifier" doc:"transaction domain the resource is bound to"`
	Kind            ResourceKind      `json:"kind" cbor:"6,keyasint" enum:"collection,streamSet,topic,queue" doc:"what the resource holds"`
	ExpectedVersion uint64            `json:"expectedVersion,omitzero" cbor:"7,keyasint,omitempty" minimum:"1" doc:"version the resource must have; needed to change one"`
	Collection      *CollectionPolicy `json:"collection,omitzero" cbor:"8,keyasint,omitempty" doc:"only of a collection; all defaults when absent"`
	Queue           *QueuePolicy      `json:"queue,omitzero" cbor:"9,keyasint,omitempty" doc:"only of a queue; all defaults when absent"`
	Source          *SourcePolicy     `json:"source,omitzero" cbor:"10,keyasint,omitempty" doc:"only of a topic or stream set; all defaults when absent"`
	FieldPolicies   []FieldPolicy     `json:"fieldPolicies,omitempty" cbor:"11,keyasint,omitempty" maxItems:"64" doc:"protected fields"`
	Paused          bool              `json:"paused,omitzero" cbor:"12,keyasint,omitempty" doc:"whether delivery is stopped"`
}

// ResourcesConfigureResponse is the resource as it is now.
type ResourcesConfigureResponse struct {
	Receipt  Receipt  `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Resource Resource `json:"resource" cbor:"2,keyasint" doc:"the resource with every default filled in"`
	Created  bool     `json:"created,omitzero" cbor:"3,keyasint,omitempty" doc:"it did not exist before"`
	Changed  bool     `json:"changed,omitzero" cbor:"4,keyasint,omitempty" doc:"it was created or its configuration differed"`
}

// SetDefaults adds the policy that belongs to the kind.
func (r *ResourcesConfigureRequest) SetDefaults() {
	switch {
	case r.Kind == KindCollection && r.Collection == nil:
		r.Collection = &CollectionPolicy{}
	case r.Kind == KindQueue && r.Queue == nil:
		r.Queue = &QueuePolicy{}
	case (r.Kind == KindTopic || r.Kind == KindStreamSet) && r.Source == nil:
		r.Source = &SourcePolicy{}
	}
}

// Check refuses a policy of another kind.
func (r *ResourcesConfigureRequest) Check() []fault.Violation {
	var v []fault.Violation
	only := func(given bool, path string, kinds ...ResourceKind) {
		for _, k := range kinds {
			given = given && k != r.Kind
		}
		if given {
			v = append(v, fault.Violation{Path: path, Message: "does not belong to a resource of this kind"})
		}
	}
	only(r.Collection != nil, "/collection", KindCollection)
	only(r.Queue != nil, "/queue", KindQueue)
	only(r.Source != nil, "/source", KindTopic, KindStreamSet)
	return v
}

// Resource is the configuration as a catalog entry without id, version and
// times.
func (r *ResourcesConfigureRequest) Resource() Resource {
	return Resource{
		Tenant: r.Tenant, Database: r.Database, Name: r.Name, Domain: r.Domain, Kind: r.Kind,
		Collection: r.Collection, Queue: r.Queue, Source: r.Source,
		FieldPolicies: r.FieldPolicies, Paused: r.Paused,
	}
}

// GetCommandID is the caller's identity of the write.
func (r *ResourcesConfigureRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *ResourcesConfigureRequest) SetCommandID(id string) { r.CommandID = id }

// TargetDatabase is the tenant and database of the resource.
func (r *ResourcesConfigureRequest) TargetDatabase() (tenant, database string) {
	return r.Tenant, r.Database
}

func (r *ResourcesConfigureRequest) resourceName() string { return r.Name }
