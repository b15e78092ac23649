package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/cluster"
)

// clusterCommands are the commands of a cluster that no server carries out.
func clusterCommands() []local {
	return []local{
		{"certs", "Make the certificates with which the nodes of a cluster know each other.", reflect.TypeFor[clusterCertsCmd]()},
		{"dev", "Run a whole cluster on this machine, for development.", reflect.TypeFor[clusterDevCmd]()},
	}
}

type clusterCertsCmd struct {
	To   string   `arg:"" name:"to" type:"path" help:"directory for the files; its authority is used again if it has one"`
	Name string   `placeholder:"NAME" help:"name of the cluster, for a new authority: 1 to 63 of a-z, 0-9 and -"`
	Node []uint64 `placeholder:"N" help:"number of a node to make a certificate for (may be repeated; or 1,2,3)"`
}

// Help is the example.
func (*clusterCertsCmd) Help() string {
	return "Makes an authority (ca.pem, ca.key) where there is none, and a certificate and a key for each node (node-1.pem, node-1.key). " +
		"Never replaces a file. Give each node ca.pem and its own two files, and keep ca.key on no node: whoever has it can be any node. " +
		"For example:\n\n    keyload cluster certs certs --name prod --node 1,2,3\n    keyload cluster certs certs --node 4"
}

// madeCerts is what was made.
type madeCerts struct {
	Cluster string           `json:"cluster"`
	CAFile  string           `json:"caFile"`
	Expires time.Time        `json:"expires"`
	Nodes   []cluster.Issued `json:"nodes"`
}

// Run makes them.
func (c *clusterCertsCmd) Run(s *session) error {
	if len(c.Node) == 0 && c.Name == "" {
		return &badUsage{text: "give the nodes with --node, or the name of a new cluster with --name"}
	}
	now := time.Now()
	authority, err := c.authority(now)
	if err != nil {
		return err
	}
	made := madeCerts{
		Cluster: authority.Cluster, CAFile: filepath.Join(c.To, cluster.CAFile), Expires: authority.Expires.UTC(), Nodes: []cluster.Issued{},
	}
	for _, node := range c.Node {
		issued, issueErr := authority.Issue(c.To, node, now)
		if issueErr != nil {
			err = issueErr
			break
		}
		made.Nodes = append(made.Nodes, issued)
	}
	if s.JSON {
		return errors.Join(s.showJSON(made), err)
	}
	return errors.Join(made.tell(s), err)
}

// authority is that of the directory, or a new one.
func (c *clusterCertsCmd) authority(now time.Time) (*cluster.Authority, error) {
	a, found, err := cluster.LoadAuthority(c.To)
	switch {
	case err != nil:
		return nil, err
	case found && c.Name != "" && c.Name != a.Cluster:
		return nil, fault.New(fault.Conflict, "other_cluster", "%s has the authority of the cluster %s; nothing was changed", c.To, a.Cluster)
	case found:
		return a, nil
	case c.Name == "":
		return nil, &badUsage{text: "--name is required: there is no authority in " + c.To + " yet"}
	}
	return cluster.MakeAuthority(c.To, c.Name, now)
}

// tell shows people what was made.
func (m *madeCerts) tell(s *session) error {
	_, err := fmt.Fprintf(s.streams.Out, "cluster %s: authority %s, expires %s\n", m.Cluster, m.CAFile, m.Expires.Format(time.DateOnly))
	for _, n := range m.Nodes {
		if err == nil {
			_, err = fmt.Fprintf(s.streams.Out, "node %d: made %s and %s, expires %s\n", n.Node, n.CertFile, n.KeyFile, n.Expires.Format(time.DateOnly))
		}
	}
	return err
}
