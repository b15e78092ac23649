package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	settings "github.com/keyload/keyload/internal/cluster"
)

// Options of a cluster.
type Options struct {
	// Dir gets everything; it must be empty.
	Dir string
	// Program serves a node, with what its environment must hold. It is given the
	// directory and the address to listen on, writes its URL when it serves, and reads
	// what its machine does: see Tell.
	Program string
	Env     []string
	// Nodes is how many nodes there are, each with every shard; Shards how many data
	// shards.
	Nodes, Shards int
	// Setup fills the store before it becomes a cluster.
	Setup func(ctx context.Context, d api.Doer) error
	// Bring, if set, makes the store with which the cluster begins, in a directory that
	// is not there yet, instead of Setup, and answers an administrator's key.
	Bring func(ctx context.Context, dir string) (key string, err error)
}

// Cluster is the nodes of one cluster, numbered from 0.
type Cluster struct {
	o         Options
	net       network
	ways      *ways
	authority *settings.Authority
	key       string
	lastID    uint64

	mu    sync.Mutex
	nodes []*node
}

// node is one place in the cluster; who is in it changes when its disk is lost.
type node struct {
	id  uint64
	dir string
	p   *process // nil while it does not run
}

// Start makes a store, lets a node begin a cluster with it, and adds the others.
func Start(ctx context.Context, o Options) (c *Cluster, err error) {
	made := &Cluster{o: o, net: newNetwork()}
	c = made
	c.ways = newWays(c.pids)
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	if c.authority, err = settings.MakeAuthority(filepath.Join(o.Dir, "ca"), "sim", time.Now()); err != nil {
		return nil, err
	}
	for i := range o.Nodes {
		c.nodes = append(c.nodes, &node{})
		if err := c.ways.lead(c.net.way(i), i, c.net.peer(i)); err != nil {
			return nil, err
		}
	}
	if err := begin(ctx, c); err != nil {
		return nil, err
	}
	if err := c.Run(0); err != nil {
		return nil, err
	}
	err = wait(ctx, "the first node is in the list of members", func(ctx context.Context) error {
		s, err := c.status(ctx, 0)
		if err == nil && len(s.Nodes) == 0 {
			err = errors.New("it is not")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := 1; i < o.Nodes; i++ {
		if err := c.join(ctx, i, nil); err != nil {
			return nil, err
		}
	}
	return c, Settled(ctx, c)
}

// begin furnishes the first node, which brings the store.
func begin(ctx context.Context, c *Cluster) (err error) {
	if c.o.Bring == nil {
		if err := c.furnish(0); err != nil {
			return err
		}
		return c.makeStore(ctx)
	}
	if c.key, err = c.o.Bring(ctx, c.o.dirOf(1)); err != nil {
		return err
	}
	return c.furnish(0)
}

func (o *Options) dirOf(id uint64) string { return filepath.Join(o.Dir, fmt.Sprintf("node-%d", id)) }

// makeStore makes the store of the first node, with an administrator of a tenant of
// its own, whom no judge of what others made finds.
func (c *Cluster) makeStore(ctx context.Context) (err error) {
	db, err := keyload.Open(c.nodes[0].dir, keyload.Options{Shards: c.o.Shards})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err = db.ConfigurePrincipal(ctx, api.Principal{Tenant: "sim", ID: "admin", Administrator: true, PolicyEpoch: 1}); err != nil {
		return err
	}
	k, err := db.CreateAPIKey(ctx, &api.APIKeysCreateRequest{Tenant: "sim", PrincipalID: "admin"})
	if err != nil {
		return err
	}
	c.key = k.APIKey
	if c.o.Setup == nil {
		return nil
	}
	return c.o.Setup(ctx, db)
}

// furnish gives a place a new node: a number that none had, a directory and settings.
func (c *Cluster) furnish(i int) error {
	c.lastID++
	n := &node{id: c.lastID, dir: c.o.dirOf(c.lastID)}
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return err
	}
	made, err := c.authority.Issue(filepath.Join(c.o.Dir, "ca"), n.id, time.Now())
	if err != nil {
		return err
	}
	s := settings.Settings{
		Cluster: "sim", Node: n.id, Listen: c.net.peer(i), Advertise: c.net.way(i),
		CAFile: filepath.Join(c.o.Dir, "ca", settings.CAFile), CertFile: made.CertFile, KeyFile: made.KeyFile,
		Bootstrap: c.lastID == 1,
	}
	for j := range c.nodes {
		if j != i && !s.Bootstrap {
			s.Join = append(s.Join, c.net.way(j))
		}
	}
	if err := settings.Write(n.dir, s); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[i] = n
	return nil
}

// join adds a new node to the cluster at a place, instead of another one if there
// was one, and starts it.
func (c *Cluster) join(ctx context.Context, i int, instead *node) error {
	if err := c.furnish(i); err != nil {
		return err
	}
	d := c.Client()
	defer d.Close()
	var err error
	if id := c.nodes[i].id; instead == nil {
		_, err = api.Call(ctx, d, api.ClusterAdd, &api.ClusterAddRequest{NodeID: id, Address: c.net.way(i)})
	} else {
		_, err = api.Call(ctx, d, api.ClusterReplace, &api.ClusterReplaceRequest{NodeID: instead.id, By: id, Address: c.net.way(i)})
	}
	if err != nil {
		return err
	}
	return c.Run(i)
}

// Run starts a node, which must not run.
func (c *Cluster) Run(i int) error {
	n := c.nodes[i]
	p, err := start(c.o.Program, n.dir, c.o.Env, n.dir, c.net.api(i))
	if err != nil {
		return fmt.Errorf("node %d: %w", i, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n.p = p
	return nil
}

// Kill ends a node as a power cut ends a process, and forgets it.
func (c *Cluster) Kill(i int) error {
	return c.take(i, func(p *process) error { p.kill(); return nil })
}

// End lets a node end as an operator does.
func (c *Cluster) End(i int) error { return c.take(i, (*process).end) }

// Pause stops the process of a node, Resume lets it go on.
func (c *Cluster) Pause(i int) error  { return c.nodes[i].p.stop() }
func (c *Cluster) Resume(i int) error { return c.nodes[i].p.goOn() }

// Tell lets something happen to the machine of a node: "clock N" steps its clock N
// milliseconds away from the true time, "slow N" lets each sync of its disk take N
// milliseconds longer, "full" lets nothing more be written, until "room".
func (c *Cluster) Tell(i int, what string) error {
	_, err := fmt.Fprintln(c.nodes[i].p.input, what)
	return err
}

func (c *Cluster) take(i int, end func(*process) error) error {
	n := c.nodes[i]
	if n.p == nil {
		return nil
	}
	if err := n.p.died(); err != nil {
		return fmt.Errorf("node %d: %w", i, err)
	}
	p := n.p
	c.mu.Lock()
	n.p = nil
	c.mu.Unlock()
	return end(p)
}

// Replace erases the disk of a node and lets a new one join in its place.
func (c *Cluster) Replace(ctx context.Context, i int) error {
	old := c.nodes[i]
	if err := c.Kill(i); err != nil {
		return err
	}
	if err := os.RemoveAll(old.dir); err != nil {
		return err
	}
	return c.join(ctx, i, old)
}

// pids are the processes of the nodes.
func (c *Cluster) pids() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]int, len(c.nodes))
	for i, n := range c.nodes {
		if n.p != nil {
			out[i] = n.p.cmd.Process.Pid
		}
	}
	return out
}

// Client is a client of the whole cluster, which never gives up before its context;
// it begins with the given nodes.
func (c *Cluster) Client(first ...int) *client.Client {
	var urls []string
	for _, i := range first {
		urls = append(urls, "http://"+c.net.api(i))
	}
	for i := range c.nodes {
		urls = append(urls, "http://"+c.net.api(i))
	}
	return client.New(strings.Join(urls, ","), c.key, client.Attempts(1<<20))
}

// Node is a client of one node alone.
func (c *Cluster) Node(i int) *client.Client { return client.New("http://"+c.net.api(i), c.key) }

// Close ends every process. Errors are nodes that had ended by themselves.
func (c *Cluster) Close() error {
	var errs []error
	for i := range c.nodes {
		errs = append(errs, c.Kill(i))
	}
	c.ways.close()
	return errors.Join(errs...)
}
