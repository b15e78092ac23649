package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
)

// state is where a message is in its life. The numbers are stored: append only.
type state uint8

const (
	scheduled state = iota + 1
	ready
	leased
	acked
	dead
	pendingDead
	expired
	cancelled
	states // one more than the last
)

var stateNames = [states]api.MessageState{
	scheduled: api.StateScheduled, ready: api.StateReady, leased: api.StateLeased, acked: api.StateAcked,
	dead: api.StateDeadLettered, pendingDead: api.StatePendingDeadLetter, expired: api.StateExpired, cancelled: api.StateCancelled,
}

func (s state) name() api.MessageState { return stateNames[s] }

// finished states are final: the body is gone and only the memory of the id is
// left. Dead letters are not finished; they wait for a person.
func (s state) finished() bool { return s == acked || s == expired || s == cancelled }

// waits says that an expiry still applies: the message is not in a worker's
// hands and not put aside.
func (s state) waits() bool { return s == scheduled || s == ready }

func stateOf(name api.MessageState) state {
	for s := scheduled; s < states; s++ {
		if stateNames[s] == name {
			return s
		}
	}
	return 0
}

// message is the metadata of one message. Its zero optional fields take no
// space in the record.
type message struct {
	State        state
	Priority     uint8
	StateVersion uint64
	Generation   uint64 // delivery generation
	Seq          uint64 // order of enqueueing; key of the body
	EnqueuedAt   int64
	PayloadBytes uint64
	ContentBytes uint64   // payload and headers: what a receive counts toward maxBytes
	Charge       uint64   // what the message counts toward the lane's quotas; see chargeOf
	Digest       [16]byte // of everything its producer said, for ifExists: return

	ReadySeq     uint64 // place among the ready of its priority; kept while leased
	LeaseVersion uint64 // number of the lane's lease batch it was last in: unique in the lane, so a token of an id that is used again never holds
	Attempts     uint64 // claims in this generation
	Failures     uint64 // nacks in this generation
	LeaseLosses  uint64 // leases that ran out in this generation
	NotBefore    int64  // only while scheduled
	ExpiresAt    int64
	MaxAttempts  uint64 // 0: the policy's
	FinishedAt   int64  // reached a final state or became a dead letter
	Redrives     uint64
	OrderingKey  string
	FairnessKey  string
	LastFailure  string

	Lease lease // only while leased
}

// lease is a message's place in its holder's hands.
type lease struct {
	Until   int64
	First   int64  // first claim of this holder
	Batch   uint64 // row of table leases (with Until) that lists it
	Index   uint64 // its place there
	Size    uint64 // how many the row lists
	Epoch   uint64 // the holder's policy epoch
	Owner   string // the holder's principal
	Session string
}

// The optional fields, in the order in which they follow the fixed ones. A bit
// says that a field (or group) is there. The bits are stored: append only.
const (
	hasReadySeq = 1 << iota
	hasLeaseVersion
	hasAttempts
	hasNotBefore
	hasExpiresAt
	hasLease
	hasFinishedAt
	hasMaxAttempts
	hasOrderingKey
	hasFairnessKey
	hasLastFailure
	hasRedrives
)

const messageVersion = 1

func (m *message) present() (bits uint64) {
	set := func(bit uint64, there bool) {
		if there {
			bits |= bit
		}
	}
	set(hasReadySeq, m.ReadySeq != 0)
	set(hasLeaseVersion, m.LeaseVersion != 0)
	set(hasAttempts, m.Attempts|m.Failures|m.LeaseLosses != 0)
	set(hasNotBefore, m.NotBefore != 0)
	set(hasExpiresAt, m.ExpiresAt != 0)
	set(hasLease, m.State == leased)
	set(hasFinishedAt, m.FinishedAt != 0)
	set(hasMaxAttempts, m.MaxAttempts != 0)
	set(hasOrderingKey, m.OrderingKey != "")
	set(hasFairnessKey, m.FairnessKey != "")
	set(hasLastFailure, m.LastFailure != "")
	set(hasRedrives, m.Redrives != 0)
	return bits
}

func encodeMessage(dst []byte, m *message) []byte {
	bits := m.present()
	dst = append(dst, messageVersion, byte(m.State), m.Priority)
	dst = codec.AppendUvarint(dst, bits)
	dst = codec.AppendUvarint(dst, m.StateVersion)
	dst = codec.AppendUvarint(dst, m.Generation)
	dst = codec.AppendUvarint(dst, m.Seq)
	dst = codec.AppendVarint(dst, m.EnqueuedAt)
	dst = codec.AppendUvarint(dst, m.PayloadBytes)
	dst = codec.AppendUvarint(dst, m.ContentBytes)
	dst = codec.AppendUvarint(dst, m.Charge)
	dst = append(dst, m.Digest[:]...)
	number := func(bit, v uint64) {
		if bits&bit != 0 {
			dst = codec.AppendUvarint(dst, v)
		}
	}
	number(hasReadySeq, m.ReadySeq)
	number(hasLeaseVersion, m.LeaseVersion)
	number(hasAttempts, m.Attempts)
	number(hasAttempts, m.Failures)
	number(hasAttempts, m.LeaseLosses)
	number(hasNotBefore, uint64(m.NotBefore))
	number(hasExpiresAt, uint64(m.ExpiresAt))
	if bits&hasLease != 0 {
		dst = encodeLease(dst, m.EnqueuedAt, &m.Lease)
	}
	number(hasFinishedAt, uint64(m.FinishedAt))
	number(hasMaxAttempts, m.MaxAttempts)
	if bits&(hasOrderingKey|hasFairnessKey|hasLastFailure) != 0 {
		dst = encodeTexts(dst, bits, m)
	}
	number(hasRedrives, m.Redrives)
	return dst
}

func encodeTexts(dst []byte, bits uint64, m *message) []byte {
	if bits&hasOrderingKey != 0 {
		dst = codec.AppendString(dst, m.OrderingKey)
	}
	if bits&hasFairnessKey != 0 {
		dst = codec.AppendString(dst, m.FairnessKey)
	}
	if bits&hasLastFailure != 0 {
		dst = codec.AppendString(dst, m.LastFailure)
	}
	return dst
}

// encodeLease writes instants as differences: two or three bytes, not six.
func encodeLease(dst []byte, enqueued int64, l *lease) []byte {
	dst = codec.AppendVarint(dst, l.First-enqueued)
	dst = codec.AppendVarint(dst, l.Until-l.First)
	dst = codec.AppendUvarint(dst, l.Batch)
	dst = codec.AppendUvarint(dst, l.Index)
	dst = codec.AppendUvarint(dst, l.Size)
	dst = codec.AppendUvarint(dst, l.Epoch)
	dst = codec.AppendString(dst, l.Owner)
	return codec.AppendString(dst, l.Session)
}

func decodeMessage(b []byte, m *message) error {
	r := codec.NewReader(b)
	r.Version(messageVersion)
	m.State, m.Priority = state(r.Byte()), r.Byte()
	bits := r.Uvarint()
	m.StateVersion, m.Generation, m.Seq = r.Uvarint(), r.Uvarint(), r.Uvarint()
	m.EnqueuedAt = r.Varint()
	m.PayloadBytes, m.ContentBytes, m.Charge = r.Uvarint(), r.Uvarint(), r.Uvarint()
	copy(m.Digest[:], r.Fixed(len(m.Digest)))
	if bits&hasReadySeq != 0 {
		m.ReadySeq = r.Uvarint()
	}
	if bits&hasLeaseVersion != 0 {
		m.LeaseVersion = r.Uvarint()
	}
	if bits&hasAttempts != 0 {
		m.Attempts, m.Failures, m.LeaseLosses = r.Uvarint(), r.Uvarint(), r.Uvarint()
	}
	if bits&hasNotBefore != 0 {
		m.NotBefore = int64(r.Uvarint())
	}
	if bits&hasExpiresAt != 0 {
		m.ExpiresAt = int64(r.Uvarint())
	}
	if bits&hasLease != 0 {
		decodeLease(&r, m.EnqueuedAt, &m.Lease)
	}
	if bits&hasFinishedAt != 0 {
		m.FinishedAt = int64(r.Uvarint())
	}
	if bits&hasMaxAttempts != 0 {
		m.MaxAttempts = r.Uvarint()
	}
	if bits&(hasOrderingKey|hasFairnessKey|hasLastFailure) != 0 {
		decodeTexts(&r, bits, m)
	}
	if bits&hasRedrives != 0 {
		m.Redrives = r.Uvarint()
	}
	if err := r.End(); err != nil {
		return err
	}
	if m.State < scheduled || m.State >= states || m.Priority >= priorities || bits != m.present() {
		return codec.ErrRecord
	}
	return nil
}

func decodeTexts(r *codec.Reader, bits uint64, m *message) {
	if bits&hasOrderingKey != 0 {
		m.OrderingKey = r.String()
	}
	if bits&hasFairnessKey != 0 {
		m.FairnessKey = r.String()
	}
	if bits&hasLastFailure != 0 {
		m.LastFailure = r.String()
	}
}

func decodeLease(r *codec.Reader, enqueued int64, l *lease) {
	l.First = enqueued + r.Varint()
	l.Until = l.First + r.Varint()
	l.Batch, l.Index, l.Size, l.Epoch = r.Uvarint(), r.Uvarint(), r.Uvarint(), r.Uvarint()
	l.Owner, l.Session = r.String(), r.String()
}
