package demo

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
)

// identity is what all processes of one run share: from it each of them derives
// the same command ids and the same fates.
type identity struct {
	seed    uint64
	started int64 // milliseconds since 1970
}

// commandID is the id of the i-th command of a kind: a UUID of version 7 whose
// time is the start of the run and whose random part is derived.
func (d identity) commandID(kind string, i int) string {
	var id uuid.UUID
	h := d.hash(fmt.Sprintf("command %s %d %d", kind, i, d.started))
	copy(id[:], h[:])
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(d.started)<<16)
	copy(id[:6], at[:6])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

func (d identity) hash(of string) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d %s", d.seed, of))
}

// fate is how the handlers of one message fail before one of them succeeds.
type fate struct {
	crash    bool // the first worker dies with the message in its hands
	late     bool // the first worker stalls beyond its lease and then comes back
	failures int64
	work     time.Duration // how long the handler takes
}

// How many messages have each fate; the others are handled at the first try.
const (
	crashes     = 4
	latecomers  = 6
	failOnce    = 12
	failTwice   = 4
	longestWork = 8 * time.Millisecond
)

// fates deals the fates to the messages of the input, by their hashes.
func (d identity) fates(all []delivery) map[string]fate {
	type dealt struct {
		id string
		h  [sha256.Size]byte
	}
	var order []dealt
	for _, x := range all {
		if x.notice != nil {
			order = append(order, dealt{x.id, d.hash("fate " + x.id)})
		}
	}
	slices.SortFunc(order, func(a, b dealt) int { return strings.Compare(string(a.h[:]), string(b.h[:])) })
	out := make(map[string]fate, len(order))
	for i, x := range order {
		f := fate{work: time.Duration(binary.BigEndian.Uint16(x.h[8:])) * longestWork / (1 << 16)}
		switch n := i - crashes; {
		case n < 0:
			f.crash = true
		case n < latecomers:
			f.late = true
		case n < latecomers+failOnce:
			f.failures = 1
		case n < latecomers+failOnce+failTwice:
			f.failures = 2
		}
		out[x.id] = f
	}
	return out
}

// partition is where the demo keeps everything; the first examples of the
// command line find it by default.
func partition() api.PartitionRef {
	return api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}
}

func lane() api.LaneRef { return api.LaneRef{Partition: partition(), Queue: queue} }
