package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"sync"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
)

// Mode is how the clients reach the store.
type Mode string

// The modes.
const (
	Embedded Mode = "embedded" // in this process
	Wire     Mode = "wire"     // a server in another process, over one session
	HTTP     Mode = "http"     // a server in another process, one request each
	Cluster  Mode = "cluster"  // three servers that replicate, over one session
)

// target is an open store.
type target struct {
	doer      api.Doer
	sample    func() (Sample, error)
	resetPeak func() error
	close     func() error
}

// openEmbedded makes a store in this process.
func openEmbedded(dir string, d api.Durability) (target, error) {
	debug.FreeOSMemory() // what earlier stores left is not this one's
	db, err := keyload.Open(dir, keyload.Options{Durability: d})
	if err != nil {
		return target{}, err
	}
	return target{
		doer:      db,
		sample:    func() (Sample, error) { return sampleOf(db.Engine()), nil },
		resetPeak: func() error { resetPeak(); return nil },
		close:     db.Close,
	}, nil
}

// exitTime is how long a server may take to end.
const exitTime = 30 * time.Second

// server is the other end of a child process that runs ServeCommand.
type server struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errors tail
}

// openServer starts a server with a new store and connects to it.
func openServer(cmd *exec.Cmd, httpOnly bool) (target, error) {
	s := &server{cmd: cmd}
	cmd.Stderr = &s.errors
	cmd.WaitDelay = exitTime
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		return target{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return target{}, err
	}
	s.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return target{}, fmt.Errorf("the server to measure does not start: %w", err)
	}
	var g greeting
	if err := s.read(&g); err != nil {
		return target{}, errors.Join(err, s.close())
	}
	var options []client.Option
	if httpOnly {
		options = append(options, client.HTTPOnly())
	}
	c := client.New(g.URL, g.Key, options...)
	return target{
		doer:      c,
		sample:    s.sample,
		resetPeak: func() error { return s.ask(askReset, &struct{}{}) },
		close:     func() error { return errors.Join(c.Close(), s.close()) },
	}, nil
}

func (s *server) sample() (Sample, error) {
	var out Sample
	err := s.ask(askSample, &out)
	return out, err
}

func (s *server) ask(line string, answer any) error {
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		return s.gone(err)
	}
	return s.read(answer)
}

// read reads one line of JSON.
func (s *server) read(v any) error {
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return s.gone(err)
	}
	return json.Unmarshal(line, v)
}

func (s *server) gone(err error) error {
	return fmt.Errorf("the server that is measured has ended (%w): %s", err, s.errors.text())
}

// close lets the server end by itself, and ends it when it does not.
func (s *server) close() error {
	_ = s.in.Close()
	timer := time.AfterFunc(exitTime, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	if err := s.cmd.Wait(); err != nil {
		return s.gone(err)
	}
	return nil
}

// tail keeps the end of what a child process complains about.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 4 << 10

// Write keeps the last bytes.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if over := len(t.b) - tailBytes; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

// again is this program with other arguments; it ends with ctx.
func again(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, self, args...), nil
}
