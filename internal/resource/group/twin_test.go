package group

import (
	"cmp"
	"maps"
	"slices"

	"github.com/keyload/keyload/api"
)

// twin is a group as one would write it who need not store anything: what is
// unfinished and what is finished above the checkpoint in two maps, looked
// through from end to end by every operation. It shares no code with what it
// judges.
type twin struct {
	src                           *twinSource
	now                           int64
	policy                        api.GroupPolicy
	types                         []string
	generation, checkpoint        uint64 // the epoch is always the generation
	issued, batch, passed, failed uint64 // passed over below the checkpoint; the position that paused it
	paused                        bool
	rows                          map[uint64]*twinRow
	ends                          map[uint64]bool // finished above the checkpoint: whether the filter matched
	dead                          map[uint64]*twinRow
	totals                        api.GroupTotals
}

// twinSource is the topic: its events, of which the first so many are purged.
type twinSource struct {
	events []twinEvent
	cut    uint64
}

type twinEvent struct {
	kind, key string
	size      int
}

func (s *twinSource) tail() uint64           { return uint64(len(s.events)) }
func (s *twinSource) at(p uint64) *twinEvent { return &s.events[p-1] }

type twinRow struct {
	state                      api.PositionState
	attempts, failures, losses int64
	notBefore, until, first    int64
	batch                      uint64
	key, failure, session      string
	version, redrives          uint64 // of dead letters
}

// spot is a row with where it is: in the window, or among the dead letters.
type spot struct {
	window   bool
	position uint64
	row      *twinRow
}

// in lists the places in a state, dead letters first, by position.
func (w *twin) in(s api.PositionState) (out []spot) {
	for _, window := range []bool{false, true} {
		list := w.dead
		if window {
			list = w.rows
		}
		for _, p := range slices.Sorted(maps.Keys(list)) {
			if list[p].state == s {
				out = append(out, spot{window, p, list[p]})
			}
		}
	}
	return out
}

func (w *twin) count(s api.PositionState) (n int64) {
	for _, r := range w.rows {
		if r.state == s {
			n++
		}
	}
	return n
}

// matched is what counts toward maxWindow.
func (w *twin) matched() int64 {
	n := int64(len(w.rows))
	for _, m := range w.ends {
		if m {
			n++
		}
	}
	return n
}

func (w *twin) lowest() uint64 {
	if len(w.rows) == 0 {
		return 0
	}
	return slices.Min(slices.Collect(maps.Keys(w.rows)))
}

func (w *twin) matches(p uint64) bool {
	kind := w.src.at(p).kind
	for _, t := range w.types {
		if t == kind || t == "*" {
			return true
		}
	}
	return len(w.types) == 0
}

func (w *twin) become(x spot, s api.PositionState) {
	r := x.row
	if s != api.PositionLeased {
		r.until, r.first, r.batch, r.session = 0, 0, 0, ""
	}
	if s != api.PositionWaiting {
		r.notBefore = 0
	}
	r.state = s
	r.version++
}

// finish ends a position; the next of its key may be claimed.
func (w *twin) finish(p uint64, matched bool) {
	r := w.rows[p]
	delete(w.rows, p)
	w.ends[p] = matched
	if r == nil || r.key == "" {
		return
	}
	for _, next := range slices.Sorted(maps.Keys(w.rows)) {
		if x := w.rows[next]; x.key == r.key {
			if x.state == api.PositionBlocked {
				w.become(spot{true, next, x}, api.PositionReady)
			}
			return
		}
	}
}

// settle moves the checkpoint at the end of a command.
func (w *twin) settle() {
	for {
		matched, ok := w.ends[w.checkpoint+1]
		if !ok {
			return
		}
		w.checkpoint++
		delete(w.ends, w.checkpoint)
		if !matched {
			w.passed++
		}
	}
}

func (w *twin) backoff(r *twinRow) int64 {
	wait := w.policy.Retry.BaseMillis
	for range r.failures + r.losses - 1 {
		wait *= w.policy.Retry.Factor
	}
	return min(wait, w.policy.Retry.MaxMillis)
}

func (w *twin) retry(x spot, at int64) {
	switch {
	case x.row.attempts >= w.policy.MaxAttempts:
		w.exhaust(x)
	case at > w.now:
		w.become(x, api.PositionWaiting)
		x.row.notBefore = at
	default:
		w.become(x, api.PositionReady)
	}
}

func (w *twin) exhaust(x spot) {
	if !x.window {
		w.become(x, api.PositionDead)
		return
	}
	switch w.policy.OnExhausted {
	case api.ExhaustedDeadLetter:
		old := w.dead[x.position]
		if old == nil && int64(len(w.dead)) >= w.policy.DeadLetter.MaxEvents {
			break
		}
		gone := *x.row
		gone.version, gone.redrives, gone.key = 0, 0, ""
		if old != nil {
			gone.version, gone.redrives = old.version, old.redrives
		}
		w.dead[x.position] = &gone
		w.become(spot{false, x.position, &gone}, api.PositionDead)
		w.totals.DeadLettered++
		w.finish(x.position, true)
		return
	case api.ExhaustedPause:
		if !w.paused {
			w.paused, w.failed = true, x.position
		}
		x.row.attempts, x.row.failures, x.row.losses = 0, 0, 0
		w.become(x, api.PositionReady)
		return
	}
	w.become(x, api.PositionHeld)
}

// sweep does what time has brought about.
func (w *twin) sweep() {
	list := w.in(api.PositionLeased)
	slices.SortStableFunc(list, func(a, b spot) int { // within a lease by position, a dead letter first
		if c := cmp.Or(cmp.Compare(a.row.until, b.row.until), cmp.Compare(a.row.batch, b.row.batch), cmp.Compare(a.position, b.position)); c != 0 {
			return c
		}
		if a.window {
			return 1
		}
		return -1
	})
	for _, x := range list {
		if until := x.row.until; until != 0 && until <= w.now && x.row.state == api.PositionLeased {
			x.row.losses++
			w.totals.LeasesLost++
			w.retry(x, until+w.backoff(x.row))
		}
	}
	for _, x := range w.in(api.PositionWaiting) {
		if x.row.notBefore <= w.now {
			w.become(x, api.PositionReady)
		}
	}
}

func (w *twin) tick() { w.sweep(); w.settle() }

// search is what is left of a receive's allowances.
type search struct {
	events int64
	bytes  int
	lease  int64
	who    string // session
	claims []spot
	large  bool
}

// offer claims a place if it fits; else the search is over.
func (w *twin) offer(s *search, x spot) bool {
	size := w.src.at(x.position).size
	if size > s.bytes {
		s.large, s.events = true, 0
		return false
	}
	s.events--
	s.bytes -= size
	s.claims = append(s.claims, x)
	return true
}

// receive answers what it claims and, when there is nothing, why; refused is the
// code of a refusal.
func (w *twin) receive(n, lease int64, bytes int, session string) (claims []spot, reason api.EmptyReason, refused string) {
	switch {
	case w.paused && w.failed != 0:
		return nil, "", "DispatchPaused/group_failed"
	case w.paused:
		return nil, "", "DispatchPaused/group_paused"
	}
	saved := w.clone()
	w.tick()
	s := &search{events: min(n, w.policy.MaxInFlight-int64(len(w.in(api.PositionLeased)))), bytes: bytes, lease: lease, who: session}
	if !w.paused {
		w.again(s)
		w.onward(s)
	}
	if s.large && len(s.claims) == 0 {
		*w = *saved
		return nil, "", "ResourceExhausted/message_too_large"
	}
	if len(s.claims) > 0 {
		w.batch++
	}
	for _, x := range s.claims {
		w.become(x, api.PositionLeased)
		x.row.attempts++
		x.row.until, x.row.first, x.row.batch, x.row.session = w.now+lease*1000, w.now, w.batch, session
		w.totals.Delivered++
	}
	w.settle()
	switch {
	case len(s.claims) > 0:
	case w.paused || w.may():
		reason = api.ReasonScanLimit
	default:
		reason = w.why()
	}
	return s.claims, reason, ""
}

// again takes what is to be tried again. Of each kind it looks at no more places
// than it may claim.
func (w *twin) again(s *search) {
	ready := w.in(api.PositionReady)
	for _, window := range []bool{false, true} {
		list := slices.DeleteFunc(slices.Clone(ready), func(x spot) bool { return x.window != window })
		for _, x := range list[:max(0, min(int(s.events), len(list)))] {
			if x.row.attempts >= w.policy.MaxAttempts {
				w.exhaust(x)
			} else if s.events > 0 {
				w.offer(s, x)
			}
		}
	}
}

// room is how many new positions may be claimed.
func (w *twin) room(s *search) int { return int(min(s.events, w.policy.MaxWindow-w.matched())) }

// onward takes new positions: as many as there is room for, and more as often as
// some of them had to wait for an older one of their key.
func (w *twin) onward(s *search) {
	looked := 0
	for want := 1; w.room(s) > 0 && w.issued < w.src.tail() && looked < 256; want *= 2 {
		through, left := w.issued, s.bytes
		var found []uint64
		for n := max(want, w.room(s)); n > 0 && left >= 0 && through < w.src.tail() && looked < 256; looked++ {
			if through++; w.matches(through) {
				found = append(found, through)
				left -= w.src.at(through).size
				n--
			}
		}
		stopped := false
		for _, p := range found {
			if stopped = !w.issue(s, p); stopped {
				through = p - 1
				break
			}
		}
		for p := w.issued + 1; p <= through; p++ {
			if w.rows[p] == nil {
				w.ends[p] = false
				w.totals.PassedOver++
			}
		}
		if w.issued = through; stopped {
			return
		}
	}
}

// issue claims a new position, or lets it wait for an older one of its key. False
// says that it stays where it is.
func (w *twin) issue(s *search, p uint64) bool {
	if w.room(s) <= 0 {
		return false
	}
	x := spot{true, p, &twinRow{}}
	if w.policy.Ordered == api.OrderPerKey {
		x.row.key = w.src.at(p).key
	}
	for _, r := range w.rows {
		if r.key == x.row.key && r.key != "" {
			x.row.state = api.PositionBlocked
		}
	}
	if x.row.state == "" && !w.offer(s, x) {
		return false
	}
	w.rows[p] = x.row
	return true
}

// may says that a receive would look for something.
func (w *twin) may() bool {
	if int64(len(w.in(api.PositionLeased))) >= w.policy.MaxInFlight {
		return false
	}
	return len(w.in(api.PositionReady)) > 0 || w.src.tail() > w.issued && w.matched() < w.policy.MaxWindow
}

func (w *twin) why() api.EmptyReason {
	onward := w.src.tail() > w.issued
	switch {
	case onward && w.matched() >= w.policy.MaxWindow && w.rows[w.lowest()].state == api.PositionHeld:
		return api.ReasonParkedHead
	case onward && w.matched() >= w.policy.MaxWindow:
		return api.ReasonWindowFull
	case int64(len(w.in(api.PositionLeased))) >= w.policy.MaxInFlight && (onward || len(w.in(api.PositionReady)) > 0):
		return api.ReasonInFlightLimit
	case len(w.in(api.PositionWaiting)) > 0:
		return api.ReasonScheduled
	case w.count(api.PositionBlocked) > 0:
		return api.ReasonKeyBlocked
	}
	return api.ReasonEmpty
}

// nextDue is the first instant at which something happens by itself.
func (w *twin) nextDue() (next int64) {
	for _, x := range append(w.in(api.PositionWaiting), w.in(api.PositionLeased)...) {
		at := x.row.notBefore + x.row.until
		if next == 0 || at < next {
			next = at
		}
	}
	return next
}

func (w *twin) clone() *twin {
	c := *w
	c.ends = maps.Clone(w.ends)
	c.rows, c.dead = map[uint64]*twinRow{}, map[uint64]*twinRow{}
	for p, r := range w.rows {
		own := *r
		c.rows[p] = &own
	}
	for p, r := range w.dead {
		own := *r
		c.dead[p] = &own
	}
	return &c
}
