package httpgw

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// Backup writes a backup of the store for a caller who may have one, and answers
// its id. Errors are *fault.Error; what was written before one is no backup.
type Backup func(ctx context.Context, c Caller, w io.Writer) (id string, err error)

const backupType = "application/zstd"

// backup streams a backup. What was sent is one only if the answer ended as it
// must: an error before the first byte is a problem, one after it breaks the
// connection.
func (g *Gateway) backup(w http.ResponseWriter, r *http.Request) {
	caller, f := g.authenticate(r)
	if f == nil && g.makeBackup == nil {
		f = fault.New(fault.UnsupportedCapability, "backups_off", "this server makes no backups")
	}
	if f != nil {
		g.problem(w, r, f)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(g.tailing, func() { cancel(errDraining()) })()
	out := &download{w: w, control: http.NewResponseController(w)}
	_ = out.control.SetReadDeadline(time.Time{}) // it takes as long as the store is large
	id, err := g.makeBackup(ctx, caller, out)
	switch {
	case err == nil:
		w.Header().Set(api.BackupIDTrailer, id)
	case !out.started:
		_ = out.control.SetWriteDeadline(time.Now().Add(tailWriteTime))
		g.problem(w, r, toFault(err, nil, nil))
	default:
		g.log.Warn("a backup was broken off", "principal", caller.Principal(), "error", err.Error())
		panic(http.ErrAbortHandler) // no client may take what it got for the whole
	}
}

// download is an answer of unknown length to a client that may be slow.
type download struct {
	w       http.ResponseWriter
	control *http.ResponseController
	started bool
}

func (d *download) Write(p []byte) (int, error) {
	if !d.started {
		d.started = true
		h := d.w.Header()
		h.Set("Content-Type", backupType)
		h.Set("Cache-Control", "no-store")
		h.Set("Trailer", api.BackupIDTrailer)
		d.w.WriteHeader(http.StatusOK)
	}
	_ = d.control.SetWriteDeadline(time.Now().Add(tailWriteTime))
	return d.w.Write(p)
}
