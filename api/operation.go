package api

import (
	"reflect"
	"strings"
)

// Kind says how an operation is evaluated.
type Kind uint8

const (
	// Query reads a snapshot; it never changes a byte.
	Query Kind = iota
	// Command goes through the log; it has a command id and a receipt.
	Command
	// Composite is carried out as several commands, one after the other: each has an
	// id and a receipt of its own, the whole has none.
	Composite
)

// Scope says where an operation is evaluated.
type Scope uint8

const (
	// PartitionScope operations name one partition; its shard evaluates them.
	PartitionScope Scope = iota
	// CatalogScope operations are evaluated by the catalog shard, in one order
	// for the whole store (resources, principals, keys).
	CatalogScope
	// NodeScope operations are answered by the node that got them.
	NodeScope
)

// Operation is the descriptor of one operation.
type Operation struct {
	// Name is area.verb or area.thing.verb, lower case, words joined by '-', for example
	// "queues.receive". The HTTP path, the CLI words and the tool name follow.
	Name string
	// Number identifies the operation in the log; append-only.
	Number uint16
	Kind   Kind
	Scope  Scope
	// Capability is what the caller needs on each resource the request names.
	Capability Capability
	// Summary is one line; Doc is a paragraph on what can be observed.
	Summary, Doc string
	// Long queries may take minutes: they have no deadline and end when their caller
	// leaves, or the node stops.
	Long bool
	// Destructive operations remove data or refuse work that was possible.
	Destructive bool
	// Request and Response are struct types, set by Define.
	Request, Response reflect.Type
}

// Op is a descriptor with its Go types, so that a handler or a call of the
// wrong type does not compile.
type Op[Req, Resp any] struct{ *Operation }

// Define completes a descriptor with its types.
func Define[Req, Resp any](o Operation) Op[Req, Resp] {
	o.Request, o.Response = reflect.TypeFor[Req](), reflect.TypeFor[Resp]()
	return Op[Req, Resp]{&o}
}

// Path is the HTTP path, for example "/v1/queues/receive".
func (o *Operation) Path() string { return "/v1/" + strings.ReplaceAll(o.Name, ".", "/") }

// Tool is the name of the tool that agents call, for example "keyload_queues_receive".
func (o *Operation) Tool() string {
	return "keyload_" + strings.NewReplacer(".", "_", "-", "_").Replace(o.Name)
}

// Words are the command line's words, for example ["queues", "receive"].
func (o *Operation) Words() []string { return strings.Split(o.Name, ".") }

// Area is the first word of the name.
func (o *Operation) Area() string { return o.Words()[0] }

// Writes says that the operation may change what is stored: whoever gets no answer
// does not know what happened.
func (o *Operation) Writes() bool { return o.Kind != Query }

// PartitionRequest is implemented (by pointer) by the requests of partition
// scope.
type PartitionRequest interface {
	// TargetPartition is the partition that evaluates the request.
	TargetPartition() PartitionRef
}

// DatabaseRequest is implemented (by pointer) by the requests of catalog scope.
type DatabaseRequest interface {
	// TargetDatabase is the tenant and database the request speaks of; database
	// is empty for what belongs to a tenant as a whole.
	TargetDatabase() (tenant, database string)
}

// CommandRequest is implemented (by pointer) by the requests of commands and
// of composite operations.
type CommandRequest interface {
	// GetCommandID is the caller's stable identity of this write, "" if unset.
	GetCommandID() string
	// SetCommandID sets it; the SDKs make a version 7 UUID when it is absent.
	SetCommandID(id string)
}

// CompositeRequest is implemented (by pointer) by the requests of composite
// operations. The command id is the caller's name for the whole.
type CompositeRequest interface {
	CommandRequest
	// NameParts gives every part that has no id its PartID.
	NameParts()
}
