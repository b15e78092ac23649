package dev

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

const (
	// patience is how long a node may take to end when it is asked to. It lets
	// running calls finish for 20 seconds.
	patience = 30 * time.Second
	// pauseMin and pauseMax are the pauses before a node is started again; a node
	// that ran for steady is started at once.
	pauseMin = 200 * time.Millisecond
	pauseMax = 5 * time.Second
	steady   = 10 * time.Second
)

// child is one node, whichever process it is at the moment.
type child struct {
	node    uint64
	program string
	args    []string
	out     *terminal
	running func(node uint64, url string, process int) // may be nil

	mu    sync.Mutex
	url   string        // of the first start on
	pid   int           // 0 while it does not run
	ready chan struct{} // closed when it has told its URL for the first time
}

func newChild(node uint64, out *terminal, program string, args ...string) *child {
	return &child{node: node, program: program, args: args, out: out, ready: make(chan struct{})}
}

// state is where the node is reached, and its process.
func (c *child) state() (url string, pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.url, c.pid
}

// keep runs the node until ctx ends, and starts it again when it ends by itself.
// The error is that of a node that ended before it ever was ready.
func (c *child) keep(ctx context.Context) error {
	pause := time.Duration(0)
	for {
		began := time.Now()
		why := c.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		select {
		case <-c.ready:
		default:
			return fmt.Errorf("node %d ended before it was ready: %w", c.node, why)
		}
		if time.Since(began) > steady {
			pause = 0
		}
		pause = min(max(2*pause, pauseMin), pauseMax)
		c.out.say("node %d ended (%v); it is started again", c.node, why)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil
		}
	}
}

// run is one process of the node, from its start to its end; it says how that
// came. At the end of ctx it is asked to end, then made to.
func (c *child) run(ctx context.Context) error {
	cmd := exec.Command(c.program, c.args...)
	apart(cmd)
	log := &prefixed{out: c.out, prefix: fmt.Sprintf("node %d | ", c.node)}
	cmd.Stderr = log
	input, err := cmd.StdinPipe() // ends with this process too, however that ends
	if err != nil {
		return err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		c.read(output, cmd.Process.Pid)
		ended <- cmd.Wait()
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = c.end(cmd, input, ended)
	}
	c.mu.Lock()
	c.pid = 0
	c.mu.Unlock()
	last := log.end()
	if err != nil && last != "" {
		return fmt.Errorf("%w: %s", err, last)
	}
	if err == nil {
		err = fmt.Errorf("without an error")
	}
	return err
}

// end asks the process to end and waits; then it makes it end.
func (c *child) end(cmd *exec.Cmd, input io.Closer, ended <-chan error) error {
	_ = input.Close() // it may have ended
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case err := <-ended:
		return err
	case <-t.C:
	}
	c.out.say("node %d does not end; it is killed", c.node)
	_ = cmd.Process.Kill() // it may have ended now
	return <-ended
}

// read waits for the line in which the node tells its URL, and reads on until the
// process ends.
func (c *child) read(output io.Reader, pid int) {
	lines := bufio.NewReader(output)
	for {
		b, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var told struct {
			URL string `json:"url"`
		}
		if json.Unmarshal(b, &told) != nil || told.URL == "" {
			continue
		}
		c.mu.Lock()
		again := c.url != ""
		c.url, c.pid = told.URL, pid
		c.mu.Unlock()
		if c.running != nil {
			c.running(c.node, told.URL, pid)
		}
		if again {
			c.out.say("node %d runs again as process %d at %s", c.node, pid, told.URL)
			continue
		}
		close(c.ready)
	}
}
