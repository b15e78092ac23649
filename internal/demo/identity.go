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

// fate is how the handlers of one delivery fail before one of them succeeds.
type fate struct {
	crash    bool // the first worker dies with the delivery in its hands
	late     bool // the first worker stalls beyond its lease and then comes back
	long     bool // a worker needs longer than a lease, and renews it; the first longTries of them
	failures int64
	work     time.Duration // how long the handler takes
}

// trouble is how many deliveries have each fate; the others are handled at the
// first try.
type trouble struct{ crashes, late, long, failOnce, failTwice int }

// noticeTrouble is the trouble of the queue.
var noticeTrouble = trouble{crashes: 4, late: 6, failOnce: 12, failTwice: 4}

const (
	longestWork = 8 * time.Millisecond
	// A long handler renews its lease often enough for a busy machine, and takes
	// longer than a lease.
	longRenewals = 3
	longPause    = leaseSeconds * time.Second * 2 / 5
	// longTries leaves one to a run with three kills, and an end to a machine that
	// is too busy to renew in time.
	longTries = 4
)

// fates deals the fates to the deliveries of a place by their hashes.
func (d identity) fates(place string, ids []string, t trouble) map[string]fate {
	type dealt struct {
		id string
		h  [sha256.Size]byte
	}
	order := make([]dealt, len(ids))
	for i, id := range ids {
		order[i] = dealt{id, d.hash("fate " + place + " " + id)}
	}
	slices.SortFunc(order, func(a, b dealt) int { return strings.Compare(string(a.h[:]), string(b.h[:])) })
	out := make(map[string]fate, len(order))
	for i, x := range order {
		f := t.fate(i)
		f.work = time.Duration(binary.BigEndian.Uint16(x.h[8:])) * longestWork / (1 << 16)
		out[x.id] = f
	}
	return out
}

// fate is the i-th that is dealt.
func (t trouble) fate(i int) fate {
	for _, x := range []struct {
		n int
		fate
	}{
		{t.crashes, fate{crash: true}}, {t.late, fate{late: true}}, {t.long, fate{long: true}},
		{t.failOnce, fate{failures: 1}}, {t.failTwice, fate{failures: 2}},
	} {
		if i < x.n {
			return x.fate
		}
		i -= x.n
	}
	return fate{}
}

// partition is where the demo keeps everything; the first examples of the
// command line find it by default.
func partition() api.PartitionRef {
	return api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}
}

func lane() api.LaneRef { return api.LaneRef{Partition: partition(), Queue: queue} }
