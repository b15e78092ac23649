package check_test

import (
	"slices"
	"strings"
)

// excuse is a damage that no check can find, because nothing else that is stored
// tells of it. field is empty for a whole row.
type excuse struct{ kind, table, field, why string }

// excuses lists all of them. Whoever finds something that tells of one adds it to
// the check, and takes the excuse away.
var excuses = []excuse{
	{"alter", "shardHead", "Digest", "rolls over the commands; replicas compare it"},
	{"alter", "shardHead", "Time", "may be later than everything stored"},
	{"alter", "shardHead", "Position", "may be beyond every receipt: ticks and transient commands leave none"},
	{"alter", "shardHead", "Epoch", "may be beyond every receipt's"},
	{"remove", "applied", "", "a store without it is one that stands alone"},
	{"alter", "applied", "Index", "may be any entry; the journal beside the store tells it"},
	{"alter", "applied", "Term", "may be later than the epoch of the last command"},
	{"alter", "applied", "Node", "is the node's, whose journal tells it"},
	{"alter", "applied", "Voters", "may be any nodes"},
	{"alter", "applied", "Learners", "may be any nodes"},
	{"remove", "receipt", "", "a command without a receipt is one that never came"},
	{"move", "receipt", "", "the id of a command is told by its receipt alone"},
	{"alter", "receipt", "Fingerprint", "is of a request that is not stored"},
	{"alter", "receipt", "Body", "is the answer, which is nowhere else; it must only be readable"},
	{"alter", "receipt", "At", "may be any instant before the shard's"},
	{"alter", "receipt", "Op", "another operation may answer alike"},
	{"alter", "receipt", "Position", "may be any position at which nothing else is known to have been applied"},
	{"alter", "identity", "Incarnation", "names the history; tokens outside of the store tell it"},
	{"alter", "identity", "TokenKeys", "sign tokens outside of the store"},
	{"alter", "identity", "CreatedAt", "is for people"},
	{"alter", "lineage", "Ended", "positions and instants must only rise"},
	{"alter", "resourcePurge", "Next", "an earlier place repeats steps"},
	{"remove", "member", "", "a node that was only invited is told by its row alone"},
	{"alter", "member", "Address", "is told by the row alone"},
	{"alter", "member", "URL", "is told by the row alone"},
	{"alter", "member", "Revision", "of a node that has joined: it may have moved any number of times"},
	{"alter", "member", "Draining", "of a node that has joined"},
	{"alter", "leadership", "Node", "may be any that has joined"},
	{"remove", "leadership", "", "a choice is told by its row alone"},
	{"alter", "apiKey", "SecretHash", "is of a secret that is not stored"},
	{"alter", "apiKey", "Key.CreatedAt", "may be any instant before the shard's"},
	{"alter", "apiKey", "Key.ExpiresAt", "is told by the key alone"},
	{"alter", "apiKey", "Key.RevokedAt", "may be any instant before the shard's"},
	{"alter", "catalogHistory", "Record", "of a change that a later one replaced"},
	{"alter", "document", "Revision", "is told by the document alone"},
	{"alter", "document", "UpdatedAt", "of a document that is no tombstone"},
	{"alter", "document", "Body", "fields that no index holds; it must only be one JSON value of the same length"},
	{"move", "document", "", "the id of a document without an index"},
	{"alter", "sourceHead", "KeepIDsUntil", "may be later than every list of purged ids says"},
	{"alter", "sourceHead", "PinFloor", "is a lower bound"},
	{"alter", "event", "PublishedAt", "may be anything between the events beside it"},
	{"alter", "eventId", "Digest", "of an event that is purged"},
	{"alter", "ageSweep", "Next", "where it goes on is told by it alone"},
	{"alter", "limitSweep", "Partition", "where it goes on is told by it alone"},
	{"alter", "message", "Digest", "is of the request, whose instants are not kept"},
	{"alter", "message", "EnqueuedAt", "may be any instant before the shard's"},
	{"alter", "message", "StateVersion", "is told by the message alone"},
	{"alter", "message", "Priority", "of a message that is not ready"},
	{"alter", "message", "Seq", "of a message that is finished"},
	{"alter", "message", "PayloadBytes", "of a message that is finished"},
	{"alter", "message", "ContentBytes", "of a message that is finished"},
	{"alter", "message", "Charge", "of a message that is finished"},
	{"alter", "message", "ReadySeq", "of a message that is leased"},
	{"alter", "message", "LeaseVersion", "of a message that is not leased"},
	{"alter", "message", "ExpiresAt", "of a message that does not wait"},
	{"alter", "message", "FinishedAt", "of a dead letter"},
	{"alter", "message", "OrderingKey", "is told by the message alone"},
	{"alter", "message", "FairnessKey", "is told by the message alone"},
	{"alter", "message", "LastFailure", "is told by the message alone"},
	{"alter", "message", "Lease.Epoch", "is told by the message alone"},
	{"alter", "message", "Lease.Owner", "is told by the message alone"},
	{"alter", "message", "Lease.Session", "is told by the message alone"},
	{"alter", "messageBody", "Payload", "content of the same length; it must only be JSON where it was"},
	{"alter", "messageBody", "ContentType", "content"},
	{"alter", "messageBody", "Headers", "content of the same length"},
	{"alter", "messageBody", "JSON", "a payload may be JSON and bytes"},
	{"alter", "lease", "IDs", "of messages that have left the lease"},
	{"alter", "laneHead", "ReadySeq", "may be above every one given"},
	{"alter", "laneHead", "Batch", "may be above every one given"},
	{"alter", "laneHead", "First.Scheduled", "is a lower bound"},
	{"alter", "laneHead", "First.Lease", "is a lower bound"},
	{"alter", "laneHead", "First.Expiry", "is a lower bound"},
	{"alter", "laneHead", "First.Finished", "is a lower bound"},
	{"alter", "laneHead", "Totals.Delivered", "counts what is over"},
	{"alter", "laneHead", "Totals.Nacked", "counts what is over"},
	{"alter", "laneHead", "Totals.LeasesLost", "counts what is over"},
	{"alter", "laneHead", "Totals.DeadLettered", "counts what is over"},
	{"alter", "laneHead", "Totals.Redriven", "counts what is over"},
	{"alter", "inbox", "Fingerprint", "is of effects that are over"},
	{"alter", "inboxHead", "Oldest", "is a lower bound"},
	{"alter", "groupDefinition", "CreatedAt", "is for people"},
	{"alter", "groupDefinition", "Tenant", "is told by the definition alone"},
	{"move", "groupDefinition", "", "the name of a group without a due row"},
	{"alter", "groupHead", "Generation", "may be above the group's number"},
	{"alter", "groupHead", "Epoch", "may be above the group's number"},
	{"alter", "groupHead", "Paused", "is told by the head alone"},
	{"alter", "groupHead", "Batch", "may be above every one given"},
	{"alter", "groupHead", "PassedBelow", "counts what is over"},
	{"alter", "groupHead", "First.Wait", "is a lower bound"},
	{"alter", "groupHead", "First.Lease", "is a lower bound"},
	{"alter", "groupHead", "Floor", "is a lower bound"},
	{"alter", "groupHead", "Totals.Delivered", "counts what is over"},
	{"alter", "groupHead", "Totals.Acked", "counts what is over"},
	{"alter", "groupHead", "Totals.Nacked", "counts what is over"},
	{"alter", "groupHead", "Totals.LeasesLost", "counts what is over"},
	{"alter", "groupHead", "Totals.PassedOver", "counts what is over"},
	{"alter", "groupHead", "Totals.DeadLettered", "counts what is over"},
	{"alter", "groupHead", "Totals.Redriven", "counts what is over"},
	{"alter", "groupRow", "entry.IssuedAt", "may be any instant before the shard's"},
	{"alter", "groupRow", "entry.First", "may be any instant before the shard's"},
	{"alter", "groupRow", "entry.LastFailure", "is told by the row alone"},
	{"alter", "groupLease", "Principal", "is told by the lease alone"},
	{"alter", "groupLease", "Epoch", "is told by the lease alone"},
	{"alter", "groupLease", "Session", "is told by the lease alone"},
	{"alter", "groupDead", "entry.IssuedAt", "may be any instant before the shard's"},
	{"alter", "groupDead", "entry.First", "may be any instant before the shard's"},
	{"alter", "groupDead", "entry.LastFailure", "is told by the dead letter alone"},
	{"alter", "groupDead", "Version", "is told by the dead letter alone"},
	{"alter", "groupDead", "Redrives", "is told by the dead letter alone"},
	{"alter", "groupDead", "At", "may be any instant before the shard's"},
	{"alter", "groupSkip", "Position", "a group may have been moved since"},
	{"alter", "groupSkip", "Reason", "is told by the skip alone"},
	{"alter", "groupSkip", "Principal", "is told by the skip alone"},
	{"alter", "groupSkip", "At", "may be any instant before the shard's"},
}

func (x excuse) name() string { return strings.Join([]string{x.kind, x.table, x.field}, " ") }

// name says what was done.
func (d damage) name() string {
	return strings.Join([]string{d.kind, d.table.Name, strings.Join(d.fields, ",")}, " ")
}

// excuse names the excuse of a damage that was not found; "" where there is none.
// All that was altered must be excused.
func (d damage) excuse(list []excuse) string {
	fields := d.fields
	if len(fields) == 0 {
		fields = []string{""}
	}
	first := ""
	for _, f := range fields {
		i := slices.IndexFunc(list, func(x excuse) bool { return x.kind == d.kind && x.table == d.table.Name && x.field == f })
		if i < 0 {
			return ""
		}
		if first == "" {
			first = list[i].name()
		}
	}
	return first
}
