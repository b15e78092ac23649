package cli

import (
	"github.com/keyload/keyload/internal/demo"
)

type demoCmd struct {
	demo.Options `embed:""`
}

// Help is the example.
func (*demoCmd) Help() string {
	return "Feeds 329 real webhook deliveries, one atomic batch each, and processes the queue they fill and two subscription groups " +
		"with competing workers, some of which fail or stall, while the process that owns the store is killed again and again. Then " +
		"a fresh process reads everything back and it is compared with the input: nothing lost, nothing twice. For example:\n\n" +
		"    keyload demo\n    keyload demo --dir data --keep"
}

// Run runs the demo in --dir, or in a temporary directory.
func (c *demoCmd) Run(s *session) error {
	o := c.Options
	o.Dir, o.JSON = s.Dir, s.JSON
	o.Out, o.Err, o.Terminal = s.streams.Out, s.streams.Err, s.streams.OutTerminal
	o.Suggest = s.name.command
	return demo.Run(s.ctx, o)
}

// demoChildCmd is the process that the demo kills.
type demoChildCmd struct {
	demo.ChildOptions `embed:""`
}

// Run owns the store of --dir until the demo has what it wants.
func (c *demoChildCmd) Run(s *session) error {
	o := c.ChildOptions
	o.Dir = s.Dir
	return demo.RunChild(s.ctx, o, s.streams.In, s.streams.Out)
}
