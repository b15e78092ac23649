package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	settings "github.com/keyload/keyload/internal/cluster"
)

func TestANodeThatCouldNotKeepWhatItWasGivenIsLetInAgainAndOnAnotherDiskItIsNot(t *testing.T) {
	c, err := Start(t.Context(), options(t, 2))
	ok(t, err)
	t.Cleanup(func() { ok(t, c.Close()) })
	const late = 2
	c.nodes = append(c.nodes, &node{})
	ok(t, c.ways.lead(c.net.way(late), late, c.net.peer(late)))
	ok(t, c.furnish(late))
	dir, id := c.nodes[late].dir, c.nodes[late].id
	ok(t, os.WriteFile(filepath.Join(dir, fillsAtJoining), nil, 0o600))
	d := c.Client(0)
	defer d.Close()
	_, err = api.Call(t.Context(), d, api.ClusterAdd, &api.ClusterAddRequest{NodeID: id, Address: c.net.way(late)})
	ok(t, err)

	if err := c.Run(late); err == nil {
		t.Fatal("a node whose disk is full serves")
	}
	st, err := api.Call(t.Context(), d, api.ClusterStatus, &api.ClusterStatusRequest{})
	ok(t, err)
	if n := st.Nodes[late]; n.Node.State != api.NodeJoined || n.Node.URL != "" {
		t.Fatalf("the node that was let in is %+v", n)
	}
	elsewhere := t.TempDir()
	mine, _, err := settings.Read(dir)
	ok(t, err)
	ok(t, settings.Write(elsewhere, mine))
	c.nodes[late].dir = elsewhere
	if err := c.Run(late); err == nil || !strings.Contains(err.Error(), "has joined before") {
		t.Fatalf("another disk was let in under its number: %v", err)
	}

	c.nodes[late].dir = dir
	ok(t, c.Run(late))
	ok(t, Settled(t.Context(), c))
	ok(t, Same(t.Context(), c))
	ok(t, c.Kill(late))
	ok(t, os.RemoveAll(dir))
	ok(t, os.Mkdir(dir, 0o700))
	ok(t, settings.Write(dir, mine))
	if err := c.Run(late); err == nil || !strings.Contains(err.Error(), "has joined before") {
		t.Errorf("a node that had voted came back empty: %v", err)
	}
}
