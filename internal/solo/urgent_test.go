package solo

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/internal/machine"
)

// submitUrgent hands a command to the shard's other queue and does not wait.
func (b *bed) submitUrgent(cmd machine.Command) chan result {
	p := proposal{cmd, make(chan result, 1), func() {}}
	b.log.shards[data].urgent <- p
	return p.result
}

// positions fails unless every command was accepted, and returns their places.
func (b *bed) positions(results []chan result) (at []uint64) {
	b.t.Helper()
	for i, c := range results {
		r := <-c
		if r.err != nil || r.out.Err != nil {
			b.t.Fatalf("command %d: %v, %v", i, r.err, r.out.Err)
		}
		at = append(at, r.out.Position)
	}
	return at
}

func TestUrgentCommandsComeBeforeThoseThatWaited(t *testing.T) {
	fs := &gate{FS: vfs.NewMem()}
	b := newBed(t, fs)
	first, second, release := b.busy(fs)
	var waiting, urgent []chan result
	for i := range 3 * entryCommands {
		waiting = append(waiting, b.submit(b.put(i)))
	}
	for i := range 10 {
		urgent = append(urgent, b.submitUrgent(b.put(10_000+i)))
	}
	release()
	before := b.positions([]chan result{first, second})
	for i, at := range b.positions(urgent) {
		if at > before[1]+uint64(i)+2 { // an ordinary one may be the first
			t.Errorf("urgent command %d is at %d, and the last entry ended at %d", i, at, before[1])
		}
	}
	b.positions(waiting)
	b.close()
}

func TestAFloodOfUrgentCommandsLeavesHalfOfEachEntryToTheOthers(t *testing.T) {
	fs := &gate{FS: vfs.NewMem()}
	b := newBed(t, fs)
	first, second, release := b.busy(fs)
	var waiting, urgent []chan result
	for i := range 3 * entryCommands {
		urgent = append(urgent, b.submitUrgent(b.put(10_000+i)))
	}
	for i := range entryCommands {
		waiting = append(waiting, b.submit(b.put(i)))
	}
	release()
	before := b.positions([]chan result{first, second})
	b.positions(urgent)
	for i, at := range b.positions(waiting) {
		if entries := uint64(i)/(entryCommands/2) + 1; at > before[1]+entries*entryCommands {
			t.Errorf("command %d is at %d, and the last entry ended at %d", i, at, before[1])
		}
	}
	b.close()
}
