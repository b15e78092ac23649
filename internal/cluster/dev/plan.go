package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/cluster"
	"github.com/keyload/keyload/internal/node"
)

const (
	planFile = "dev.json"
	keyFile  = "admin.key"
	// MaxNodes is the most nodes of a development cluster.
	MaxNodes = 7
	// peerPorts is how far the port for other nodes is above that for callers.
	peerPorts = 10
)

// plan is what a development cluster is made of. It is written when all of that is
// there, so a directory without it was not finished.
type plan struct {
	Cluster string   `json:"cluster"`
	Nodes   []member `json:"nodes"`
	// Invited is true once every node is in the list of members: from then on a
	// majority of them must run.
	Invited bool `json:"invited"`

	dir string
}

// member is one node.
type member struct {
	Node   uint64 `json:"node"`
	Listen string `json:"listen"` // for callers
	Peers  string `json:"peers"`  // for other nodes
}

// nodeDir is the directory of a node.
func (p *plan) nodeDir(node uint64) string {
	return filepath.Join(p.dir, "node-"+strconv.FormatUint(node, 10))
}

// load reads the plan of a directory; nil when there is nothing in it.
func load(dir string) (*plan, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Validation, "directory_unreadable", "the directory cannot be read: %v", err)
	}
	b, err := os.ReadFile(filepath.Join(dir, planFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Conflict, "directory_not_empty",
			"%s is not empty and holds no development cluster, or one whose first start was cut short; nothing was changed. Remove it, or choose another directory", dir)
	}
	p := &plan{dir: dir}
	if err == nil {
		err = json.Unmarshal(b, p)
	}
	if err == nil && (len(p.Nodes) == 0 || len(p.Nodes) > MaxNodes) {
		err = errors.New("it names no nodes")
	}
	if err != nil {
		return nil, fault.New(fault.Validation, "cluster_plan", "%s cannot be used: %v", filepath.Join(dir, planFile), err)
	}
	return p, nil
}

// save writes the plan; it replaces the one before at once or not at all.
func (p *plan) save() error {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(p.dir, planFile)
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// key is the administrator's.
func (p *plan) key() (string, error) {
	b, err := os.ReadFile(filepath.Join(p.dir, keyFile))
	return strings.TrimSpace(string(b)), err
}

// prepare makes everything that a cluster of so many nodes needs: certificates,
// the store of the first node, settings of all. base is the port of the first node;
// 0 picks free ones.
func prepare(ctx context.Context, dir string, nodes, base int) (*plan, error) {
	members, err := addresses(nodes, base)
	if err != nil {
		return nil, err
	}
	p := &plan{dir: dir, Cluster: fmt.Sprintf("dev-%06x", rand.N(1<<24)), Nodes: members}
	certs := filepath.Join(dir, "certs")
	authority, err := cluster.MakeAuthority(certs, p.Cluster, time.Now())
	if err != nil {
		return nil, err
	}
	created, err := node.Init(ctx, p.nodeDir(1))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte(created.APIKey+"\n"), 0o600); err != nil {
		return nil, err
	}
	for _, m := range p.Nodes {
		if err := p.settle(authority, certs, m); err != nil {
			return nil, err
		}
	}
	return p, p.save()
}

// settle makes the certificate and the settings of a node.
func (p *plan) settle(authority *cluster.Authority, certs string, m member) error {
	made, err := authority.Issue(certs, m.Node, time.Now())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.nodeDir(m.Node), 0o700); err != nil {
		return err
	}
	s := cluster.Settings{
		Cluster: p.Cluster, Node: m.Node, Listen: m.Peers,
		CAFile: "../certs/" + cluster.CAFile, CertFile: "../certs/" + filepath.Base(made.CertFile), KeyFile: "../certs/" + filepath.Base(made.KeyFile),
	}
	if m.Node == 1 {
		s.Bootstrap = true
	} else {
		s.Join = []string{p.Nodes[0].Peers}
	}
	return cluster.Write(p.nodeDir(m.Node), s)
}

// addresses are 2 for each node, of this machine and reached by it only.
func addresses(nodes, base int) (members []member, err error) {
	var held []net.Listener // so that no free port is picked twice
	defer func() {
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
	}()
	pick := func(offset int) string {
		if base > 0 {
			return net.JoinHostPort("127.0.0.1", strconv.Itoa(base+offset))
		}
		l, listenErr := net.Listen("tcp", "127.0.0.1:0")
		if listenErr != nil {
			err = errors.Join(err, listenErr)
			return ""
		}
		held = append(held, l)
		return l.Addr().String()
	}
	for i := range nodes {
		members = append(members, member{Node: uint64(i + 1), Listen: pick(i), Peers: pick(i + peerPorts)})
	}
	return members, err
}
