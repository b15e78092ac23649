package api

import (
	"reflect"
	"slices"
)

// Capability is one thing a principal may do with a resource. The set is
// closed.
type Capability string

// The capabilities of the contract.
const (
	CapDocumentsRead      Capability = "documents.read"      // get and list documents
	CapDocumentsWrite     Capability = "documents.write"     // put, patch and delete documents
	CapQuery              Capability = "query"               // query documents by their fields
	CapEventsAppend       Capability = "events.append"       // append to streams
	CapEventsRead         Capability = "events.read"         // read streams
	CapTopicsPublish      Capability = "topics.publish"      // publish to topics
	CapTopicsRead         Capability = "topics.read"         // read topics
	CapTopicsPurge        Capability = "topics.purge"        // cut the head of a topic
	CapQueuesPublish      Capability = "queues.publish"      // enqueue messages
	CapQueuesConsume      Capability = "queues.consume"      // receive, complete and process deliveries
	CapQueuesInspect      Capability = "queues.inspect"      // see messages and counters
	CapQueuesManage       Capability = "queues.manage"       // cancel, reschedule and park messages
	CapDeadLettersRead    Capability = "deadletters.read"    // see dead letters
	CapDeadLettersRedrive Capability = "deadletters.redrive" // deliver dead letters again
	CapGroupsManage       Capability = "groups.manage"       // configure, seek, pause and delete groups
	CapGroupsConsume      Capability = "groups.consume"      // receive and complete group deliveries
	CapChangesRead        Capability = "changes.read"        // read the change feed
	CapSchedulesManage    Capability = "schedules.manage"    // configure schedules and sagas
	CapTransfersManage    Capability = "transfers.manage"    // create and retry transfers
	CapSchemaManage       Capability = "schema.manage"       // configure and delete resources
	CapSecurityManage     Capability = "security.manage"     // configure principals and keys
	CapBackupManage       Capability = "backup.manage"       // back up and restore
	CapDiagnose           Capability = "diagnose"            // see the catalog and the state of the node
)

// CapAnyMutation is a need that the capability of any kind of mutation, on any
// resource of the database, meets. It is no capability and cannot be granted.
const CapAnyMutation Capability = "of any mutation"

// AnyName in a grant stands for every database, resource or capability.
const AnyName = "*"

// AllCapabilities lists every capability in the order of the contract.
func AllCapabilities() []Capability {
	return []Capability{
		CapDocumentsRead, CapDocumentsWrite, CapQuery, CapEventsAppend, CapEventsRead, CapTopicsPublish, CapTopicsRead, CapTopicsPurge,
		CapQueuesPublish, CapQueuesConsume, CapQueuesInspect, CapQueuesManage, CapDeadLettersRead, CapDeadLettersRedrive,
		CapGroupsManage, CapGroupsConsume, CapChangesRead, CapSchedulesManage, CapTransfersManage, CapSchemaManage,
		CapSecurityManage, CapBackupManage, CapDiagnose,
	}
}

// mutationCapabilities is derived once from the kinds of mutations.
var mutationCapabilities = func() []Capability {
	var out []Capability
	for _, k := range MutationKinds() {
		if c := reflect.New(k.Type).Interface().(MutationBody).Need().Capability; !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}()

// MutationCapabilities lists what the kinds of mutations need, each once.
func MutationCapabilities() []Capability { return slices.Clone(mutationCapabilities) }

// Known says whether c is a capability of the contract.
func (c Capability) Known() bool { return slices.Contains(AllCapabilities(), c) }

// Role is a named bundle of capabilities on everything of a tenant.
type Role string

// The roles.
const (
	RoleProducer Role = "producer" // writes documents, events and messages
	RoleWorker   Role = "worker"   // consumes, and writes what handlers write
	RoleReader   Role = "reader"   // sees data and counters, changes nothing
	RoleOperator Role = "operator" // a reader who also repairs, configures and backs up
	RoleAdmin    Role = "admin"    // everything, security included
)

// AllRoles lists every role.
func AllRoles() []Role {
	return []Role{RoleProducer, RoleWorker, RoleReader, RoleOperator, RoleAdmin}
}

// RoleCapabilities is what a role may do; nil for an unknown role.
func RoleCapabilities(r Role) []Capability {
	switch r {
	case RoleProducer:
		return []Capability{CapDocumentsRead, CapDocumentsWrite, CapEventsAppend, CapTopicsPublish, CapQueuesPublish}
	case RoleWorker:
		return []Capability{
			CapDocumentsRead, CapDocumentsWrite, CapQuery, CapEventsAppend, CapEventsRead, CapTopicsPublish, CapTopicsRead,
			CapQueuesPublish, CapQueuesConsume, CapGroupsConsume,
		}
	case RoleReader:
		return []Capability{CapDocumentsRead, CapQuery, CapEventsRead, CapTopicsRead, CapQueuesInspect, CapDeadLettersRead, CapChangesRead, CapDiagnose}
	case RoleOperator:
		return append(RoleCapabilities(RoleReader),
			CapTopicsPurge, CapQueuesManage, CapDeadLettersRedrive, CapGroupsManage, CapSchedulesManage, CapTransfersManage, CapSchemaManage, CapBackupManage)
	case RoleAdmin:
		return AllCapabilities()
	default:
		return nil
	}
}

// Need is one capability on one resource of the request's database.
type Need struct {
	Capability Capability
	Resource   string // empty when the operation names no resource
}

// Needs lists what the caller of the operation must be allowed to do with this
// request, which is a pointer to the operation's request type. It is empty for
// operations that need no more than a known caller.
func (o *Operation) Needs(req any) []Need {
	if n, ok := req.(interface{ needs() []Need }); ok {
		return n.needs()
	}
	if o.Capability == "" {
		return nil
	}
	n := Need{Capability: o.Capability}
	if r, ok := req.(interface{ resourceName() string }); ok {
		n.Resource = r.resourceName()
	}
	return []Need{n}
}
