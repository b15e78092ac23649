package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/keyload/keyload/fault"
)

// settleTime is how long all nodes may take to accept work before that is said.
const settleTime = 2 * time.Minute

// Options say what runs and where.
type Options struct {
	// Dir holds the cluster; it is made, or gone on with. Empty: a temporary one.
	Dir string
	// Nodes is how many, 1 to MaxNodes, and Base the port of the first one, 0 for
	// free ones; both are of the first start only, and 0 nodes are 3.
	Nodes, Base int
	// LogLevel is that of the nodes.
	LogLevel string
	// Program is what is run: keyload itself.
	Program string
	// Invite puts a node, that other nodes reach at an address, into the list of
	// members of the cluster that answers at url. The same again changes nothing.
	Invite func(ctx context.Context, url, key string, node uint64, address string) error
	// Running is told of every node that serves, again after each start; nil: nobody is.
	Running func(node uint64, url string, process int)
	// Suggest writes a command line of the program as it would be typed.
	Suggest func(args ...string) string
	// JSON writes one line for programs instead of sentences.
	JSON     bool
	Out, Err io.Writer
}

// Run runs a cluster until ctx ends, then stops it. Errors: Validation; Conflict
// (reason directory_not_empty); what a node said that does not start.
func Run(ctx context.Context, o Options) (err error) {
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "keyload-cluster-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	p, err := open(ctx, o)
	if err != nil {
		return err
	}
	r := &running{o: o, plan: p, out: &terminal{to: o.Err}}
	if r.key, err = p.key(); err != nil {
		return fault.New(fault.Validation, "cluster_plan", "the administrator's key cannot be read: %v", err)
	}
	return r.run(ctx)
}

// open finds the cluster of a directory, or makes it.
func open(ctx context.Context, o Options) (*plan, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	p, err := load(dir)
	if err != nil {
		return nil, err
	}
	nodes := o.Nodes
	switch {
	case p != nil && nodes != 0 && nodes != len(p.Nodes):
		return nil, fault.New(fault.Conflict, "other_cluster", "the cluster in %s has %d nodes; its number is that of its first start", dir, len(p.Nodes))
	case p != nil:
		return p, nil
	case nodes == 0:
		nodes = 3
	}
	if nodes < 1 || nodes > MaxNodes {
		return nil, fault.New(fault.Validation, "nodes", "a development cluster has 1 to %d nodes", MaxNodes)
	}
	return prepare(ctx, dir, nodes, o.Base)
}

// running is a cluster whose nodes run.
type running struct {
	o    Options
	plan *plan
	key  string
	out  *terminal

	children []*child
	ended    chan error // of nodes that cannot be kept running
	all      sync.WaitGroup
}

func (r *running) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer r.all.Wait() // after cancel
	defer cancel()
	r.ended = make(chan error, len(r.plan.Nodes))
	for _, m := range r.plan.Nodes {
		c := newChild(m.Node, r.out, r.o.Program, "serve", "--dir", r.plan.nodeDir(m.Node),
			"--listen", m.Listen, "--json", "--with-input", "--log-level", r.o.LogLevel)
		c.running = r.o.Running
		r.children = append(r.children, c)
	}
	if err := r.start(ctx); err != nil {
		return orEnd(ctx, err)
	}
	if err := r.tell(); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return orEnd(ctx, err)
	}
	select {
	case err := <-r.ended:
		return err
	case <-ctx.Done():
	}
	r.out.say("stopping")
	return nil
}

// orEnd is no error when somebody wanted the end.
func orEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// start starts every node. Those of a new cluster need the first one before they
// are known; later none of them can do without a majority.
func (r *running) start(ctx context.Context) error {
	if !r.plan.Invited {
		r.keep(ctx, r.children[:1])
		if err := r.ready(ctx, r.children[:1]); err != nil {
			return err
		}
		url, _ := r.children[0].state()
		for _, m := range r.plan.Nodes[1:] {
			if err := r.o.Invite(ctx, url, r.key, m.Node, m.Peers); err != nil {
				return fmt.Errorf("node %d was not invited: %w", m.Node, err)
			}
		}
		r.plan.Invited = true
		if err := r.plan.save(); err != nil {
			return err
		}
		r.keep(ctx, r.children[1:])
	} else {
		r.keep(ctx, r.children)
	}
	return r.ready(ctx, r.children)
}

func (r *running) keep(ctx context.Context, children []*child) {
	for _, c := range children {
		r.all.Go(func() {
			if err := c.keep(ctx); err != nil {
				r.ended <- err
			}
		})
	}
}

// ready waits until each node has told its URL.
func (r *running) ready(ctx context.Context, children []*child) error {
	for _, c := range children {
		select {
		case <-c.ready:
		case err := <-r.ended:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// settle waits until every node accepts work, and says so, or which do not.
func (r *running) settle(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var not []uint64
		for _, c := range r.children {
			if url, _ := c.state(); !accepts(limit, url) {
				not = append(not, c.node)
			}
		}
		if len(not) == 0 {
			r.out.say("all nodes accept work")
			return nil
		}
		select {
		case <-tick.C:
		case err := <-r.ended:
			return err
		case <-limit.Done():
			if ctx.Err() == nil {
				r.out.say("still not accepting work after %s: nodes %v; they are left running", settleTime, not)
			}
			return nil
		}
	}
}

// accepts says whether a node is ready.
func accepts(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// told is a cluster as programs are told of it.
type told struct {
	Dir    string     `json:"dir"`
	Nodes  []toldNode `json:"nodes"`
	APIKey string     `json:"apiKey"`
}

type toldNode struct {
	Node    uint64 `json:"node"`
	URL     string `json:"url"`
	Process int    `json:"process"`
}

// tell says where the nodes are, and what to do next.
func (r *running) tell() error {
	all := told{Dir: r.plan.dir, APIKey: r.key}
	for _, c := range r.children {
		url, pid := c.state()
		all.Nodes = append(all.Nodes, toldNode{c.node, url, pid})
	}
	if r.o.JSON {
		return json.NewEncoder(r.o.Out).Encode(all)
	}
	keyFile := filepath.Join(r.plan.dir, keyFile)
	text := fmt.Sprintf("a cluster of %d nodes runs in %s; an interrupt stops it, the same command goes on with it\n", len(all.Nodes), all.Dir)
	for _, n := range all.Nodes {
		text += fmt.Sprintf("node %d  %s  process %d\n", n.Node, n.URL, n.Process)
	}
	text += fmt.Sprintf("administrator's key, also in %s: %s\n\nNext:\n  export KEYLOAD_URL=%s KEYLOAD_API_KEY=%s\n  %s\n  kill -9 %d   # any of them: the others go on, and it is started again\n",
		keyFile, all.APIKey, all.Nodes[0].URL, all.APIKey, r.o.Suggest("cluster", "status"), all.Nodes[len(all.Nodes)-1].Process)
	_, err := io.WriteString(r.o.Out, text)
	return err
}
