package cli

import (
	"context"
	"io"
	"log/slog"
	"reflect"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/gateway/httpgw"
	"github.com/keyload/keyload/internal/gateway/mcpgw"
)

type mcpCmd struct {
	MCPDirect bool `name:"mcp-direct" help:"list every operation as a tool, instead of three that find, describe and call them"`
}

// Help is the example.
func (*mcpCmd) Help() string {
	return "Speaks the Model Context Protocol on standard input and output, for a program that starts it, such as an editor or an " +
		"agent. It works on the server of --url with --api-key, or on the store in --dir. A server answers agents at /mcp by itself. For example:\n\n" +
		"    keyload mcp --url http://127.0.0.1:7600 --api-key \"$KEYLOAD_API_KEY\"\n    keyload mcp --dir data --as default/admin"
}

// Run answers one agent until it leaves.
func (c *mcpCmd) Run(s *session) error {
	doer, closeDoer, err := s.open()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(s.streams.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	gateway, err := httpgw.New(httpgw.Options{Door: oneCaller{doer}, Logger: log, Version: keyload.Version})
	if err == nil {
		agents := mcpgw.New(mcpgw.Options{Operations: gateway, Key: localKey, Direct: c.MCPDirect, Version: keyload.Version, Logger: log})
		err = agents.Run(s.ctx, io.NopCloser(s.streams.In), unclosed{s.streams.Out})
	}
	if err != nil && s.ctx.Err() != nil {
		err = nil // it was interrupted, which is how it is ended
	}
	if closeErr := closeDoer(); err == nil {
		err = closeErr
	}
	return err
}

// localKey stands for whoever started the program.
const localKey = "local"

// unclosed keeps standard output open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// oneCaller is a door behind which one caller stands: whoever started the program.
type oneCaller struct{ doer api.Doer }

var _ httpgw.Door = oneCaller{}

// Authenticate implements httpgw.Door: who the caller is, is decided behind it.
func (oneCaller) Authenticate(context.Context, string) (httpgw.Caller, error) {
	return &engine.Caller{}, nil
}

// Do implements httpgw.Door.
func (d oneCaller) Do(ctx context.Context, _ httpgw.Caller, o *api.Operation, req any) (any, error) {
	resp := reflect.New(o.Response).Interface()
	if err := d.doer.Do(ctx, o, req, resp); err != nil {
		return nil, err
	}
	return resp, nil
}

// Ready implements httpgw.Door.
func (oneCaller) Ready() error { return nil }
