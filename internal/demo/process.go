package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// silence is how long a child may report nothing before it counts as stuck.
const silence = 60 * time.Second

// process is one child: this program again, with another command.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer // closing it asks the child to end
	lines  chan line // closed after the last line
	stderr bytes.Buffer
}

// startChild starts the child. The end of ctx kills it.
func startChild(ctx context.Context, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self, append([]string{childCommand}, args...)...), lines: make(chan line)}
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the process that owns the store: %w", err)
	}
	go readLines(stdout, p.lines)
	return p, nil
}

// readLines passes lines on until the pipe ends. A line that a kill cut short is
// no line.
func readLines(from io.Reader, to chan<- line) {
	defer close(to)
	for r := bufio.NewReader(from); ; {
		b, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var l line
		if err := json.Unmarshal(b, &l); err != nil {
			l = line{Kind: lineFailed, Text: "the child wrote a line that is none: " + err.Error()}
		}
		to <- l
	}
}

// kill ends the child without asking it; on Unix this is SIGKILL.
func (p *process) kill() error { return p.cmd.Process.Kill() }

// rest reads what is still in the pipe and waits for the end of the process.
func (p *process) rest(see func(line)) error {
	for l := range p.lines {
		see(l)
	}
	p.stdin.Close()
	return p.cmd.Wait()
}

// finish asks the child to end and waits for it.
func (p *process) finish() error {
	p.stdin.Close()
	err := p.rest(func(line) {})
	if err != nil {
		return p.died(err)
	}
	return nil
}

// died is the error for a child that ended by itself.
func (p *process) died(err error) error {
	text := strings.TrimSpace(p.stderr.String())
	if text != "" {
		text = ": " + text
	}
	if err == nil {
		err = errors.New("no error")
	}
	return fmt.Errorf("the process that owns the store ended by itself (%w)%s", err, text)
}
