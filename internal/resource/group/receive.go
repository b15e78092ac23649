package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

// applyReceive claims positions: what logged time has brought about first, then
// the places to be tried again, then new positions, lowest first.
func applyReceive(c *op.Ctx, req *api.SubscriptionsReceiveRequest) (*api.SubscriptionsReceiveResponse, error) {
	g, err := open(c, req.Group)
	if err != nil {
		return nil, err
	}
	if err := mayReceive(&c.Scope, g.res, g.name.Group, g.def, &g.head, req); err != nil {
		return nil, err
	}
	show, err := newViewer(g)
	if err != nil {
		return nil, err
	}
	src, err := source.Look(&c.Scope, g.name.Source)
	if err != nil {
		return nil, err
	}
	if g.head.Checkpoint+1 < src.First() {
		return nil, historyGone(g.name.Group, g.head.Checkpoint, src.First())
	}
	resp := &api.SubscriptionsReceiveResponse{Deliveries: []api.GroupDelivery{}, Generation: g.head.Generation}
	if err := sweep(g, &resp.Examined); err != nil {
		return nil, err
	}
	if err := g.fold(); err != nil { // what the sweep finished makes room in the window
		return nil, err
	}
	p := newPicker(g, req)
	if !g.head.Paused { // else the group paused itself in the sweep
		if err := p.again(); err != nil {
			return nil, err
		}
		if err := p.onward(src.Tail); err != nil {
			return nil, err
		}
	}
	resp.Examined.Ready, resp.Examined.Positions = int64(p.looked), int64(p.scanned)
	if p.tooLarge != 0 && len(p.claims) == 0 {
		return nil, tooLarge(p.tooLarge, p.tooLargeBytes, req.MaxBytes)
	}

	// From here on it succeeds, or a row is damaged.
	if err := claimAll(g, req, p.claims, show, resp); err != nil {
		return nil, err
	}
	if err := g.close(); err != nil {
		return nil, err
	}
	left := mayFind(&g.head, g.policy, src.Tail, c.Now)
	if len(resp.Deliveries) == 0 {
		more := p.more || g.again || g.head.Paused || left
		return resp, explainEmpty(&c.Scope, g.ref, &g.head, g.policy, src.Tail, more, resp)
	}
	if left && g.woken == 0 && !g.head.Paused {
		c.Wake(wakeKey(g.ref), 1) // the next who waits may have what this one left
	}
	return resp, nil
}

func mayReceive(s *op.Scope, res *api.Resource, group string, def *definition, h *head, req *api.SubscriptionsReceiveRequest) error {
	if err := dispatch.MayDeliver(s); err != nil {
		return err
	}
	switch {
	case req.ExpectedGeneration != 0 && req.ExpectedGeneration != h.Generation:
		return atGeneration(h, group, req.ExpectedGeneration)
	case res.Paused:
		return fault.New(fault.DispatchPaused, "source_paused", "%s %q is paused: no group of it delivers until it is configured with paused: false", res.Kind, res.Name)
	case h.Paused:
		return pausedGroup(group, h)
	}
	return terms(&def.Wanted.Policy).Check(req.LeaseSeconds)
}

// terms are what the policy says of leases.
func terms(p *api.GroupPolicy) leasing.Terms {
	return leasing.Terms{Of: "group", What: "event", MaxSeconds: p.MaxLeaseSeconds, MaxAgeSeconds: p.MaxLeaseAgeSeconds}
}

func pausedGroup(group string, h *head) error {
	e := fault.New(fault.DispatchPaused, "group_paused", "group %q is paused: nothing is delivered until subscriptions.resume; acknowledgements and renewals go on", group)
	switch h.FailureCode {
	case "":
	case restored:
		e = fault.New(fault.DispatchPaused, "group_restored", "group %q is paused since the store was restored: look where it stands (checkpoint %d), then subscriptions.resume, or seek first", group, h.Checkpoint)
	default:
		e = fault.New(fault.DispatchPaused, "group_failed", "group %q paused itself at position %d (%s): put the cause right, then subscriptions.resume", group, h.FailedPosition, h.FailureCode)
	}
	return e.With("generation", "%d", h.Generation)
}

func historyGone(group string, checkpoint, first uint64) error {
	return fault.New(fault.HistoryUnavailable, "purged", "group %q stands at position %d and the events up to %d are gone; seek to where it shall go on", group, checkpoint, first-1).
		With("firstAvailable", "%d", first).With("checkpoint", "%d", checkpoint)
}

func tooLarge(position, bytes uint64, maxBytes int64) error {
	return fault.New(fault.ResourceExhausted, "message_too_large", "the next event, at position %d, has %d bytes of payload and headers and the request allows %d (maxBytes); ask for more bytes", position, bytes, maxBytes).
		With("position", "%d", position).With("bytes", "%d", bytes).With("maxBytes", "%d", maxBytes).
		WithRetry(fault.RetryAfterChange)
}

// claim1 is one place that a receive takes.
type claim1 struct {
	place place
	entry *entry
	dead  *deadLetter
	event source.Record
	isNew bool
}

// picker is what is left of a request's and the group's allowances.
type picker struct {
	g        *group
	events   int64 // places that may still be claimed
	bytes    uint64
	maxBytes uint64
	claims   []claim1
	looked   int  // places to be tried again
	scanned  int  // new positions
	more     bool // a ceiling ended the search: there may be more

	tooLarge, tooLargeBytes uint64 // the first that did not fit into maxBytes
}

func newPicker(g *group, req *api.SubscriptionsReceiveRequest) *picker {
	return &picker{
		g: g, events: min(req.MaxEvents, g.policy.MaxInFlight-g.head.inFlight()),
		bytes: uint64(req.MaxBytes), maxBytes: uint64(req.MaxBytes),
	}
}

// fits says whether one more place with so many bytes may be claimed; false ends
// the search.
func (p *picker) fits(position, bytes uint64) bool {
	if bytes > p.bytes {
		if p.tooLarge == 0 {
			p.tooLarge, p.tooLargeBytes = position, bytes
		}
		p.events = 0
		return false
	}
	return p.events > 0
}

func (p *picker) take(c claim1) {
	p.claims = append(p.claims, c)
	p.events--
	p.bytes -= c.event.ContentBytes()
}

// again takes places that are ready to be claimed again: redriven dead letters,
// then the window's, in order of position.
func (p *picker) again() error {
	g := p.g
	for _, kind := range [...]uint8{deadKind, windowKind} {
		if g.counts(place{Window: kind == windowKind})[ready] == 0 || p.events <= 0 {
			continue
		}
		places, err := readyPlaces(g, kind, min(p.events, limits.ScanReady))
		if err != nil {
			return err
		}
		for _, at := range places {
			p.looked++
			if err := p.retake(at); err != nil {
				return err
			}
			if p.events <= 0 {
				break
			}
		}
		p.more = p.more || int64(len(places)) >= limits.ScanReady
	}
	return nil
}

// readyPlaces lists the first ready places of a kind.
func readyPlaces(g *group, kind uint8, limit int64) (out []place, err error) {
	from := appendReady(nil, readyKey{g.ref, place{kind == windowKind, g.head.Floor[kind]}})
	rg := table.Range{Prefix: append(g.ref.append(nil), kind), From: from}
	err = readies.Scan(g.c.Tx, rg, func(k readyKey, _ *table.None) (bool, error) {
		out = append(out, k.Place)
		return int64(len(out)) < limit, nil
	})
	if len(out) > 0 {
		g.head.Floor[kind] = out[0].Position
	}
	return out, err
}

// retake takes one ready place, or puts it aside when the policy in force leaves
// it no attempt.
func (p *picker) retake(at place) error {
	g := p.g
	e, dl, err := g.listed(at, ready)
	if err != nil {
		return err
	}
	if exhausted(g, e) {
		return exhaust(g, at, e, dl)
	}
	event, err := eventOf(g, at, dl)
	if err != nil {
		return err
	}
	if p.fits(at.Position, event.ContentBytes()) {
		p.take(claim1{place: at, entry: e, dead: dl, event: event})
	}
	return nil
}

// eventOf reads the event of a place: from the source, or a dead letter's copy.
func eventOf(g *group, at place, dl *deadLetter) (source.Record, error) {
	if dl == nil {
		return source.At(&g.c.Scope, g.name.Source, at.Position)
	}
	return dl.record(rowKey{g.ref, at.Position})
}

// record takes the copy of a dead letter's event apart.
func (dl *deadLetter) record(k rowKey) (source.Record, error) {
	event, err := source.DecodeRecord(dl.Event)
	if err != nil {
		err = &table.Damage{Table: deadLetters.Name, Key: deadLetters.Bytes(k), Cause: err}
	}
	return event, err
}
