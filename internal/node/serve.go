package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"syscall"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/cluster"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/gateway/httpgw"
	"github.com/keyload/keyload/internal/gateway/mcpgw"
	"github.com/keyload/keyload/internal/kv"
)

// drainTime is how long calls in flight may take to end at shutdown.
const drainTime = 20 * time.Second

// Options say what is served and where.
type Options struct {
	// Dir holds the store; it must exist.
	Dir string
	// Listen is host:port; port 0 picks a free one.
	Listen string
	// CertFile and KeyFile are PEM files; TLS is on when both are given.
	CertFile, KeyFile string
	// Insecure allows an address that other hosts can reach without TLS.
	Insecure bool
	// MCPDirect lists every operation as a tool of agents.
	MCPDirect bool
	// Durability is what receipts promise: disk, or process for tests.
	Durability api.Durability
	// Log gets one record for every event of the server's life.
	Log *slog.Logger
	// Clock and Storage, for tests, stand for the clock and the disk of the machine
	// under a member of a cluster. The clock is watched as the machine's is.
	Clock   func() time.Time
	Storage kv.Options
	// Opened, if set, is called with the open store before Ready, for benches.
	Opened func(*engine.Engine)
	// Ready is called once, when requests are accepted.
	Ready func(url string)
}

// Serve serves a store until ctx ends, then lets calls in flight finish. Errors
// are *fault.Error where the store or the address cannot be used.
func Serve(ctx context.Context, o Options) error {
	if o.Durability == api.DurableProcess {
		o.Log.Warn("weak durability: a success survives this process but not a power loss; for tests only")
	}
	settings, member, err := cluster.Read(o.Dir)
	if err != nil {
		return err
	}
	if member {
		err = serveMember(ctx, o, settings)
	} else {
		err = serveAlone(ctx, o)
	}
	if ctx.Err() != nil {
		o.Log.Info("stopped")
	}
	return err
}

func serveAlone(ctx context.Context, o Options) error {
	db, err := keyload.Open(o.Dir, keyload.Options{Durability: o.Durability, Logger: o.Log, MustExist: true})
	if err != nil {
		return err
	}
	err = serve(ctx, o, db, nil)
	if closeErr := db.Close(); err == nil {
		err = closeErr
	}
	return err
}

// serve serves an open store. listening, if not nil, is told the URL before anybody
// else.
func serve(ctx context.Context, o Options, db *keyload.DB, listening func(url string)) error {
	registry, err := metrics(db.Engine())
	if err != nil {
		return err
	}
	gateway, err := httpgw.New(httpgw.Options{
		Door: db.Engine(), Metrics: registry, Logger: o.Log, Version: keyload.Version, Backup: backups(db, o.Log),
		Agents: func(operations http.Handler) http.Handler {
			return mcpgw.New(mcpgw.Options{Operations: operations, Direct: o.MCPDirect, Version: keyload.Version, Logger: o.Log}).Handler()
		},
	})
	if err != nil {
		return err
	}
	server, err := httpgw.Listen(gateway, httpgw.ListenOptions{
		Addr: o.Listen, CertFile: o.CertFile, KeyFile: o.KeyFile, AllowInsecure: o.Insecure,
	})
	if err != nil {
		return listenFault(err)
	}
	if listening != nil {
		listening(server.URL())
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve() }()
	status := db.Engine().Status()
	o.Log.Info("serving", "url", server.URL(), "version", keyload.Version, "incarnation", status.Incarnation,
		"durability", status.Durability, "dataShards", len(status.Shards)-1) // the other one is the catalog's
	if o.Opened != nil {
		o.Opened(db.Engine())
	}
	o.Ready(server.URL())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	o.Log.Info("shutting down", "drainSeconds", drainTime.Seconds())
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		o.Log.Warn("calls in flight were cut off", "error", err.Error())
	}
	return <-ended
}

// backups makes backups for administrators, and notes who had one.
func backups(db *keyload.DB, log *slog.Logger) httpgw.Backup {
	return func(ctx context.Context, who *engine.Caller, w io.Writer) (string, error) {
		b, err := db.Backups().CreateFor(ctx, who, w, nil)
		if err != nil {
			return "", err
		}
		log.Info("a backup was made", "id", b.ID, "principal", who.Principal(), "tenant", who.Tenant(), "bytes", b.Bytes)
		return b.ID, nil
	}
}

func listenFault(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fault.New(fault.Conflict, "address_in_use", "%v; choose another with --listen, or stop what uses it", err)
	}
	return fault.New(fault.Validation, "listen", "%v", err)
}
