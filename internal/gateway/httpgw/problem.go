package httpgw

import (
	"net/http"
	"strconv"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/wire"
)

// problem is an error in the form of RFC 9457.
type problem struct {
	Type             string            `json:"type"`
	Title            string            `json:"title"`
	Status           int               `json:"status"`
	Detail           string            `json:"detail"`
	Code             fault.Code        `json:"code"`
	Reason           string            `json:"reason"`
	Retry            fault.Retry       `json:"retry"`
	Recorded         bool              `json:"recorded"`
	RetryAfterMillis int64             `json:"retryAfterMillis,omitzero"`
	Violations       []fault.Violation `json:"violations,omitempty"`
	CommandID        string            `json:"commandId,omitempty"`
	Facts            map[string]string `json:"facts,omitempty"`
}

// newProblem is the body of an error. The status is that of the code, except
// where HTTP has a word of its own.
func newProblem(f *fault.Error, status int) problem {
	return problem{
		Type: "urn:keyload:error:" + string(f.Code), Title: f.Code.Title(), Status: status, Detail: f.Detail,
		Code: f.Code, Reason: f.Reason, Retry: f.Retry, Recorded: f.Recorded, RetryAfterMillis: f.RetryAfterMillis,
		Violations: f.Violations, CommandID: f.CommandID, Facts: f.Facts,
	}
}

// problem answers an error with the status of its code.
func (g *Gateway) problem(w http.ResponseWriter, r *http.Request, f *fault.Error) {
	g.writeProblem(w, answerType(r), f, f.Code.Status())
}

// writeProblem answers an error: a problem body, or for clients that speak CBOR
// the error itself.
func (g *Gateway) writeProblem(w http.ResponseWriter, mediaType string, f *fault.Error, status int) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if f.RetryAfterMillis > 0 {
		h.Set("Retry-After", strconv.FormatInt((f.RetryAfterMillis+999)/1000, 10))
	}
	if f.Code == fault.Unauthenticated {
		h.Set("WWW-Authenticate", `Bearer realm="keyload"`)
	}
	var body []byte
	var err error
	if mediaType == cborType {
		body, err = wire.EncodeCBOR(f)
	} else {
		mediaType = problemType
		body, err = wire.EncodeJSON(newProblem(f, status))
	}
	if err != nil {
		g.log.Error("an error cannot be encoded", "code", f.Code, "reason", f.Reason, "error", err)
	}
	writeBody(w, mediaType, status, body)
}

// writeBody answers with one body of known length. That the caller does not
// read it is the caller's affair.
func writeBody(w http.ResponseWriter, mediaType string, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
