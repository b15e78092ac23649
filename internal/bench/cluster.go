package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/internal/cluster/dev"
)

// nodes is how many a cluster has that is measured, wholeTime how long it may take to
// be whole.
const (
	nodes     = 3
	wholeTime = time.Minute
)

// nodesOf are the nodes of a cluster on this machine.
type nodesOf struct {
	cancel context.CancelFunc
	ended  chan error
	errors tail
	urls   [nodes]string
	key    chan string
}

// openCluster starts three nodes, each a process of this program with a disk of its
// own in the directory, and waits until all vote in every shard. What nodes use is
// not sampled.
func openCluster(ctx context.Context, dir string, program func() (string, error)) (target, error) {
	self, err := program()
	if err != nil {
		return target{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	n := &nodesOf{cancel: cancel, ended: make(chan error, 1), key: make(chan string, 1)}
	go func() {
		n.ended <- dev.Run(ctx, dev.Options{
			Dir: dir, Nodes: nodes, LogLevel: "error", Program: self, Invite: invite, JSON: true, Out: n, Err: &n.errors,
			Running: func(node uint64, url string, _ int) { n.urls[node-1] = url },
		})
	}()
	var key string
	select {
	case key = <-n.key:
	case err := <-n.ended:
		cancel()
		return target{}, fmt.Errorf("the nodes to measure do not start (%w): %s", err, n.errors.text())
	}
	c := client.New(strings.Join(n.urls[:], ","), key)
	t := target{
		doer:      c,
		sample:    func() (Sample, error) { return Sample{}, nil },
		resetPeak: func() error { return nil },
		close:     func() error { return errors.Join(c.Close(), n.close()) },
	}
	if err := whole(ctx, c); err != nil {
		return target{}, errors.Join(err, t.close())
	}
	return t, nil
}

func (n *nodesOf) close() error {
	n.cancel()
	return <-n.ended
}

// Write takes the line that package dev writes when every node has started.
func (n *nodesOf) Write(b []byte) (int, error) {
	var line struct {
		APIKey string `json:"apiKey"`
	}
	if err := json.Unmarshal(b, &line); err != nil || line.APIKey == "" {
		return 0, errors.Join(errors.New("the cluster does not tell its key"), err)
	}
	n.key <- line.APIKey
	return len(b), nil
}

// invite puts a node into the list of members.
func invite(ctx context.Context, url, key string, node uint64, address string) error {
	c := client.New(url, key)
	_, err := api.Call(ctx, c, api.ClusterAdd, &api.ClusterAddRequest{NodeID: node, Address: address})
	return errors.Join(err, c.Close())
}

// whole waits until every node votes in every shard, of which each leads some.
func whole(ctx context.Context, c api.Doer) error {
	ctx, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		s, err := api.Call(ctx, c, api.ClusterStatus, &api.ClusterStatusRequest{})
		if err == nil && votes(s) {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return errors.Join(errors.New("the cluster to measure is not whole in time"), err)
		}
	}
}

func votes(s *api.ClusterStatusResponse) bool {
	if len(s.Nodes) != nodes {
		return false
	}
	for _, n := range s.Nodes {
		if !n.Ready || n.Leads == 0 {
			return false
		}
		for _, r := range n.Replicas {
			if !r.Member || r.Learner {
				return false
			}
		}
	}
	return true
}
