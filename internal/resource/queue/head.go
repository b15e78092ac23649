package queue

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/limits"
)

// priorities is how many there are: 0 first.
const priorities = limits.PriorityLast + 1

// head is the one record a lane's commands read and write: its counters, its
// quotas' use, and where to begin reading each index. It is kept in memory.
type head struct {
	Seq         uint64 // last sequence number given to a message
	ReadySeq    uint64 // last place given in the ready order
	Batch       uint64 // last lease batch
	FinishedSeq uint64 // last number given to a row of table finished

	Counts        [states]int64 // messages per state
	StoredBytes   int64         // charges of unfinished messages
	InFlightBytes int64         // charges of leased messages
	DeadBytes     int64         // charges of dead letters
	ExpiringRows  int64         // rows of table expiring
	FinishedRows  int64         // rows of table finished

	Ready [priorities]readyRange

	// First are lower bounds of the first instant in each index, 0 when it is
	// empty. They are where a scan begins, so that none walks over what was
	// deleted, and they answer "is anything due" without a read.
	First  firstInstants
	Armed  int64 // instant of the lane's row in the due table; 0 is none
	Totals totals
}

// readyRange says what is ready in one priority, and below which place nothing
// is.
type readyRange struct {
	Count int64
	Floor uint64
}

type firstInstants struct{ Scheduled, Lease, Expiry, Finished int64 }

// totals count what happened since the lane began.
type totals struct {
	Enqueued, Delivered, Acked, Nacked, LeasesLost, DeadLettered, Redriven, Expired, Cancelled, Pruned int64
}

// fields lists the totals in their stored order: append only.
func (t *totals) fields() [10]*int64 {
	return [...]*int64{
		&t.Enqueued, &t.Delivered, &t.Acked, &t.Nacked, &t.LeasesLost,
		&t.DeadLettered, &t.Redriven, &t.Expired, &t.Cancelled, &t.Pruned,
	}
}

// stored is how many messages count toward maxMessages.
func (h *head) stored() int64 {
	return h.Counts[scheduled] + h.Counts[ready] + h.Counts[leased] + h.Counts[dead] + h.Counts[pendingDead]
}

const headVersion = 1

func encodeHead(dst []byte, h *head) []byte {
	dst = append(dst, headVersion)
	for _, v := range [...]uint64{h.Seq, h.ReadySeq, h.Batch, h.FinishedSeq} {
		dst = codec.AppendUvarint(dst, v)
	}
	for _, v := range h.Counts[1:] {
		dst = codec.AppendVarint(dst, v)
	}
	for _, v := range [...]int64{
		h.StoredBytes, h.InFlightBytes, h.DeadBytes, h.ExpiringRows, h.FinishedRows,
		h.First.Scheduled, h.First.Lease, h.First.Expiry, h.First.Finished, h.Armed,
	} {
		dst = codec.AppendVarint(dst, v)
	}
	for _, v := range h.Totals.fields() {
		dst = codec.AppendVarint(dst, *v)
	}
	var used uint64
	for p, r := range h.Ready {
		if r.Count != 0 {
			used |= 1 << p
		}
	}
	dst = codec.AppendUvarint(dst, used)
	for _, r := range h.Ready {
		if r.Count != 0 {
			dst = codec.AppendUvarint(codec.AppendVarint(dst, r.Count), r.Floor)
		}
	}
	return dst
}

func decodeHead(b []byte, h *head) error {
	r := codec.NewReader(b)
	r.Version(headVersion)
	h.Seq, h.ReadySeq, h.Batch, h.FinishedSeq = r.Uvarint(), r.Uvarint(), r.Uvarint(), r.Uvarint()
	for s := range h.Counts[1:] {
		h.Counts[s+1] = r.Varint()
	}
	h.StoredBytes, h.InFlightBytes, h.DeadBytes = r.Varint(), r.Varint(), r.Varint()
	h.ExpiringRows, h.FinishedRows = r.Varint(), r.Varint()
	h.First = firstInstants{r.Varint(), r.Varint(), r.Varint(), r.Varint()}
	h.Armed = r.Varint()
	for _, v := range h.Totals.fields() {
		*v = r.Varint()
	}
	used := r.Uvarint()
	for p := range h.Ready {
		if used&(1<<p) != 0 {
			h.Ready[p] = readyRange{r.Varint(), r.Uvarint()}
		}
	}
	return r.End()
}
