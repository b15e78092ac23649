package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/node"
)

// ServeName is the name of the command that ServeCommand is.
const ServeName = "bench-server"

// ServeCommand is the server that is measured. It makes a store in a new
// directory and serves it as keyload serve does, on a free port of this
// machine. It writes its URL and the key of an administrator as one line of
// JSON, answers each line it reads with one line, and ends with its input.
type ServeCommand struct {
	Dir        string         `kong:"-"`
	Durability api.Durability `enum:"disk,process" default:"disk"`
}

// greeting is the first line a server writes.
type greeting struct {
	URL string `json:"url"`
	Key string `json:"key"`
}

// What a server can be asked.
const (
	askSample = "sample" // answers a Sample
	askReset  = "reset"  // begins the peak of its memory anew; answers {}
)

// Serve serves until in or ctx ends.
func (c *ServeCommand) Serve(ctx context.Context, in io.Reader, out, log io.Writer) error {
	created, err := node.Init(ctx, c.Dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var opened *engine.Engine
	answered := make(chan error, 1)
	err = node.Serve(ctx, node.Options{
		Dir: c.Dir, Listen: "127.0.0.1:0", Durability: c.Durability,
		Log:    slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError})),
		Opened: func(e *engine.Engine) { opened = e },
		Ready: func(url string) {
			go func() {
				defer cancel()
				answered <- answer(opened, greeting{URL: url, Key: created.APIKey}, in, out)
			}()
		},
	})
	if err != nil {
		return err
	}
	return <-answered
}

func answer(e *engine.Engine, first greeting, in io.Reader, out io.Writer) error {
	write := json.NewEncoder(out)
	if err := write.Encode(first); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var answer any = struct{}{}
		switch lines.Text() {
		case askSample:
			answer = sampleOf(e)
		case askReset:
			resetPeak()
		default:
			return fmt.Errorf("the question %q is not known", lines.Text())
		}
		if err := write.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}
