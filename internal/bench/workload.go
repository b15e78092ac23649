package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// Workload is one kind of work: so many clients, each repeating a cycle of calls
// with so many messages. A further workload is one line in workloads.
type Workload struct {
	Name    string
	Title   string // for people
	Clients int
	Batch   int // messages of one cycle

	client func(*bed, int) cycler
	// prepare does what comes before the clients, outside the measured time.
	prepare func(context.Context, *bed) error
	// once makes one store for all runs, because preparing it is long and the
	// clients leave it as they found it.
	once bool
	// probe counts the keys one receive reads, before and after prepare.
	probe bool
}

// cycler does the cycles of one client. It is used by one goroutine.
type cycler interface {
	// cycle does one cycle and returns how many messages went all the way;
	// errDone when nothing is left to do.
	cycle(ctx context.Context, r *recorder) (int, error)
}

// workloads are all there are, in the order in which they are measured.
func workloads() []Workload {
	var all []Workload
	shape := func(letter, title string, client func(*bed, int) cycler, shapes ...[2]int) {
		for _, s := range shapes {
			all = append(all, Workload{
				Name: letter + size(s[0], s[1]), Title: title, Clients: s[0], Batch: s[1], client: client,
			})
		}
	}
	shape("A", "publish and wait for the confirmation", newPublisher, [2]int{1, 1}, [2]int{64, 1}, [2]int{16, 100})
	shape("AQ", "enqueue and wait for the confirmation", newEnqueuer, [2]int{1, 1}, [2]int{64, 1}, [2]int{16, 100})
	shape("B", "enqueue, receive, acknowledge", newWorker, [2]int{1, 1}, [2]int{64, 1}, [2]int{1, 100}, [2]int{16, 100})
	return append(all,
		Workload{
			Name: "C", Title: "as B64, with a backlog", Clients: 64, Batch: 1,
			client: newWorker, prepare: preload, once: true, probe: true,
		},
		Workload{
			Name: "D", Title: "receive and acknowledge behind a message that is held", Clients: 1, Batch: 100,
			client: newDrainer, prepare: hold,
		},
		Workload{
			Name: "DG", Title: "as D, a group behind a position that is held", Clients: 1, Batch: 100,
			client: newFollower, prepare: holdPosition,
		},
		Workload{
			Name: "E", Title: fmt.Sprintf("publish; %d groups receive and acknowledge", fanOut), Clients: 1 + fanOut, Batch: 100,
			client: newFanClient, prepare: fanTopic,
		})
}

func size(clients, batch int) string {
	if batch == 1 {
		return fmt.Sprint(clients)
	}
	return fmt.Sprintf("%dx%d", clients, batch)
}

// named finds workloads by their names, in the order of workloads; all of them
// when there are no names.
func named(names []string) ([]Workload, error) {
	all := workloads()
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	var found []Workload
	for _, w := range all {
		known = append(known, w.Name)
		if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, w.Name) }) {
			found = append(found, w)
		}
	}
	for _, n := range names {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(n, k) }) {
			return nil, fault.New(fault.Validation, "unknown_workload", "there is no workload %s; there are %s", n, strings.Join(known, ", "))
		}
	}
	return found, nil
}

// The names of what every workload works on: one topic and one queue in one
// partition.
const (
	topicName = "bench-events"
	queueName = "bench-jobs"
	eventType = "Measured"
)

var (
	partition = api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}
	lane      = api.LaneRef{Partition: partition, Queue: queueName}
	topic     = api.SourceRef{Partition: partition, Resource: topicName, Kind: api.SourceTopic, Generation: 1}
)

// payloadKinds is how many different payloads there are: enough that no block
// of the store holds one twice by much, few enough to be made once.
const payloadKinds = 256

const (
	// minPayload is the smallest payload the frame around the filling fits into.
	minPayload = 64
	// maxPayload is the largest of which a hundred fit into one request.
	maxPayload = 64 << 10
)

// payloads makes JSON objects of exactly size bytes. Their filling does not
// compress to less than three quarters, so that compression does not flatter.
func payloads(size int) []api.JSON {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	state := uint64(0x9E3779B97F4A7C15)
	out := make([]api.JSON, payloadKinds)
	for i := range out {
		b := fmt.Appendf(nil, `{"order":%d,"customer":"c-%d","note":"`, 1_000_000+i, i)
		for len(b) < size-2 {
			state ^= state << 13
			state ^= state >> 7
			state ^= state << 17
			b = append(b, letters[state>>58])
		}
		out[i] = append(b, `"}`...)
	}
	return out
}
