package cluster

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/internal/kv"
	server "github.com/keyload/keyload/internal/node"
	"github.com/keyload/keyload/internal/sim/disk"
)

// fillsAtJoining is a file in the directory of a node whose disk is full from the
// moment at which it asks to be let in.
const fillsAtJoining = "fills"

// serveNode is keyload serve on a machine whose clock and disk do what the lines of
// its input say: see Cluster.Tell.
func serveNode(dir, listen string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var step, slow atomic.Int64 // milliseconds
	full := disk.Full(vfs.Default)
	fills := filepath.Join(dir, fillsAtJoining)
	watched := disk.Watch(full, func(s disk.Sync) {
		if asks, _ := filepath.Glob(filepath.Join(dir, "joining", "*")); s.After && s.File == "." && len(asks) > 0 && os.Remove(fills) == nil {
			full.Fill()
		}
		if d := slow.Load(); d > 0 && !s.After {
			//keyload:sleep a slow disk is what this is
			time.Sleep(time.Duration(d) * time.Millisecond)
		}
	})
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			word, number, _ := strings.Cut(in.Text(), " ")
			n, _ := strconv.ParseInt(number, 10, 64)
			switch word {
			case "clock":
				step.Store(n)
			case "slow":
				slow.Store(n)
			case "full":
				full.Fill()
			case "room":
				full.Heal()
			}
		}
	}()
	return server.Serve(ctx, server.Options{
		Dir: dir, Listen: listen, Storage: kv.Options{FS: watched},
		Clock: func() time.Time { return time.Now().Add(time.Duration(step.Load()) * time.Millisecond) },
		Log:   slog.New(slog.NewJSONHandler(os.Stderr, nil)),
		Ready: func(url string) { fmt.Println("serving at " + url) },
	})
}
