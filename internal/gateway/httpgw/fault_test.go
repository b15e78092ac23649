package httpgw_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/gateway/httpgw"
)

// broken is the store's door with faults of the program in three operations.
type broken struct{ httpgw.Door }

// Do fails for them and passes the others on.
func (b broken) Do(ctx context.Context, c httpgw.Caller, o *api.Operation, req any) (any, error) {
	switch o {
	case api.QueuesStatus.Operation, api.CommandsCommit.Operation:
		return nil, errors.New("secret detail")
	case api.AdminStatus.Operation:
		panic("secret detail")
	}
	return b.Door.Do(ctx, c, o, req)
}

// log is a logger's output that may be read while it is written.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestAFaultOfTheProgramIsLoggedAndItsTextIsNotAnswered(t *testing.T) {
	out := &log{}
	b := newBed(t, func(o *httpgw.Options) {
		o.Door = broken{o.Door}
		o.Logger = slog.New(slog.NewTextHandler(out, nil))
	})
	a := b.post("/v1/queues/status", `{"lane":{"queue":"jobs"}}`)
	if p := a.problem(t); a.status != 503 || p.Code != "RecoveryRequired" || strings.Contains(string(a.body), "secret") {
		t.Errorf("%d %s", a.status, a.body)
	}
	a = b.post("/v1/commands/commit", commit(put(`{}`, ``)))
	p := a.problem(t)
	if a.status != 503 || p.Code != "UnknownWriteOutcome" || p.CommandID != someID || p.Retry != "same_id" || strings.Contains(string(a.body), "secret") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if !strings.Contains(out.String(), "secret detail") || !strings.Contains(out.String(), "queues.status") {
		t.Errorf("the log says %q", out.String())
	}
}

func TestAPanicInOneCallEndsItsSessionAndNotTheServer(t *testing.T) {
	out := &log{}
	b := newBed(t, func(o *httpgw.Options) {
		o.Door = broken{o.Door}
		o.Logger = slog.New(slog.NewTextHandler(out, nil))
	})
	p := b.dial(b.key)
	p.call(1, api.AdminStatus.Operation, &api.AdminStatusRequest{})
	if _, _, _, err := p.read(); err == nil {
		t.Errorf("the session goes on: %v", err)
	}
	p = b.dial(b.key)
	p.call(1, api.QueuesStatus.Operation, &api.QueuesStatusRequest{Lane: jobs()})
	if f := p.result(1, nil); f == nil || f.Code != fault.RecoveryRequired {
		t.Errorf("%v", f)
	}
	if !strings.Contains(out.String(), "panic in a session") || !strings.Contains(out.String(), "admin.status") {
		t.Errorf("the log says %q", out.String())
	}
}
