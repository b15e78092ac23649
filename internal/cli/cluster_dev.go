package cli

import (
	"context"
	"os"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/internal/cluster/dev"
)

// inviteTime is how long the first node may take to take another one into the list.
const inviteTime = 60 * time.Second

type clusterDevCmd struct {
	Nodes      int    `placeholder:"N" help:"how many nodes, 1 to 7 (default 3); of the first start only"`
	ListenBase int    `placeholder:"PORT" default:"7600" help:"port of the first node, the next ones follow, and ten above are those for each other (default 7600); 0 picks free ones; of the first start only"`
	LogLevel   string `placeholder:"LEVEL" enum:"debug,info,warn,error" default:"warn" help:"least level of the nodes' logs: debug, info, warn or error (default warn)"`
}

// Help is the example.
func (*clusterDevCmd) Help() string {
	return "Makes certificates, directories and settings, starts the nodes as processes of this program on this machine only, and starts again " +
		"those that end: kill -9 any of them. Without --dir all of it is gone at the end; with it, the same command goes on. For example:\n\n" +
		"    keyload cluster dev\n    keyload cluster dev --dir trio --listen-base 7700"
}

// Run runs it until it is interrupted.
func (c *clusterDevCmd) Run(s *session) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if c.ListenBase < 0 || c.ListenBase > 65_500 {
		return &badUsage{text: "--listen-base must be a port from 1 to 65500, or 0"}
	}
	return dev.Run(s.ctx, dev.Options{
		Dir: s.Dir, Nodes: c.Nodes, Base: c.ListenBase, LogLevel: c.LogLevel, Program: self, Invite: invite,
		Suggest: s.name.command, JSON: s.JSON, Out: s.streams.Out, Err: s.streams.Err,
	})
}

// invite puts a node into the list of members, by the node that answers at url.
func invite(ctx context.Context, url, key string, node uint64, address string) error {
	ctx, cancel := context.WithTimeout(ctx, inviteTime)
	defer cancel()
	c := client.New(url, key)
	defer c.Close()
	_, err := api.Call(ctx, c, api.ClusterAdd, &api.ClusterAddRequest{NodeID: node, Address: address})
	return err
}
