package httpgw_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/gateway/httpgw"
)

// download asks for a backup and reads the answer as far as it goes.
func (b *bed) download() (*http.Response, []byte, error) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+api.BackupPath, nil)
	check(b.t, err)
	req.Header.Set("Authorization", "Bearer "+b.key)
	resp, err := http.DefaultClient.Do(req)
	check(b.t, err)
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return resp, content, err
}

func TestAnAdministratorDownloadsABackup(t *testing.T) {
	b := newBed(t)
	b.publish(100)
	resp, content, err := b.download()
	check(t, err)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/zstd" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	got, err := backup.Verify(t.Context(), bytes.NewReader(content), "", nil)
	check(t, err)
	if id := resp.Trailer.Get(api.BackupIDTrailer); id != got.ID {
		t.Errorf("the trailer says %q, want %s", id, got.ID)
	}
}

// The role that may back up a tenant is not enough: a backup has every tenant.
func TestNobodyElseDownloadsABackup(t *testing.T) {
	b := newBed(t)
	for _, role := range []api.Role{api.RoleOperator, api.RoleAdmin} {
		b.key, _ = b.newKey(api.Principal{ID: "p-" + string(role), Roles: []api.Role{role}, PolicyEpoch: 1})
		a := b.send(http.MethodPost, api.BackupPath, nil)
		if p := a.problem(t); a.status != http.StatusForbidden || p.Reason != "administrator_only" {
			t.Errorf("%s: %d %+v", role, a.status, p)
		}
	}
	if a := b.send(http.MethodPost, api.BackupPath, nil, "Authorization", ""); a.status != http.StatusUnauthorized {
		t.Errorf("without a key: %d", a.status)
	}
	if a := b.send(http.MethodGet, api.BackupPath, nil); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != http.MethodPost {
		t.Errorf("with GET: %d %v", a.status, a.header)
	}
}

func TestABackupThatFailsBeforeItsFirstByteIsAProblem(t *testing.T) {
	b := newBed(t, func(o *httpgw.Options) {
		o.Backup = func(context.Context, httpgw.Caller, io.Writer) (string, error) {
			return "", fault.New(fault.ResourceExhausted, "backup_running", "a backup is being made already")
		}
	})
	a := b.send(http.MethodPost, api.BackupPath, nil)
	if p := a.problem(t); a.status != http.StatusTooManyRequests || p.Reason != "backup_running" {
		t.Errorf("%d %+v", a.status, p)
	}
	b = newBed(t, func(o *httpgw.Options) { o.Backup = nil })
	a = b.send(http.MethodPost, api.BackupPath, nil)
	if p := a.problem(t); p.Code != string(fault.UnsupportedCapability) {
		t.Errorf("%d %+v", a.status, p)
	}
}

// The answer has begun, so it cannot become a problem: it must not look complete.
func TestABackupThatFailsOnItsWayBreaksTheConnection(t *testing.T) {
	b := newBed(t, func(o *httpgw.Options) {
		o.Backup = func(_ context.Context, _ httpgw.Caller, w io.Writer) (string, error) {
			_, err := io.WriteString(w, strings.Repeat("x", 100_000))
			return "", errors.Join(err, errors.New("the disk is gone"))
		}
	})
	resp, content, err := b.download()
	if err == nil || resp.Trailer.Get(api.BackupIDTrailer) != "" {
		t.Errorf("%d bytes came, and the answer ended as if they were all", len(content))
	}
}

func TestAServerThatShutsDownEndsItsBackup(t *testing.T) {
	begun := make(chan struct{})
	ended := make(chan error, 1)
	b := newBed(t, func(o *httpgw.Options) {
		o.Backup = func(ctx context.Context, _ httpgw.Caller, w io.Writer) (string, error) {
			_, err := io.WriteString(w, strings.Repeat("x", 100_000))
			check(t, err)
			close(begun)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return "", context.Cause(ctx)
		}
	})
	type result struct {
		resp *http.Response
		err  error
	}
	got := make(chan result, 1)
	go func() {
		resp, _, err := b.download()
		got <- result{resp, err}
	}()
	<-begun
	check(t, b.server.Shutdown(t.Context()))
	if f := fault.From(<-ended); f == nil || f.Reason != "shutting_down" {
		t.Errorf("it was ended by %v", f)
	}
	if r := <-got; r.err == nil || r.resp.Trailer.Get(api.BackupIDTrailer) != "" {
		t.Error("the answer ended as if it were complete")
	}
}
