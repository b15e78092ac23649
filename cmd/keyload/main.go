package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/keyload/keyload/internal/cli"
)

func main() {
	os.Exit(run())
}

// run ends the command at the first interrupt; a second one ends the process.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return cli.Run(ctx, os.Args[1:], cli.Standard())
}
