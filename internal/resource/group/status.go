package group

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

// runStatus sums up a group. It reads the rows asked for, and one event.
func runStatus(v *op.View, req *api.SubscriptionsStatusRequest) (*api.SubscriptionsStatusResponse, error) {
	res, n, def, err := look(&v.Scope, req.Group)
	if err != nil {
		return nil, err
	}
	f := def.ref(n)
	h, err := headOf(&v.Scope, f)
	if err != nil {
		return nil, err
	}
	src, err := source.Look(&v.Scope, n.Source)
	if err != nil {
		return nil, err
	}
	resp := &api.SubscriptionsStatusResponse{
		State: h.state(src.Tail), Lag: lag(h, &src), CompletedAhead: h.Issued - h.Checkpoint - uint64(h.unfinished()),
		Counts: countsOf(h), Totals: h.Totals, Definition: *table.Clone(&def.Wanted),
	}
	if resp.Window, err = windowRows(v, n, f, h, &src, req.Rows); err != nil {
		return nil, err
	}
	if len(resp.Window) > 0 {
		resp.OldestUnfinished = &resp.Window[0]
	}
	_, pinned, err := source.Behind(&v.Scope, n.Source, &src, h.Checkpoint)
	if err != nil {
		return nil, err
	}
	resp.PinnedBytes = int64(pinned)
	if resp.Skipped, err = lastSkips(&v.Scope, f, h); err != nil {
		return nil, err
	}
	return resp, reasonNow(v, res, f, h, def, src.Tail, resp)
}

// reasonNow says why a receive would claim nothing now.
func reasonNow(v *op.View, res *api.Resource, f ref, h *head, def *definition, tail uint64, resp *api.SubscriptionsStatusResponse) error {
	w, err := whyEmpty(&v.Scope, f, h, &def.Wanted.Policy, tail)
	if err != nil {
		return err
	}
	gone, err := dataPrincipalGone(&v.Scope, res, def)
	if err != nil {
		return err
	}
	resp.NextDueAt = api.Time(w.next)
	d, err := dispatch.State(v.R, v.Space.Shard)
	if err != nil {
		return err
	}
	switch {
	case d.Paused:
		resp.Reason = api.ReasonDispatchPaused
	case h.Paused || res.Paused:
		resp.Reason = api.ReasonPaused
	case gone:
		resp.Reason = api.ReasonDataPrincipal
	case !mayFind(h, &def.Wanted.Policy, tail, v.Now):
		resp.Reason, resp.BlockedBy = w.reason, w.blockedBy
	}
	return nil
}

func lag(h *head, src *source.Head) uint64 { return src.Tail - min(h.Checkpoint, src.Tail) }

func countsOf(h *head) api.GroupCounts {
	return api.GroupCounts{
		Ready: h.claimable(), Leased: h.inFlight(), Waiting: h.waiting(), Blocked: h.Counts[blocked], Held: h.Counts[held],
		Matched: h.Matched, Runs: h.Runs, Rows: h.rows(), DeadLetters: h.deadLetters(), DeadLetterBytes: h.DeadBytes,
	}
}

// windowRows lists the first rows of the window.
func windowRows(v *op.View, n name, f ref, h *head, src *source.Head, limit int64) ([]api.WindowRow, error) {
	out := []api.WindowRow{}
	if h.rows() == 0 {
		return out, nil
	}
	var batches []timeKey
	err := eachRow(&v.Scope, f, h, func(position uint64, r *row) bool {
		out = append(out, rowInfo(v.Now, position, r))
		batches = append(batches, timeKey{f, r.Until, r.Batch})
		return int64(len(out)) < limit
	})
	if err != nil {
		return nil, err
	}
	var last lease
	var lastKey timeKey
	for i := range out {
		if out[i].State != api.PositionLeased {
			continue
		}
		if batches[i] != lastKey {
			if last, _, err = leases.Get(v.R, batches[i]); err != nil {
				return nil, err
			}
			lastKey = batches[i]
		}
		out[i].Holder, out[i].SessionID = last.Principal, last.Session
	}
	if len(out) > 0 && out[0].State != api.PositionFinished && out[0].From >= src.First() {
		e, err := source.At(&v.Scope, n.Source, out[0].From)
		if err != nil {
			return nil, err
		}
		out[0].EventID = string(e.ID)
	}
	return out, nil
}

func rowInfo(now int64, position uint64, r *row) api.WindowRow {
	if r.isRun() {
		return api.WindowRow{From: position, To: r.End, State: api.PositionFinished, Matched: int64(r.Matched)}
	}
	return api.WindowRow{
		From: position, To: position, State: r.State.name(), Matched: 1, Attempts: int64(r.Attempts), Failures: int64(r.Failures),
		LeaseLosses: int64(r.LeaseLosses), LeaseUntil: api.Time(r.Until), NotBefore: api.Time(r.NotBefore),
		LastFailure: r.LastFailure, IssuedAt: api.Time(r.IssuedAt), AgeMillis: max(0, now-r.IssuedAt),
	}
}

// runList answers a page of the groups of a source, by name.
func runList(v *op.View, req *api.SubscriptionsListRequest) (*api.SubscriptionsListResponse, error) {
	_, key, err := source.Resolve(&v.Scope, req.Source)
	if err != nil {
		return nil, err
	}
	src, err := source.Look(&v.Scope, key)
	if err != nil {
		return nil, err
	}
	prefix := key.Append(nil)
	page := op.NewPage(v, fmt.Sprintf("groups/%x", prefix), prefix, req.Limit)
	from, err := page.Begin(req.Cursor)
	if err != nil {
		return nil, err
	}
	resp := &api.SubscriptionsListResponse{Groups: []api.GroupInfo{}}
	err = definitions.Scan(v.R, table.Range{Prefix: prefix, From: from}, func(n name, def *definition) (bool, error) {
		if page.Full() {
			resp.Cursor = page.Next(codec.AppendText(nil, n.Group))
			return false, nil
		}
		page.Add()
		resp.Examined.Records++
		info, err := groupInfo(&v.Scope, n, def, &src)
		resp.Groups = append(resp.Groups, info)
		return true, err
	})
	return resp, err
}

func groupInfo(s *op.Scope, n name, def *definition, src *source.Head) (api.GroupInfo, error) {
	h, err := headOf(s, def.ref(n))
	if err != nil {
		return api.GroupInfo{}, err
	}
	_, pinned, err := source.Behind(s, n.Source, src, h.Checkpoint)
	return api.GroupInfo{
		Group: n.Group, Generation: h.Generation, Checkpoint: h.Checkpoint, Tail: src.Tail, Lag: lag(h, src),
		Paused: h.Paused, FailureCode: h.FailureCode, DeadLetters: h.deadLetters(), PinnedBytes: int64(pinned),
	}, err
}
