package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/gateway/httpgw"
)

func TestABackupOfAServerIsWhatItsIDNames(t *testing.T) {
	b := newBed(t)
	b.shutdown()
	b.serve("127.0.0.1:0", func(o *httpgw.Options) {
		o.Backup = func(ctx context.Context, c httpgw.Caller, w io.Writer) (string, error) {
			made, err := b.db.Backups().CreateFor(ctx, c, w, nil)
			if err != nil {
				return "", err
			}
			return made.ID, nil
		}
	})
	c := client.New(b.server.URL(), b.key)
	defer func() { check(t, c.Close()) }()
	var out bytes.Buffer
	id, err := c.Backup(t.Context(), &out)
	check(t, err)
	if _, err := backup.Verify(t.Context(), &out, id, nil); err != nil {
		t.Error(err)
	}
	stranger := client.New(b.server.URL(), "kl_x_y")
	defer func() { check(t, stranger.Close()) }()
	out.Reset()
	if _, err := stranger.Backup(t.Context(), &out); fault.CodeOf(err) != fault.Unauthenticated || out.Len() > 0 {
		t.Errorf("a stranger: %v, %d bytes", err, out.Len())
	}
	full := errors.New("no space left on device")
	if _, err := c.Backup(t.Context(), refusing{full}); !errors.Is(err, full) {
		t.Errorf("a writer that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Backup(ctx, &out); fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("after its context: %v", err)
	}
	check(t, c.Close())
	if _, err := c.Backup(t.Context(), &out); fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("after Close: %v", err)
	}
}

type refusing struct{ err error }

func (r refusing) Write([]byte) (int, error) { return 0, r.err }

func TestAnEmbeddedStoreIsBackedUpTheSameWay(t *testing.T) {
	db, err := keyload.Open(t.TempDir())
	check(t, err)
	defer func() { check(t, db.Close()) }()
	var out bytes.Buffer
	id, err := db.Backup(t.Context(), &out)
	check(t, err)
	if _, err := backup.Verify(t.Context(), &out, id, nil); err != nil {
		t.Error(err)
	}
}

// Whatever a server or something before it answers, only what ended as a backup
// must is taken for one.
func TestAnAnswerThatIsNotAWholeBackupIsAnError(t *testing.T) {
	var answer http.HandlerFunc
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer server.Close()
	zstd := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/zstd") }
	for what, c := range map[string]struct {
		answer http.HandlerFunc
		code   fault.Code
		reason string
	}{
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			zstd(w)
			_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, fault.OwnershipLost, "backup_incomplete"},
		"without its id": {func(w http.ResponseWriter, _ *http.Request) {
			zstd(w)
			_, _ = io.WriteString(w, "x")
		}, fault.OwnershipLost, "backup_incomplete"},
		"with an empty id": {func(w http.ResponseWriter, _ *http.Request) {
			zstd(w)
			w.Header().Set("Trailer", api.BackupIDTrailer)
			_, _ = io.WriteString(w, "x")
			w.Header().Set(api.BackupIDTrailer, "")
		}, fault.OwnershipLost, "backup_incomplete"},
		"a page": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>please log in</html>")
		}, fault.UnsupportedCapability, "foreign_answer"},
		"an answer in CBOR": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/cbor")
			_, _ = w.Write([]byte{0xa0})
		}, fault.UnsupportedCapability, "foreign_answer"},
		"a proxy's error": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "bad gateway", http.StatusBadGateway)
		}, fault.OwnershipLost, "foreign_answer"},
	} {
		answer = c.answer
		cl := client.New(server.URL, "kl_x_y")
		_, err := cl.Backup(t.Context(), io.Discard)
		if f := fault.From(err); f == nil || f.Code != c.code || f.Reason != c.reason {
			t.Errorf("%s: %v", what, err)
		}
		check(t, cl.Close())
	}
	cl := client.New("http://127.0.0.1:1", "kl_x_y")
	if _, err := cl.Backup(t.Context(), io.Discard); fault.CodeOf(err) != fault.OwnershipLost {
		t.Errorf("nobody there: %v", err)
	}
	check(t, cl.Close())
}
