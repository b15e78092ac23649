package queue

import (
	"encoding/binary"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// lister collects one page. A place in a listing is the key of an index row
// after its owner, and which of the ids that the row lists comes next.
type lister struct {
	*seen
	want  state // 0: all
	page  *op.Page
	start []byte // key part to start at; nil without a cursor
	skip  int    // ids of that row to pass over
	out   *api.QueuesListResponse
}

const subBytes = 2 // of the number of an id within a row

// runList lists messages by id, or those of one state in the order of its
// index.
func runList(v *op.View, req *api.QueuesListRequest) (*api.QueuesListResponse, error) {
	s, err := look(v, req.Lane.Queue)
	if err != nil {
		return nil, err
	}
	prefix := s.owner.Append(nil)
	l := &lister{
		seen: s, want: stateOf(req.State), out: &api.QueuesListResponse{Messages: []api.MessageInfo{}},
		page: op.NewPage(v, "messages/"+string(prefix)+string(req.State), prefix, req.Limit),
	}
	at, err := l.page.Begin(req.Cursor)
	if err != nil {
		return nil, err
	}
	if n := len(at) - subBytes; n >= len(prefix) {
		l.start, l.skip = at[:n], int(binary.BigEndian.Uint16(at[n:]))
	}
	return l.out, l.scan()
}

func (l *lister) scan() error {
	switch l.want {
	case scheduled:
		return listIndex(l, &schedules, oneID, inState)
	case ready:
		return listIndex(l, &readies, func(v *readyEntry) []string { return []string{v.ID} }, inState)
	case leased:
		return listIndex(l, &leases, batchIDs, inBatch)
	case dead:
		return listIndex(l, &deads, oneID, inState)
	case pendingDead:
		return listIndex(l, &pendingDeads, oneID, inState)
	case acked, expired, cancelled:
		return listIndex(l, &finisheds, func(v *batch) []string {
			if v.State != l.want {
				return nil
			}
			return v.IDs
		}, inState)
	default:
		return l.all()
	}
}

// inState says that an index row lists the message, which it always does.
func inState[K any](K, int, *message) bool { return true }

// inBatch says that the message is still under the lease that the row and the
// place in it stand for: the row names those that have gone, too.
func inBatch(row timeKey, i int, m *message) bool {
	return m.State == leased && m.Lease.Batch == row.Seq && m.Lease.Index == uint64(i)
}

// listIndex walks one index and passes over what a row does not list any more.
func listIndex[K, V any](l *lister, t *table.Table[K, V], ids func(*V) []string, lists func(K, int, *message) bool) error {
	first := true
	return t.Scan(l.v.R, table.Range{Prefix: l.owner.Append(nil), From: l.start}, func(k K, v *V) (bool, error) {
		key := t.Bytes(k)[1:]
		skip := 0
		if first && string(key) == string(l.start) {
			skip = l.skip
		}
		first = false
		list := ids(v)
		if len(list) == 0 && !l.looked(key, 0, 0) {
			return false, nil
		}
		for i := skip; i < len(list); i++ {
			if !l.looked(key, i, len(list[i])) {
				return false, nil
			}
			m, err := l.find(list[i])
			if err != nil {
				return false, err
			}
			if lists(k, i, m) {
				l.add(list[i], m)
			}
		}
		return true, nil
	})
}

// all walks the messages themselves.
func (l *lister) all() error {
	return messages.Scan(l.v.R, table.Range{Prefix: l.owner.Append(nil), From: l.start}, func(k messageKey, m *message) (bool, error) {
		if !l.looked(messages.Bytes(k)[1:], 0, len(k.ID)) {
			return false, nil
		}
		l.add(k.ID, m)
		return true, nil
	})
}

// looked counts one more row or id, or ends the page before it.
func (l *lister) looked(key []byte, i, idBytes int) bool {
	if l.page.Full() {
		rest := append([]byte(nil), key[table.OwnerBytes:]...)
		l.out.Cursor = l.page.Next(binary.BigEndian.AppendUint16(rest, uint16(i)))
		return false
	}
	l.page.Look()
	l.out.Examined.Records++
	l.out.Examined.Bytes += int64(len(key) + idBytes)
	return true
}

func (l *lister) add(id string, m *message) {
	l.page.Add()
	l.out.Messages = append(l.out.Messages, l.info(id, m))
}
