//go:build unix

package kill

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
	"syscall"
	"time"
)

// silence is how long a child may tell nothing before it counts as stuck.
const silence = time.Minute

// process is one child.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer // the child ends when it is closed
	stdout *bufio.Reader
	stderr bytes.Buffer
	quiet  *time.Timer
}

// start starts a child, which ends with ctx.
func start(ctx context.Context, o any) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self)}
	p.cmd.Env = append(os.Environ(), childOrders+"="+string(text))
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdout = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.quiet = time.AfterFunc(silence, func() {
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // the stacks say where it is stuck
	})
	return p, nil
}

// next reads a line; false at the end of the child. A line that a kill cut short
// is none.
func (p *process) next(l any) bool {
	b, err := p.stdout.ReadBytes('\n')
	p.quiet.Reset(silence)
	return err == nil && json.Unmarshal(b, l) == nil
}

// kill ends the child at once.
func (p *process) kill() error { return p.cmd.Process.Kill() }

// killed waits for the end of the child, which must be by SIGKILL.
func (p *process) killed() error {
	err := p.cmd.Wait()
	p.quiet.Stop()
	_ = p.stdin.Close()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGKILL {
			return nil
		}
	}
	return fmt.Errorf("the child was not killed: %v: %s", err, p.stderr.String())
}
