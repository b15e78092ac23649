package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
)

// head is the one record that the commands of a group read and write. It is kept
// in memory.
type head struct {
	Generation     uint64
	Epoch          uint64 // tokens given before it rose hold no more
	Checkpoint     uint64
	Issued         uint64 // highest position looked at
	Paused         bool
	FailureCode    string
	FailedPosition uint64

	Counts     [states]int64 // unfinished positions of the window per state
	DeadCounts [states]int64 // dead letters per state
	DeadBytes  int64         // of the events of dead letters
	Matched    int64         // matched positions above the checkpoint, finished or not
	Runs       int64         // gap runs
	Batch      uint64        // last lease number: never given twice
	Skip       uint64        // number of the last skip

	// PassedBelow counts the positions up to the checkpoint that the filter
	// passed over since the group was created or moved.
	PassedBelow uint64

	// First are lower bounds of the first instant in each index, Floor of the
	// first position that is ready, 0 where the index is empty: scans begin there,
	// so none walks over what was deleted.
	First firstInstants
	Floor [2]uint64 // by deadKind and windowKind

	Armed  int64 // instant of the group's row in the due table; 0 is none
	Totals api.GroupTotals
}

type firstInstants struct{ Wait, Lease int64 }

// rows is how many rows the window has.
func (h *head) rows() int64 {
	n := h.Runs
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// unfinished is how many positions of the window are not finished.
func (h *head) unfinished() int64 { return h.rows() - h.Runs }

// inFlight is how many leases there are.
func (h *head) inFlight() int64 { return h.Counts[leased] + h.DeadCounts[leased] }

// deadLetters is how many there are, redriven ones included.
func (h *head) deadLetters() int64 {
	n := int64(0)
	for _, c := range h.DeadCounts {
		n += c
	}
	return n
}

// claimable is how many places are ready to be claimed again.
func (h *head) claimable() int64 { return h.Counts[ready] + h.DeadCounts[ready] }

// waiting is how many places wait for their next attempt.
func (h *head) waiting() int64 { return h.Counts[waiting] + h.DeadCounts[waiting] }

// normalize gives equal states equal bytes.
func (h *head) normalize() {
	if h.waiting() == 0 {
		h.First.Wait = 0
	}
	if h.inFlight() == 0 {
		h.First.Lease = 0
	}
	if h.DeadCounts[ready] == 0 {
		h.Floor[deadKind] = 0
	}
	if h.Counts[ready] == 0 {
		h.Floor[windowKind] = 0
	}
}

// totals lists the totals in their stored order: append only.
func totals(t *api.GroupTotals) [8]*int64 {
	return [...]*int64{
		&t.Delivered, &t.Acked, &t.Nacked, &t.LeasesLost, &t.PassedOver, &t.DeadLettered, &t.Redriven, &t.Skipped,
	}
}

func (h *head) unsigned() [10]*uint64 {
	return [...]*uint64{
		&h.Generation, &h.Epoch, &h.Checkpoint, &h.Issued, &h.FailedPosition, &h.Batch, &h.Skip, &h.PassedBelow,
		&h.Floor[deadKind], &h.Floor[windowKind],
	}
}

func (h *head) signed() [6]*int64 {
	return [...]*int64{&h.DeadBytes, &h.Matched, &h.Runs, &h.First.Wait, &h.First.Lease, &h.Armed}
}

func encodeHead(dst []byte, h *head) []byte {
	dst = codec.AppendString(codec.AppendBool(append(dst, recordVersion), h.Paused), h.FailureCode)
	for _, v := range h.unsigned() {
		dst = codec.AppendUvarint(dst, *v)
	}
	for _, v := range h.signed() {
		dst = codec.AppendVarint(dst, *v)
	}
	for s := ready; s < states; s++ {
		dst = codec.AppendVarint(codec.AppendVarint(dst, h.Counts[s]), h.DeadCounts[s])
	}
	for _, v := range totals(&h.Totals) {
		dst = codec.AppendVarint(dst, *v)
	}
	return dst
}

func decodeHead(b []byte, h *head) error {
	r := codec.NewReader(b)
	r.Version(recordVersion)
	h.Paused, h.FailureCode = r.Bool(), r.String()
	for _, v := range h.unsigned() {
		*v = r.Uvarint()
	}
	for _, v := range h.signed() {
		*v = r.Varint()
	}
	for s := ready; s < states; s++ {
		h.Counts[s], h.DeadCounts[s] = r.Varint(), r.Varint()
	}
	for _, v := range totals(&h.Totals) {
		*v = r.Varint()
	}
	return r.End()
}

// state is the part of a head that every answer about a group shows.
func (h *head) state(tail uint64) api.GroupState {
	return api.GroupState{
		Generation: h.Generation, OwnershipEpoch: h.Epoch, Checkpoint: h.Checkpoint, Issued: h.Issued, Tail: tail,
		Paused: h.Paused, FailureCode: h.FailureCode, FailedPosition: h.FailedPosition,
	}
}
