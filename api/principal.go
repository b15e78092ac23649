package api

// Principal is who may do what. A role covers everything of the tenant; a grant
// covers what it names.
type Principal struct {
	ID            string       `json:"id" cbor:"1,keyasint" format:"identifier" doc:"name within the tenant"`
	Tenant        string       `json:"tenant,omitzero" cbor:"2,keyasint,omitempty" default:"default" format:"identifier" doc:"tenant the principal belongs to"`
	Roles         []Role       `json:"roles,omitempty" cbor:"3,keyasint,omitempty" maxItems:"16" enum:"producer,worker,reader,operator,admin" doc:"bundles of capabilities on everything of the tenant"`
	Grants        []Grant      `json:"grants,omitempty" cbor:"4,keyasint,omitempty" maxItems:"256" doc:"capabilities on single databases and resources"`
	FieldGrants   []FieldGrant `json:"fieldGrants,omitempty" cbor:"5,keyasint,omitempty" maxItems:"256" doc:"rights on protected fields"`
	Administrator bool         `json:"administrator,omitzero" cbor:"6,keyasint,omitempty" doc:"may do everything in every tenant"`
	ExpiresAt     Time         `json:"expiresAt,omitzero" cbor:"7,keyasint,omitempty" doc:"unknown from this instant on"`
	Revoked       bool         `json:"revoked,omitzero" cbor:"8,keyasint,omitempty" doc:"may do nothing any more"`
	PolicyEpoch   uint64       `json:"policyEpoch" cbor:"9,keyasint" minimum:"1" doc:"version of this policy; every update must raise it"`
}

// Grant allows capabilities on one resource of one database; "*" stands for
// any.
type Grant struct {
	Database     string       `json:"database" cbor:"1,keyasint" format:"identifier" doc:"database, or * for every one"`
	Resource     string       `json:"resource" cbor:"2,keyasint" format:"identifier" doc:"resource, or * for every one"`
	Capabilities []Capability `json:"capabilities" cbor:"3,keyasint" minItems:"1" maxItems:"64" format:"capability" doc:"what is allowed, or * for everything"`
}

// FieldRight is what a principal may do with a protected field.
type FieldRight string

// The rights on a protected field.
const (
	FieldRawRead FieldRight = "rawRead" // see it
	FieldRawUse  FieldRight = "rawUse"  // filter and index by it
	FieldWrite   FieldRight = "write"   // write it
)

// FieldGrant allows rights on one protected field; "*" stands for any database
// or resource.
type FieldGrant struct {
	Database string       `json:"database" cbor:"1,keyasint" format:"identifier" doc:"database, or * for every one"`
	Resource string       `json:"resource" cbor:"2,keyasint" format:"identifier" doc:"resource, or * for every one"`
	Path     string       `json:"path" cbor:"3,keyasint" format:"pointer" doc:"JSON pointer of the protected field"`
	Rights   []FieldRight `json:"rights" cbor:"4,keyasint" minItems:"1" maxItems:"3" enum:"rawRead,rawUse,write" doc:"what is allowed"`
}

// APIKey is one key of a principal, without its secret.
type APIKey struct {
	KeyID       string `json:"keyId" cbor:"1,keyasint" doc:"public part of the key"`
	PrincipalID string `json:"principalId" cbor:"2,keyasint" doc:"whose key it is"`
	Tenant      string `json:"tenant" cbor:"3,keyasint" doc:"tenant of the principal"`
	CreatedAt   Time   `json:"createdAt" cbor:"4,keyasint" doc:"logged time of its creation"`
	ExpiresAt   Time   `json:"expiresAt,omitzero" cbor:"5,keyasint,omitempty" doc:"refused from this instant on"`
	Revoked     bool   `json:"revoked,omitzero" cbor:"6,keyasint,omitempty" doc:"refused for good"`
	RevokedAt   Time   `json:"revokedAt,omitzero" cbor:"7,keyasint,omitempty" doc:"logged time of the revocation"`
}
