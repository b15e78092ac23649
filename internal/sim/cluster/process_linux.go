package cluster

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// process is one life of a node.
type process struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	url   string
	log   tail
	ended chan struct{} // closed when it has ended
	err   error         // how, after that
}

// servingTime is how long a node may take from its start to its first line.
const servingTime = 60 * time.Second

var servingLine = regexp.MustCompile(`https?://[^\s"]+`)

// start starts a program and waits until it writes where it serves. It ends with the
// thread that started it, which nobody else uses: so it never outlives this process.
func start(program, dir string, env []string, args ...string) (p *process, err error) {
	p = &process{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Dir = dir
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, in := io.Pipe()
	p.cmd.Stdout = in
	p.cmd.WaitDelay = time.Second
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
		_ = in.Close()
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	slow := time.AfterFunc(servingTime, func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) }) // the stacks say why
	defer slow.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if p.url = servingLine.FindString(line); err == nil && p.url != "" {
		return p, nil
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	return nil, fmt.Errorf("%s does not serve: %q, %w, %w\n%s", program, line, err, p.err, p.log.String())
}

// kill ends it at once, whatever it is at, stopped or not.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// end asks it to end.
func (p *process) end() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(servingTime):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.ended
	}
	return p.err
}

// stop lets it do nothing until it goes on.
func (p *process) stop() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) goOn() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// died says that it ended by itself, and how; nil while it runs.
func (p *process) died() error {
	select {
	case <-p.ended:
		var exit *exec.ExitError
		if errors.As(p.err, &exit) {
			if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGKILL {
				return nil
			}
		}
		return fmt.Errorf("the node ended by itself: %v\n%s", p.err, p.log.String())
	default:
		return nil
	}
}

// tail keeps the end of a log.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 64 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.b = append(t.b, p...); len(t.b) > 2*tailBytes {
		t.b = append([]byte(nil), t.b[len(t.b)-tailBytes:]...)
	}
	return len(p), nil
}

// String is what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(t.b, []byte("?")))
}
