package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/wire"
)

const (
	cborType    = "application/cbor"
	problemType = "application/problem+json"
	// maxAnswer bounds the answers that are read: a page has at most 8 MiB of
	// content.
	maxAnswer = 64 << 20
	// askFirstBytes is from which size on a body is sent only when the server wants
	// it: one that has no room says so before, and then the answer cannot get lost in
	// a connection that it closes.
	askFirstBytes = 64 << 10
	// askTime is how long the server may take to say so.
	askTime = 5 * time.Second
)

// plain sends every call as an HTTP request.
type plain struct {
	url, key  string
	transport *http.Transport
	closing   context.Context
}

func (p *plain) call(ctx context.Context, r request, resp any) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.closing, cancel)()
	sent := false
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, p.url+r.op.Path(), bytes.NewReader(r.body))
	if err != nil {
		return fault.New(fault.Validation, "url", "the server's URL cannot be used")
	}
	req.Header.Set("Authorization", "Bearer "+p.key)
	req.Header.Set("Content-Type", cborType)
	req.Header.Set("Accept", cborType)
	if r.id != "" {
		req.Header.Set("Idempotency-Key", r.id)
	}
	if len(r.body) > askFirstBytes {
		req.Header.Set("Expect", "100-continue")
	}
	answer, err := p.transport.RoundTrip(req)
	if err != nil {
		return transportError(ctx, r, err, sent)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return transportError(ctx, r, err, true)
	}
	return readAnswer(r, answer, body, resp)
}

// transportError sorts out what a failed exchange means.
func transportError(ctx context.Context, r request, err error, sent bool) *fault.Error {
	switch {
	case ctx.Err() != nil && !sent:
		return notSent(ctx)
	case ctx.Err() != nil:
		return gone(r)
	case !sent:
		return unreachable(describe(err))
	}
	return lost(r, "connection_lost", "the connection was lost before the answer came")
}

// readAnswer reads a response or an error. Whatever did not come from KeyLoad
// says nothing about what happened.
func readAnswer(r request, answer *http.Response, body []byte, resp any) error {
	mediaType, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode == http.StatusOK && mediaType == cborType {
		return decodeResult(r.op, body, resp)
	}
	if f := readFault(answer.StatusCode, mediaType, body); f != nil {
		return f
	}
	if answer.StatusCode >= 500 {
		return lost(r, "foreign_answer", "something between client and server answered "+answer.Status)
	}
	return fault.New(fault.UnsupportedCapability, "foreign_answer",
		"what answered %s at this URL is not a KeyLoad server, or something before it refused the request", answer.Status)
}

// readFault reads an error in either form; nil when the body is neither.
func readFault(status int, mediaType string, body []byte) *fault.Error {
	f := &fault.Error{}
	var err error
	switch {
	case status < 400:
		return nil
	case mediaType == cborType:
		err = wire.ReadCBOR(body, f)
	case mediaType == problemType:
		err = json.Unmarshal(body, f)
	}
	if err != nil || f.Code == "" {
		return nil
	}
	return f
}

func decodeFault(body []byte) *fault.Error {
	f := &fault.Error{}
	if err := wire.ReadCBOR(body, f); err != nil || f.Code == "" {
		return fault.New(fault.FormatUnsupported, "unreadable_answer", "the server's error cannot be read")
	}
	return f
}

func decodeResult(o *api.Operation, body []byte, resp any) error {
	if err := wire.ReadCBOR(body, resp); err != nil {
		return fault.New(fault.FormatUnsupported, "unreadable_answer",
			"%s was carried out, and the server's answer cannot be read; use a newer client", o.Name)
	}
	return nil
}

// describe is a short text for a failed connection, without addresses of
// proxies or credentials in URLs.
func describe(err error) string {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "no answer in time"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
