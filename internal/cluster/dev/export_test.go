package dev

import (
	"context"
	"io"
)

// Child is a node as tests run it.
type Child struct{ c *child }

// NewChild makes one; it does not run yet.
func NewChild(node uint64, out io.Writer, program string, args ...string) *Child {
	return &Child{newChild(node, &terminal{to: out}, program, args...)}
}

// Keep is keep.
func (c *Child) Keep(ctx context.Context) error { return c.c.keep(ctx) }

// Ready is closed when the node has told its URL.
func (c *Child) Ready() <-chan struct{} { return c.c.ready }

// State is state.
func (c *Child) State() (url string, pid int) { return c.c.state() }

// Prefixed writes lines with a prefix; end writes the rest and says what came last.
func Prefixed(out io.Writer, prefix string) (w io.Writer, end func() string) {
	p := &prefixed{out: &terminal{to: out}, prefix: prefix}
	return p, p.end
}

// MaxLine is maxLine.
const MaxLine = maxLine
