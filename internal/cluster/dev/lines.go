package dev

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// maxLine is the longest line that is kept together, in bytes.
const maxLine = 64 << 10

// terminal is where people read what all processes write. Lines stay whole.
type terminal struct {
	mu sync.Mutex
	to io.Writer
}

// say writes a line of the program's own.
func (t *terminal) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.to, format+"\n", args...)
}

// prefixed writes the lines of one process, and keeps the last one.
type prefixed struct {
	out    *terminal
	prefix string

	part []byte
	last string
}

func (p *prefixed) Write(b []byte) (int, error) {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	p.part = append(p.part, b...)
	for {
		line, rest, whole := bytes.Cut(p.part, []byte("\n"))
		if !whole && len(p.part) < maxLine {
			return len(b), nil
		}
		p.write(line)
		p.part = append(p.part[:0], rest...)
	}
}

func (p *prefixed) write(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	p.last = string(line)
	fmt.Fprintf(p.out.to, "%s%s\n", p.prefix, line) // who cannot read it cannot be told
}

// end writes what had no end of line, and says what came last.
func (p *prefixed) end() string {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	p.write(p.part)
	p.part = nil
	return p.last
}
