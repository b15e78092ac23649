package httpgw

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/wire"
)

const (
	// tailWaitMillis is how long one read waits; a comment after it tells a
	// quiet connection from a dead one.
	tailWaitMillis = 15_000
	// tailWriteTime bounds one write to a client that reads too slowly.
	tailWriteTime = 30 * time.Second
	// tailRetryMillis is what browsers wait before they connect again.
	tailRetryMillis = 1_000
)

// tail follows a source as server-sent events. It repeats events.read; each
// event's id continues after it.
func (g *Gateway) tail(w http.ResponseWriter, r *http.Request) {
	key, f := bearer(r.Header)
	if f != nil {
		g.problem(w, r, f)
		return
	}
	req, skip, f := tailRequest(r)
	if f != nil {
		g.problem(w, r, f)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.tailing, cancel)()
	g.metrics.tails.Inc()
	defer g.metrics.tails.Dec()
	t := &tail{g: g, w: w, control: http.NewResponseController(w), key: key, req: req, skip: skip, held: room{g: g, wait: true}} // nobody asks a tail to come again
	t.run(ctx, r)
}

// tail is one open tail.
type tail struct {
	g       *Gateway
	w       http.ResponseWriter
	control *http.ResponseController
	key     string
	req     *api.EventsReadRequest
	skip    uint64 // events up to this position were seen already
	started bool   // the answer has begun
	held    room   // of the page under way
}

func (t *tail) run(ctx context.Context, r *http.Request) {
	defer t.held.empty()
	_ = t.control.SetReadDeadline(time.Time{}) // the answer has no end
	for ctx.Err() == nil {
		resp, f := t.read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case f != nil && !t.started:
			t.g.problem(t.w, r, f)
			return
		case f != nil:
			t.fail(f)
			return
		}
		err := t.write(resp)
		t.held.empty()
		if err != nil {
			return
		}
		t.req.Cursor, t.req.AfterPosition = resp.Cursor, 0
		t.req.Limit, t.req.WaitMillis = 0, tailWaitMillis
	}
}

// read authenticates every time: a key that is revoked ends the tail.
// What it answers is held in the room.
func (t *tail) read(ctx context.Context) (*api.EventsReadResponse, *fault.Error) {
	caller, err := t.g.door.Authenticate(ctx, t.key)
	if err != nil {
		return nil, toFault(err, nil, nil)
	}
	req := *t.req
	api.ApplyDefaults(&req)
	op := api.EventsRead.Operation
	rt := t.g.byNumber[op.Number]
	t.held.of(caller.Tenant(), rt.op)
	resp, f := t.g.do(ctx, caller, rt, &req, &t.held)
	if f != nil {
		return nil, f
	}
	return resp.(*api.EventsReadResponse), nil
}

// write sends one page. The id of an event is the cursor to go on with: for the
// last one of a page that of the page; for the others that of the page before,
// and the position up to which to skip.
func (t *tail) write(page *api.EventsReadResponse) error {
	var b strings.Builder
	if !t.started {
		h := t.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		t.w.WriteHeader(http.StatusOK)
		fmt.Fprintf(&b, "retry: %d\n\n", tailRetryMillis)
		t.started = true
	}
	sent := false
	for i := range page.Events {
		e := &page.Events[i]
		if e.Position <= t.skip {
			continue
		}
		data, err := wire.EncodeJSON(e)
		if err != nil {
			return err
		}
		id := page.Cursor
		if i < len(page.Events)-1 {
			id = t.req.Cursor + tailIDMark + strconv.FormatUint(e.Position, 10)
		}
		fmt.Fprintf(&b, "id: %s\ndata: %s\n\n", id, data)
		sent = true
	}
	if !sent {
		b.WriteString(": waiting\n\n")
	}
	_ = t.control.SetWriteDeadline(time.Now().Add(tailWriteTime))
	if _, err := t.w.Write([]byte(b.String())); err != nil {
		return err
	}
	return t.control.Flush()
}

// fail ends a tail that has begun: the status is gone, so the error is an event.
func (t *tail) fail(f *fault.Error) {
	data, err := wire.EncodeJSON(newProblem(f, f.Code.Status()))
	if err != nil {
		return
	}
	_ = t.control.SetWriteDeadline(time.Now().Add(tailWriteTime))
	_, _ = fmt.Fprintf(t.w, "event: problem\ndata: %s\n\n", data)
	_ = t.control.Flush()
}

// tailIDMark parts cursor and position; no cursor holds it.
const tailIDMark = "~"

// tailRequest reads the query and the place to go on from.
func tailRequest(r *http.Request) (*api.EventsReadRequest, uint64, *fault.Error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, 0, fault.New(fault.Validation, "malformed_query", "the query of the URL cannot be read")
	}
	req := &api.EventsReadRequest{}
	// The first page has one event: then every id has a cursor.
	// It does not wait, so that the answer begins at once.
	req.Limit = 1
	for name, values := range query {
		if f := tailField(req, name, values[0]); f != nil {
			return nil, 0, f
		}
		if len(values) > 1 {
			return nil, 0, fault.Invalid("/"+name, "is given twice")
		}
	}
	skip := uint64(0)
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		cursor, position, marked := strings.Cut(last, tailIDMark)
		if marked {
			if skip, err = strconv.ParseUint(position, 10, 63); err != nil {
				return nil, 0, fault.New(fault.Validation, "last_event_id", "the header Last-Event-ID is not an id of this tail")
			}
		}
		req.Cursor, req.AfterPosition = cursor, 0
	}
	if req.Cursor != "" {
		req.Limit = 0
	}
	return req, skip, nil
}

func tailField(req *api.EventsReadRequest, name, value string) *fault.Error {
	var err error
	switch name {
	case "partition":
		req.Source.Partition, err = api.ParsePartition(value)
	case "resource":
		req.Source.Resource = value
	case "kind":
		req.Source.Kind = api.SourceKind(value)
	case "streamId":
		req.Source.StreamID = value
	case "cursor":
		req.Cursor = value
	case "generation":
		req.Source.Generation, err = strconv.ParseUint(value, 10, 63)
	case "afterPosition":
		req.AfterPosition, err = strconv.ParseUint(value, 10, 63)
	default:
		return fault.Invalid("/query", "a name is not known; the names are partition, resource, kind, streamId, generation, afterPosition, cursor")
	}
	switch {
	case err == nil:
		return nil
	case fault.From(err) != nil:
		return fault.From(err)
	}
	return fault.Invalid("/"+name, "must be a whole number from 0 to 9223372036854775807")
}
