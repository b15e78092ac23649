package bench

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
)

// Command is the command line of a measurement.
type Command struct {
	Workloads  []string       `placeholder:"NAME" help:"workloads to measure, for example A64,B1; all of them when absent"`
	Modes      []Mode         `placeholder:"MODE" default:"embedded,wire" enum:"embedded,wire,http,cluster" help:"how clients reach the store: embedded, wire (one session), http (one request each), cluster (one session with three nodes on this machine); default embedded,wire"`
	Payload    []int          `placeholder:"BYTES" default:"256" help:"sizes of the payloads, 64 to 65536 (default 256)"`
	Runs       int            `placeholder:"N" default:"3" help:"runs of each, of which the one in the middle is reported (default 3)"`
	Seconds    float64        `placeholder:"S" default:"3" help:"length of a run (default 3)"`
	Count      *int64         `placeholder:"N" help:"end a run after so many cycles instead of after a time"`
	Backlog    int            `placeholder:"N" default:"1000000" help:"messages that wait in the workload C (default 1000000)"`
	Durability api.Durability `placeholder:"LEVEL" enum:"disk,process" default:"disk" help:"disk, or process to see what the disk costs (default disk)"`
	Profile    string         `type:"path" placeholder:"FILE" help:"write processor profiles of the embedded runs, one a workload"`

	// Dir is where the stores are made, below a directory of their own that is
	// removed in the end; the working directory when empty. Its disk is what is
	// measured.
	Dir string `kong:"-"`
}

// appends are enough for a median that does not move much.
const appends = 200

// Help says what the command does, with examples.
func (*Command) Help() string {
	return "Measures this machine: messages a second, what each waits and what each costs, on stores of its own below --dir " +
		"(the working directory when absent), which are removed in the end. Every confirmation is on disk. For example:\n\n" +
		"    keyload bench\n    keyload bench --workloads A64,B64 --modes embedded,wire,http --payload 256,4096\n" +
		"    keyload bench --workloads B64 --modes embedded --profile cpu.pprof\n\n" +
		"Workloads: A publishes, AQ enqueues, B enqueues, receives and acknowledges, C is B before a long backlog, D drains " +
		"behind a message that is held, DG is D for a subscription group, E publishes to ten groups. The numbers are clients x messages of one call."
}

// Measure does what the command line says. It shows how it goes on w, with bars
// where that is a terminal; a nil w shows nothing. Errors of the command line
// are Validation.
func (c *Command) Measure(ctx context.Context, w io.Writer, terminal bool) (report *Report, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	found, err := named(c.Workloads)
	if err != nil {
		return nil, err
	}
	dir, err := below(c.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	length := limit{time: time.Duration(c.Seconds * float64(time.Second))}
	if c.Count != nil {
		length.cycles = *c.Count
	}
	s := &session{
		workloads: found, modes: c.Modes, payloads: c.Payload, runs: c.Runs,
		limit: length, backlog: c.Backlog, durable: c.Durability, profile: c.Profile, dir: dir, appends: appends,
		server: func(ctx context.Context, store string) (*exec.Cmd, error) {
			return again(ctx, ServeName, "--dir", store, "--durability", string(c.Durability))
		},
		program:  os.Executable,
		progress: newProgress(w, terminal),
	}
	defer s.progress.close()
	return s.measure(ctx)
}

func (c *Command) check() error {
	for _, n := range c.Payload {
		if n < minPayload || n > maxPayload {
			return fault.Invalid("/payload", "is %d; it must be %d to %d", n, minPayload, maxPayload)
		}
	}
	switch {
	case c.Runs < 1:
		return fault.Invalid("/runs", "must be at least 1")
	case c.Count != nil && *c.Count < 1:
		return fault.Invalid("/count", "must be at least 1")
	case c.Count == nil && c.Seconds <= 0:
		return fault.Invalid("/seconds", "must be more than 0")
	case c.Durability == api.DurableProcess && slices.Contains(c.Modes, Cluster):
		return fault.Invalid("/durability", "must be disk for the mode cluster: its nodes always wait for their disks")
	case c.Backlog < 0 || c.Backlog > limits.QueueMessages/2:
		return fault.Invalid("/backlog", "must be 0 to %d", limits.QueueMessages/2)
	case len(c.Modes) == 0 || len(c.Payload) == 0:
		return fault.Invalid("/modes", "there is nothing to measure")
	}
	return nil
}
