package demo_test

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"github.com/keyload/keyload/internal/cli"
)

// TestMain lets the test binary be the program, so that the tests kill real
// processes: the one that owns a store, or the nodes of a cluster.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"demo-child", "serve"}, os.Args[1]) {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop)
		os.Exit(cli.Run(ctx, os.Args[1:], cli.Standard()))
	}
	os.Exit(m.Run())
}
