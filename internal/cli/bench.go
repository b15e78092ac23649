package cli

import (
	"github.com/keyload/keyload/internal/bench"
)

type benchCmd struct{ bench.Command }

// Run measures and reports; how it goes is shown on standard error.
func (c *benchCmd) Run(s *session) error {
	c.Dir = s.Dir
	report, err := c.Measure(s.ctx, s.streams.Err, s.streams.ErrTerminal)
	if err != nil {
		return err
	}
	if s.JSON {
		return report.WriteJSON(s.streams.Out)
	}
	return report.WriteTable(s.streams.Out)
}

type benchServerCmd struct{ bench.ServeCommand }

// Run is the server of a measurement, in a process of its own.
func (c *benchServerCmd) Run(s *session) error {
	if s.Dir == "" {
		return &badUsage{text: "--dir is required"}
	}
	c.Dir = s.Dir
	return c.Serve(s.ctx, s.streams.In, s.streams.Out, s.streams.Err)
}
