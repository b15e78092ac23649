package group

import (
	"github.com/keyload/keyload/api"
)

// grip is what a token stands for.
type grip struct {
	window                      bool
	position, batch, generation uint64
}

func (w *twin) held(g grip) (x spot, refused string) {
	if g.generation != w.generation {
		return x, "TokenInvalidated/generation_changed"
	}
	r := w.dead[g.position]
	if g.window {
		r = w.rows[g.position]
	}
	x = spot{g.window, g.position, r}
	switch {
	case r == nil:
		return x, "NotFound/unknown_delivery"
	case r.state != api.PositionLeased || r.batch != g.batch:
		return x, "StaleLease/lease_replaced"
	case r.until <= w.now:
		return x, "LeaseExpired/lease_expired"
	}
	return x, ""
}

// renewed is the lease that one command's renewals until one instant share.
type renewed struct {
	until   int64
	session string
	batch   uint64
}

// complete carries out one item; made are the renewals of its command so far.
// The caller settles.
func (w *twin) complete(g grip, item *api.CompleteItem, made *[]renewed) string {
	x, refused := w.held(g)
	if refused != "" {
		return refused
	}
	r := x.row
	switch item.Action {
	case api.ActionAck:
		w.ack(x)
	case api.ActionNack:
		r.failures++
		r.failure = item.Failure
		w.totals.Nacked++
		at := w.now + w.backoff(r)
		if item.DelayMillis != nil {
			at = w.now + *item.DelayMillis
		}
		if item.Terminal {
			w.exhaust(x)
		} else {
			w.retry(x, at)
		}
	case api.ActionRelease:
		r.attempts--
		w.become(x, api.PositionReady)
	case api.ActionRenew:
		return w.renew(x, item.LeaseSeconds, made)
	}
	return ""
}

func (w *twin) ack(x spot) {
	w.totals.Acked++
	if x.window {
		w.finish(x.position, true)
	} else {
		delete(w.dead, x.position)
	}
}

func (w *twin) renew(x spot, seconds int64, made *[]renewed) string {
	if seconds > w.policy.MaxLeaseSeconds {
		return "Validation/invalid_field"
	}
	r := x.row
	until, last := w.now+seconds*1000, r.first+w.policy.MaxLeaseAgeSeconds*1000
	if until > last {
		if last <= r.until {
			return "ResourceExhausted/lease_age_limit"
		}
		until = last
	}
	r.until = until
	r.version++
	for _, m := range *made {
		if m.until == until && m.session == r.session {
			r.batch = m.batch
			return ""
		}
	}
	w.batch++
	r.batch = w.batch
	*made = append(*made, renewed{until, r.session, w.batch})
	return ""
}

// result is where a place is after an item that was carried out.
func (w *twin) result(g grip) api.PositionState {
	r, gone := w.dead[g.position], api.PositionFinished
	if g.window {
		r = w.rows[g.position]
		if w.dead[g.position] != nil {
			gone = api.PositionDead
		}
	}
	if r == nil {
		return gone
	}
	return r.state
}

func (w *twin) skip(p uint64) string {
	switch {
	case p > w.src.tail():
		return "Validation/invalid_field"
	case p > w.issued+1:
		return "Conflict/not_issued"
	case p <= w.issued && w.rows[p] == nil:
		return "Conflict/finished"
	case p > w.issued && w.matched() >= w.policy.MaxWindow:
		return "Conflict/window_full"
	}
	w.issued = max(w.issued, p)
	w.finish(p, true)
	w.totals.Skipped++
	w.settle()
	return ""
}

func (w *twin) parked(p, version uint64) (spot, string) {
	if r := w.rows[p]; r != nil && r.state == api.PositionHeld && version == 0 {
		return spot{true, p, r}, ""
	}
	r := w.dead[p]
	switch {
	case r == nil:
		return spot{}, "NotFound/unknown_dead_letter"
	case version != 0 && version != r.version:
		return spot{}, "RevisionConflict/dead_letter_version"
	case r.state != api.PositionDead:
		return spot{}, "Conflict/redriven"
	}
	return spot{false, p, r}, ""
}

func (w *twin) redrive(p, version uint64) string {
	x, refused := w.parked(p, version)
	if refused != "" {
		return refused
	}
	x.row.attempts, x.row.failures, x.row.losses = 0, 0, 0
	if !x.window {
		x.row.redrives++
	}
	w.become(x, api.PositionReady)
	w.totals.Redriven++
	return ""
}

func (w *twin) discard(p, version uint64) string {
	x, refused := w.parked(p, version)
	switch {
	case refused != "":
		return refused
	case x.window:
		return "Conflict/held"
	}
	delete(w.dead, p)
	return ""
}

// moved begins a new generation at a checkpoint.
func (w *twin) moved(checkpoint uint64) {
	w.generation++
	w.checkpoint, w.issued = checkpoint, checkpoint
	w.rows, w.ends = map[uint64]*twinRow{}, map[uint64]bool{}
}

func (w *twin) seek(next uint64) string {
	switch {
	case next <= w.src.cut:
		return "HistoryUnavailable/purged"
	case next > w.src.tail()+1:
		return "Validation/invalid_field"
	}
	w.moved(next - 1)
	w.passed, w.paused, w.failed = 0, true, 0
	return ""
}
