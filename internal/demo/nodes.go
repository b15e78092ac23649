package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/internal/cluster/dev"
)

const (
	// nodeCount is how many nodes the cluster of the demo has.
	nodeCount = 3
	// wholeTime is how long the cluster may take to be whole again after a kill.
	wholeTime = 2 * time.Minute
	// patience is how often a call is tried at each node: until a leader is there.
	patience = 1000
)

// members are the nodes of a cluster on this machine, which package dev starts, and
// starts again when they end.
type members struct {
	client *client.Client
	cancel context.CancelFunc
	ended  chan error
	log    bytes.Buffer // of the nodes; read when they have ended

	mu        sync.Mutex
	urls      map[uint64]string
	processes map[uint64]int
	key       string
	told      chan struct{} // closed when the key is there
}

// startMembers makes a cluster in a directory and waits until it is whole.
func startMembers(ctx context.Context, dir string) (m *members, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m = &members{ended: make(chan error, 1), urls: map[uint64]string{}, processes: map[uint64]int{}, told: make(chan struct{})}
	running, cancel := context.WithCancel(ctx)
	m.cancel = cancel
	go func() {
		m.ended <- dev.Run(running, dev.Options{
			Dir: dir, Nodes: nodeCount, LogLevel: "error", Program: self, Invite: invite, Running: m.runs, JSON: true, Out: m, Err: &m.log,
		})
	}()
	select {
	case <-m.told:
	case err := <-m.ended:
		m.ended <- err
		return nil, errors.Join(errors.New("the nodes do not start"), m.close())
	}
	m.client = client.New(strings.Join(m.addresses(), ","), m.key, client.Attempts(patience))
	if err := m.whole(ctx); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// invite puts a node into the list of members.
func invite(ctx context.Context, url, key string, node uint64, address string) error {
	c := client.New(url, key)
	_, err := api.Call(ctx, c, api.ClusterAdd, &api.ClusterAddRequest{NodeID: node, Address: address})
	return errors.Join(err, c.Close())
}

func (m *members) runs(node uint64, url string, process int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.urls[node], m.processes[node] = url, process
}

// Write takes the line that package dev writes when every node has started.
func (m *members) Write(b []byte) (int, error) {
	var line struct {
		APIKey string `json:"apiKey"`
	}
	if err := json.Unmarshal(b, &line); err != nil || line.APIKey == "" {
		return 0, errors.Join(errors.New("the cluster does not tell its key"), err)
	}
	m.mu.Lock()
	m.key = line.APIKey
	m.mu.Unlock()
	close(m.told)
	return len(b), nil
}

// addresses are the URLs of the nodes, by their numbers.
func (m *members) addresses() (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, node := range slices.Sorted(maps.Keys(m.urls)) {
		out = append(out, m.urls[node])
	}
	return out
}

// each calls every node by itself.
func (m *members) each(call func(d api.Doer) error) error {
	for _, url := range m.addresses() {
		c := client.New(url, m.key)
		if err := errors.Join(call(c), c.Close()); err != nil {
			return fmt.Errorf("the node at %s: %w", url, err)
		}
	}
	return nil
}

// close stops every node.
func (m *members) close() error {
	var err error
	if m.client != nil {
		err = m.client.Close()
	}
	m.cancel()
	return errors.Join(err, <-m.ended)
}

// whole waits until every node is ready and votes in every shard.
func (m *members) whole(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	for {
		lacks, err := m.lacks(limit)
		if err == nil && lacks == "" {
			return nil
		}
		select {
		case <-time.After(every):
		case err := <-m.ended:
			m.ended <- err
			return errors.Join(errors.New("the cluster ended by itself"), err)
		case <-limit.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errors.Join(fmt.Errorf("the cluster is not whole after %v: %s", wholeTime, lacks), err)
		}
	}
}

// lacks is what keeps the cluster from being whole.
func (m *members) lacks(ctx context.Context) (string, error) {
	s, err := api.Call(ctx, m.client, api.ClusterStatus, &api.ClusterStatusRequest{})
	if err != nil {
		return "", err
	}
	if len(s.Nodes) != nodeCount {
		return fmt.Sprintf("it has %d nodes", len(s.Nodes)), nil
	}
	shards := len(s.Nodes[0].Replicas)
	for _, n := range s.Nodes {
		if !n.Reachable || !n.Ready || len(n.Replicas) != shards || shards == 0 {
			return fmt.Sprintf("node %d is not ready: %s", n.Node.NodeID, n.Reason), nil
		}
		for _, x := range n.Replicas {
			if x.Leader == 0 || x.Learner || !x.Member {
				return fmt.Sprintf("node %d does not vote in shard %d yet, or knows no leader of it", n.Node.NodeID, x.Shard), nil
			}
		}
	}
	return "", nil
}

// busiest finds the data shard with the most commands, and who leads it.
func (m *members) busiest(ctx context.Context) (shard uint32, leader uint64, err error) {
	s, err := api.Call(ctx, m.client, api.ClusterStatus, &api.ClusterStatusRequest{})
	if err != nil {
		return 0, 0, err
	}
	most := uint64(0)
	for _, n := range s.Nodes {
		for _, x := range n.Replicas {
			if x.Shard != 0 && x.Leader == n.Node.NodeID && x.Position > most {
				shard, leader, most = x.Shard, x.Leader, x.Position
			}
		}
	}
	if leader == 0 {
		return 0, 0, errors.New("no data shard has a leader")
	}
	return shard, leader, nil
}

// kill ends a node at once; package dev starts it again.
func (m *members) kill(node uint64) error {
	m.mu.Lock()
	process := m.processes[node]
	m.mu.Unlock()
	p, err := os.FindProcess(process)
	if err != nil {
		return err
	}
	return p.Kill()
}

// same says whether every node has the same state, once all are at one position.
func (m *members) same(ctx context.Context) (bool, error) {
	limit, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	for {
		var all [][]api.ShardStatus
		err := m.each(func(d api.Doer) error {
			s, err := api.Call(limit, d, api.AdminStatus, &api.AdminStatusRequest{})
			if err == nil {
				all = append(all, s.Shards)
			}
			return err
		})
		if err == nil && level(all) {
			return equal(all), nil
		}
		select {
		case <-time.After(every):
		case <-limit.Done():
			return false, errors.Join(errors.New("the nodes do not come to one position"), err, ctx.Err())
		}
	}
}

// level says that every node is at one position in each shard.
func level(all [][]api.ShardStatus) bool {
	for _, shards := range all {
		for i := range shards {
			if len(shards) != len(all[0]) || shards[i].Position != all[0][i].Position {
				return false
			}
		}
	}
	return true
}

func equal(all [][]api.ShardStatus) bool {
	for _, shards := range all {
		for i := range shards {
			if shards[i].Digest != all[0][i].Digest {
				return false
			}
		}
	}
	return true
}
