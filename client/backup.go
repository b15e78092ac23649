package client

import (
	"context"
	"io"
	"mime"
	"net/http"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// Backup writes a backup of the server's store as it is at one moment, and answers
// its id, which stands for all of it: note it. The caller must be an administrator
// of the store. It is tried once, and takes as long as the store is large. After an
// error what was written is no backup. Errors are *fault.Error: PermissionDenied,
// ResourceExhausted (reasons backup_running, no_room), Corruption, Cancelled,
// OwnershipLost when the server or the connection went away (reason
// backup_incomplete); or what w said.
func (c *Client) Backup(ctx context.Context, w io.Writer) (id string, err error) {
	if c.badURL != nil {
		return "", c.badURL
	}
	if c.closing.Err() != nil {
		return "", errClosed()
	}
	if ctx.Err() != nil {
		return "", notSent(ctx)
	}
	for n := 1; ; n++ {
		s := c.current()
		id, err := s.plain.backup(ctx, w)
		if f := fault.From(err); n >= len(c.servers) || f == nil || f.Reason != "unreachable" || ctx.Err() != nil {
			return id, err
		}
		c.leave(s) // nothing was sent
	}
}

func (p *plain) backup(ctx context.Context, w io.Writer) (id string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.closing, cancel)()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+api.BackupPath, http.NoBody)
	if err != nil {
		return "", fault.New(fault.Validation, "url", "the server's URL cannot be used")
	}
	req.Header.Set("Authorization", "Bearer "+p.key)
	answer, err := p.transport.RoundTrip(req)
	if err != nil {
		return "", transportError(ctx, request{}, err, false)
	}
	defer answer.Body.Close() // what is left of it is of no use
	mediaType, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode != http.StatusOK || mediaType != "application/zstd" {
		return "", refusedBackup(answer)
	}
	to := &noting{w: w}
	switch _, err := io.Copy(to, answer.Body); {
	case to.err != nil:
		return "", to.err
	case err != nil && ctx.Err() != nil:
		return "", fault.New(fault.Cancelled, "cancelled", "the call ended before the backup was complete; what was written is no backup")
	case err == nil && answer.Trailer.Get(api.BackupIDTrailer) != "":
		return answer.Trailer.Get(api.BackupIDTrailer), nil
	}
	return "", fault.New(fault.OwnershipLost, "backup_incomplete", "the server or the connection went away before the backup was complete; what was written is no backup. The server's log says why")
}

func refusedBackup(answer *http.Response) error {
	if answer.StatusCode < 400 {
		return fault.New(fault.UnsupportedCapability, "foreign_answer", "what answered at this URL is not a KeyLoad server that makes backups")
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return lost(request{}, "connection_lost", "the connection was lost before the answer came")
	}
	return readAnswer(request{}, answer, body, nil)
}

// noting remembers that what is written to has failed.
type noting struct {
	w   io.Writer
	err error
}

func (n *noting) Write(p []byte) (int, error) {
	written, err := n.w.Write(p)
	if err != nil {
		n.err = err
	}
	return written, err
}
