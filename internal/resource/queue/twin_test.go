package queue

import (
	"cmp"
	"slices"

	"github.com/keyload/keyload/api"
)

// twin is a lane as one would write it who need not store anything: a list of
// messages, looked through from end to end by every operation. It shares no
// code with what it judges.
type twin struct {
	now      int64
	policy   api.QueuePolicy
	list     []*twinMessage // in the order of enqueueing; pruned ones are taken out
	sequence int            // last place in the ready order
	batch    int            // last lease batch
	totals   api.QueueTotals
	lowered  bool // the limit was lowered, and no tick has come since
}

type twinMessage struct {
	id                           string
	state                        api.MessageState
	priority, place              int
	version, generation, lease   uint64
	attempts, failures, losses   int64
	maxAttempts                  int64
	notBefore, expires, finished int64
	until, first                 int64
	batch, index                 int
	seq, bytes                   int
}

func (w *twin) find(id string) *twinMessage {
	for _, m := range w.list {
		if m.id == id {
			return m
		}
	}
	return nil
}

func (w *twin) in(s api.MessageState) (out []*twinMessage) {
	for _, m := range w.list {
		if m.state == s {
			out = append(out, m)
		}
	}
	return out
}

func (w *twin) live() (n int64) {
	for _, m := range w.list {
		if !m.over() {
			n++
		}
	}
	return n
}

func (m *twinMessage) over() bool {
	return m.state == api.StateAcked || m.state == api.StateExpired || m.state == api.StateCancelled
}

func (w *twin) limitOf(m *twinMessage) int64 {
	if m.maxAttempts > 0 {
		return m.maxAttempts
	}
	return w.policy.MaxAttempts
}

// become changes a state; a message that becomes ready without a place gets the
// last one.
func (w *twin) become(m *twinMessage, s api.MessageState) {
	m.state = s
	m.version++
	if s != api.StateLeased {
		m.until, m.first = 0, 0
	}
	if s != api.StateScheduled {
		m.notBefore = 0
	}
	if s == api.StateReady && m.place == 0 {
		w.sequence++
		m.place = w.sequence
	}
	if s != api.StateReady && s != api.StateLeased {
		m.place = 0
	}
	if m.over() || s == api.StateDeadLettered || s == api.StatePendingDeadLetter {
		if m.finished == 0 || m.over() {
			m.finished = w.now
		}
	}
}

func (w *twin) expire(m *twinMessage) {
	w.become(m, api.StateExpired)
	w.totals.Expired++
}

func (w *twin) bury(m *twinMessage) {
	w.totals.DeadLettered++
	if int64(len(w.in(api.StateDeadLettered))) < w.policy.DeadLetter.MaxMessages {
		w.become(m, api.StateDeadLettered)
	} else {
		w.become(m, api.StatePendingDeadLetter)
	}
}

// admit fills free room among the dead letters, oldest message first.
func (w *twin) admit() {
	for _, m := range w.in(api.StatePendingDeadLetter) {
		if int64(len(w.in(api.StateDeadLettered))) < w.policy.DeadLetter.MaxMessages {
			w.become(m, api.StateDeadLettered)
		}
	}
}

// settle decides where a message goes that no one holds any more.
func (w *twin) settle(m *twinMessage, at int64) {
	switch {
	case m.expires != 0 && m.expires <= w.now:
		w.expire(m)
	case m.attempts >= w.limitOf(m):
		w.bury(m)
	case at > w.now:
		w.become(m, api.StateScheduled)
		m.notBefore = at
	default:
		m.place = 0
		w.become(m, api.StateReady)
	}
}

func (w *twin) wait(m *twinMessage) int64 {
	wait := w.policy.Retry.BaseMillis
	for range m.failures + m.losses - 1 {
		wait = min(wait*w.policy.Retry.Factor, w.policy.Retry.MaxMillis)
	}
	return wait
}

func (w *twin) loseLeases() {
	list := w.in(api.StateLeased)
	slices.SortFunc(list, func(a, b *twinMessage) int {
		return cmp.Or(cmp.Compare(a.until, b.until), a.batch-b.batch, a.index-b.index)
	})
	for _, m := range list {
		if m.until <= w.now {
			m.losses++
			w.totals.LeasesLost++
			w.settle(m, m.until+w.wait(m))
		}
	}
}

func (w *twin) scheduled() []*twinMessage {
	list := w.in(api.StateScheduled)
	slices.SortFunc(list, func(a, b *twinMessage) int { return cmp.Or(cmp.Compare(a.notBefore, b.notBefore), a.seq-b.seq) })
	return list
}

func (w *twin) promote() {
	for _, m := range w.scheduled() {
		if m.notBefore <= w.now {
			w.settle(m, 0)
		}
	}
}

func (w *twin) tick() {
	defer w.sweep()
	w.loseLeases()
	for _, m := range w.list {
		if (m.state == api.StateReady || m.state == api.StateScheduled) && m.expires != 0 && m.expires <= w.now {
			w.expire(m)
		}
	}
	w.promote()
	w.list = slices.DeleteFunc(w.list, func(m *twinMessage) bool {
		old := m.over() && m.finished+w.policy.FinishedRetentionSeconds*1000 <= w.now
		if old {
			w.totals.Pruned++
		}
		return old
	})
}

// sweep puts aside what a lowered limit has left without an attempt.
func (w *twin) sweep() {
	if !w.lowered {
		return
	}
	w.lowered = false
	for _, m := range append(w.scheduled(), w.ready()...) {
		if m.attempts >= w.limitOf(m) {
			w.bury(m)
		}
	}
}

func (w *twin) ready() []*twinMessage {
	list := w.in(api.StateReady)
	slices.SortFunc(list, func(a, b *twinMessage) int { return cmp.Or(a.priority-b.priority, a.place-b.place) })
	return list
}

// receive answers the ids it claims and, when there are none, why.
func (w *twin) receive(n, lease int64, bytes int) (claims []*twinMessage, reason string) {
	saved := w.clone()
	w.loseLeases()
	w.promote()
	for _, m := range w.ready() {
		room := w.policy.MaxInFlightMessages - int64(len(w.in(api.StateLeased)))
		switch {
		case int64(len(claims)) == n || room <= 0:
		case m.expires != 0 && m.expires <= w.now:
			w.expire(m)
			continue
		case m.bytes > bytes:
			if len(claims) == 0 {
				*w = *saved // the refusal takes back the sweep
				return nil, "ResourceExhausted/message_too_large"
			}
		case m.attempts >= w.limitOf(m):
			w.bury(m)
			continue
		default:
			bytes -= m.bytes
			if len(claims) == 0 {
				w.batch++
			}
			m.attempts++
			m.lease = uint64(w.batch)
			w.become(m, api.StateLeased)
			m.until, m.first, m.batch, m.index = w.now+lease*1000, w.now, w.batch, len(claims)
			claims = append(claims, m)
			w.totals.Delivered++
			continue
		}
		break
	}
	switch {
	case len(claims) > 0:
	case len(w.in(api.StateReady)) > 0:
		reason = string(api.ReasonInFlightLimit)
	case len(w.in(api.StateScheduled)) > 0:
		reason = string(api.ReasonScheduled)
	default:
		reason = string(api.ReasonEmpty)
	}
	return claims, reason
}

func (w *twin) clone() *twin {
	c := *w
	c.list = nil
	for _, m := range w.list {
		own := *m
		c.list = append(c.list, &own)
	}
	return &c
}

// grip is what a token stands for.
type grip struct {
	id                string
	generation, lease uint64
}

func (w *twin) held(g grip) (*twinMessage, string) {
	m := w.find(g.id)
	switch {
	case m == nil:
		return nil, "NotFound/unknown_message"
	case m.state != api.StateLeased || m.generation != g.generation || m.lease != g.lease:
		return nil, "StaleLease/lease_replaced"
	case m.until <= w.now:
		return nil, "LeaseExpired/lease_expired"
	}
	return m, ""
}

// renewed is the lease row that one command's renewals until one instant share.
type renewed struct {
	until        int64
	batch, count int
}

// complete carries out one item; rows are the renewals of its command so far.
func (w *twin) complete(g grip, item *api.CompleteItem, rows *[]*renewed) string {
	m, refused := w.held(g)
	if refused != "" {
		return refused
	}
	switch item.Action {
	case api.ActionAck:
		w.become(m, api.StateAcked)
		w.totals.Acked++
	case api.ActionNack:
		m.failures++
		w.totals.Nacked++
		at := w.now + w.wait(m)
		if item.DelayMillis != nil {
			at = w.now + *item.DelayMillis
		}
		if item.Terminal {
			w.bury(m)
			break
		}
		w.settle(m, at)
	case api.ActionRelease:
		m.attempts--
		if m.expires != 0 && m.expires <= w.now {
			w.expire(m)
			break
		}
		if m.attempts >= w.limitOf(m) {
			w.bury(m)
			break
		}
		w.become(m, api.StateReady)
	case api.ActionRenew:
		if item.LeaseSeconds > w.policy.MaxLeaseSeconds {
			return "Validation/invalid_field"
		}
		until, last := w.now+item.LeaseSeconds*1000, m.first+w.policy.MaxLeaseAgeSeconds*1000
		if until > last {
			if last <= m.until {
				return "ResourceExhausted/lease_age_limit"
			}
			until = last
		}
		m.until = until
		m.version++
		w.join(m, rows)
	}
	return ""
}

func (w *twin) join(m *twinMessage, rows *[]*renewed) {
	var row *renewed
	for _, r := range *rows {
		if r.until == m.until {
			row = r
		}
	}
	if row == nil {
		w.batch++
		row = &renewed{until: m.until, batch: w.batch}
		*rows = append(*rows, row)
	}
	m.batch, m.index, m.lease = row.batch, row.count, uint64(row.batch)
	row.count++
}
