package commitlog

import (
	"context"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
)

// Log is the log of every shard of a node. It is safe for concurrent use.
type Log interface {
	// Propose evaluates a command in a shard and returns once its entry is durable.
	// An urgent one comes before those that wait and are not; commands of one kind
	// keep their order. left, if not nil, is called once, when the log holds the
	// command no more; that may be after the return. Errors: UnknownWriteOutcome once
	// the command may be in the log; OwnershipLost, RecoveryRequired or Cancelled when
	// it certainly is not.
	Propose(ctx context.Context, shard uint16, cmd machine.Command, urgent bool, left func()) (machine.Outcome, error)
	// Read runs fn on a snapshot that shows everything the shard had acknowledged when
	// Read began, and returns once everything it can have seen is durable. fn may run
	// twice; the last run counts.
	Read(ctx context.Context, shard uint16, fn func(*kv.Snapshot) error) error
	// NextDue is the next instant, in milliseconds, at which something of the shard is
	// due that this node must handle; 0 for none. Changed gets a value when it may have
	// moved earlier.
	NextDue(shard uint16) (when int64, changed <-chan struct{})
	// Status tells where a shard stands.
	Status(shard uint16) Status
	// Close answers what is in flight and stops every shard.
	Close() error
}

// Config says what a log runs on.
type Config struct {
	Store *kv.Store
	// Machine is the configuration of every shard's machine; Shard is filled in.
	Machine machine.Config
	// Shards is how many data shards there are; the catalog's is shard 0.
	Shards uint16
	// Now is the leader's clock in milliseconds; Seed its randomness.
	Now  func() int64
	Seed func() uint64
	// Hint gets what entries hint at, after they are durable.
	Hint func(op.Hint)
	// Applied is told of every entry with commands that a replicated log has brought
	// to this node, before anybody is answered by the state with it. It must not block.
	Applied func(shard uint16)
	// Led is told when this node has become the leader of a shard and has applied all
	// that earlier ones acknowledged. It must not block.
	Led func(shard uint16, term uint64)
}

// Status is where a shard stands.
type Status struct {
	// Applied is the position that a read which begins now shows at least; Position
	// that of the last entry whose commands are answered; Durable is on disk.
	Applied, Position, Durable uint64
	Digest                     uint64
	Time                       int64
	Epoch                      uint64
	// Err is why the shard takes no more writes; nil while it does.
	Err error
	// Leader is the node that leads the shard, 0 where that is not known or there is
	// one node only. Term is that of its leadership, which only rises.
	Leader, Term uint64
	// Here says that this node leads the shard, and has applied everything that was
	// committed before it did. The next instant may have ended it.
	Here bool
	// Entries, Rows and Bytes are what was handed to the store since Open, Work
	// what evaluation cost.
	Entries, Rows, Bytes uint64
	Work                 kv.Work
}

// Stopped is the error of a shard that takes no more commands.
func Stopped(shard uint16, cause error) error {
	return fault.New(fault.RecoveryRequired, "shard_stopped",
		"shard %d has stopped and takes no writes: %v. Reads go on; put the cause right and start the store again", shard, cause)
}

// Closed is the answer to a command that was on its way when the log was closed.
func Closed() error {
	return fault.New(fault.UnknownWriteOutcome, "store_closed", "the store was closed; open it again and repeat the command with the same id")
}

// Unsubmitted is the answer to a caller who left before the command was handed over.
func Unsubmitted() error {
	return fault.New(fault.Cancelled, "cancelled", "the caller went away before the command was submitted; nothing happened")
}

// CallerLeft is the answer to a caller who left after that.
func CallerLeft() error {
	return fault.New(fault.UnknownWriteOutcome, "caller_left",
		"the caller stopped waiting after the command was submitted; repeat it with the same command id to learn its outcome")
}
