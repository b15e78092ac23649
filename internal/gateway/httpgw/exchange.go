package httpgw

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/wire"
)

// The media types of bodies.
const (
	jsonType    = "application/json"
	cborType    = "application/cbor"
	problemType = "application/problem+json"
)

// operation answers one request of one operation.
func (g *Gateway) operation(w http.ResponseWriter, r *http.Request, rt *route) {
	began := time.Now()
	held := &room{g: g}
	defer release(r.Context(), held)
	resp, f := g.exchange(w, r, rt, held)
	mediaType := answerType(r)
	var body []byte
	if f == nil {
		body, f = encode(mediaType, resp)
	}
	if f == nil {
		f = held.settle(len(body))
	}
	if f != nil {
		g.writeProblem(w, mediaType, f, f.Code.Status())
	} else {
		resp = nil // only what is counted is held while the caller reads
		w.Header().Set("Cache-Control", "no-store")
		if !rt.op.Long {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(readingTime(len(body)))) // else that of the server
		}
		writeBody(w, mediaType, http.StatusOK, body)
	}
	rt.stats[surfaceOf(r.Context())].observe(time.Since(began), f)
}

// readingTime is how long a caller may take to read so many bytes.
func readingTime(bytes int) time.Duration {
	return slowTime + time.Duration(bytes/slowBytes)*time.Second
}

const (
	slowTime  = 30 * time.Second
	slowBytes = 128 << 10 // in a second
)

// exchange authenticates before it reads the body, so that strangers cost no
// memory. What it answers is held in the room.
func (g *Gateway) exchange(w http.ResponseWriter, r *http.Request, rt *route, answer *room) (any, *fault.Error) {
	caller, f := g.authenticate(r)
	if f != nil {
		return nil, f
	}
	mediaType, f := bodyType(r)
	if f != nil {
		return nil, f
	}
	body, held, f := g.readBody(r, caller.Tenant())
	defer g.bodies.give(caller.Tenant(), held)
	if f != nil {
		return nil, f
	}
	req := reflect.New(rt.op.Request).Interface()
	f = g.bodies.decode(mediaType, body.B, req)
	body.Release()
	if f != nil {
		return nil, f
	}
	if f := useIdempotencyKey(r.Header, req); f != nil {
		return nil, f
	}
	if rt.op.Long { // the server's deadlines are for what is answered soon
		c := http.NewResponseController(w)
		if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})); err != nil {
			g.log.Warn("a long operation keeps its deadline", "operation", rt.op.Name, "error", err)
		}
	}
	answer.of(caller.Tenant(), rt.op)
	return g.do(r.Context(), caller, rt, req, answer)
}

// do evaluates a decoded request. Every surface of this package ends here.
func (g *Gateway) do(ctx context.Context, caller Caller, rt *route, req any, held *room) (any, *fault.Error) {
	g.metrics.inFlight.Inc()
	defer g.metrics.inFlight.Dec()
	resp, err := g.door.Do(engine.WithRoom(ctx, held), caller, rt.op, req)
	if err == nil {
		return resp, nil
	}
	if fault.From(err) == nil {
		g.log.Error("operation failed without a code", "operation", rt.op.Name, "error", err)
	}
	return nil, toFault(err, rt.op, req)
}

// toFault is the error as it is answered. An error without a code is a fault of
// the program: its text stays here, and for a write nobody knows what happened.
func toFault(err error, o *api.Operation, req any) *fault.Error {
	f := fault.From(err)
	switch {
	case f != nil:
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f = fault.New(fault.Cancelled, "cancelled", "the caller went away")
	case o != nil && o.Writes():
		f = fault.New(fault.UnknownWriteOutcome, "internal", "the server failed; the write may have happened")
	default:
		f = fault.New(fault.RecoveryRequired, "internal", "the server failed; its log says why")
	}
	if c, ok := req.(api.CommandRequest); ok && f.CommandID == "" {
		if id := c.GetCommandID(); id != "" {
			named := *f
			named.CommandID = id
			return &named
		}
	}
	return f
}

func (g *Gateway) authenticate(r *http.Request) (Caller, *fault.Error) {
	key, f := bearer(r.Header)
	if f != nil {
		return nil, f
	}
	caller, err := g.door.Authenticate(r.Context(), key)
	if err != nil {
		return nil, toFault(err, nil, nil)
	}
	return caller, nil
}

// bearer is the API key of a request.
func bearer(h http.Header) (string, *fault.Error) {
	scheme, key, ok := strings.Cut(h.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(key) == "" {
		return "", fault.New(fault.Unauthenticated, "no_key", "send an API key in the header Authorization: Bearer kl_…")
	}
	return strings.TrimSpace(key), nil
}

// bodyType is the media type of the request's body; JSON when it says none.
func bodyType(r *http.Request) (string, *fault.Error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return "", fault.New(fault.Validation, "content_encoding", "the body must not be compressed")
	}
	h := r.Header.Get("Content-Type")
	if h == "" || h == jsonType {
		return jsonType, nil
	}
	t, params, err := mime.ParseMediaType(h)
	charset := strings.ToLower(params["charset"])
	if err == nil && (t == jsonType || t == cborType) && (charset == "" || charset == "utf-8") {
		return t, nil
	}
	return "", fault.New(fault.Validation, "media_type",
		"the body must be application/json in UTF-8 or application/cbor; say which in the header Content-Type")
}

// answerType is the media type of the answer: what Accept asks for, else that
// of the request's body.
func answerType(r *http.Request) string {
	accept := r.Header.Get("Accept")
	switch {
	case strings.Contains(accept, cborType):
		return cborType
	case strings.Contains(accept, "json"):
		return jsonType
	case strings.HasPrefix(r.Header.Get("Content-Type"), cborType):
		return cborType
	}
	return jsonType
}

func errBodyTooLarge() *fault.Error {
	return fault.New(fault.Validation, "body_too_large", "the body has more than %d bytes", limits.BodyBytes).
		With("limit", "body").With("maxBytes", "%d", limits.BodyBytes)
}

func errBodyIncomplete() *fault.Error {
	return fault.New(fault.Cancelled, "body_incomplete", "the body ended early; nothing was done")
}

// decode reads a body into the request. No body at all is the smallest request.
func decode(mediaType string, body []byte, req any) *fault.Error {
	if mediaType == cborType {
		return wire.DecodeCBOR(body, req)
	}
	if len(body) == 0 {
		body = []byte("{}")
	}
	return wire.DecodeJSON(body, req)
}

func encode(mediaType string, v any) ([]byte, *fault.Error) {
	write := wire.EncodeJSON
	if mediaType == cborType {
		write = wire.EncodeCBOR
	}
	b, err := write(v)
	if err != nil {
		return nil, fault.New(fault.RecoveryRequired, "unencodable", "the answer cannot be written in this media type")
	}
	return b, nil
}

// useIdempotencyKey makes the header the command id where the body has none.
func useIdempotencyKey(h http.Header, req any) *fault.Error {
	key := h.Get("Idempotency-Key")
	c, ok := req.(api.CommandRequest)
	if key == "" || !ok {
		return nil
	}
	if n := len(key); n >= 2 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1] // a structured field; both forms are in use
	}
	switch c.GetCommandID() {
	case "":
		c.SetCommandID(key)
	case key:
	default:
		return fault.New(fault.Validation, "idempotency_key_mismatch",
			"the header Idempotency-Key and the command id in the body differ; give one of them, or the same twice")
	}
	return nil
}
