package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
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

func TestANodeIsNotLetGoWithoutWhichNoMajorityIsUp(t *testing.T) {
	c := three(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const dead = 2
	ok(t, c.Kill(dead))
	d := c.Client(0)
	defer d.Close()
	remove := func(i int) error {
		_, err := api.Call(t.Context(), d, api.ClusterRemove, &api.ClusterRemoveRequest{NodeID: c.nodes[i].id})
		return err
	}
	drain := func(i int, draining bool) error {
		_, err := api.Call(t.Context(), d, api.ClusterDrain, &api.ClusterDrainRequest{NodeID: c.nodes[i].id, Draining: draining})
		return err
	}
	for what, err := range map[string]error{
		"removing": remove(0), "draining": drain(1, true),
		"replacing": failure(api.Call(t.Context(), d, api.ClusterReplace, &api.ClusterReplaceRequest{NodeID: c.nodes[1].id, By: 9, Address: "nine:7700"})),
	} {
		if f := fault.From(err); f == nil || f.Code != fault.Conflict || f.Reason != "majority_lost" {
			t.Errorf("%s one of two nodes that are left of three: %v", what, err)
		}
	}
	ok(t, drain(1, false))
	ok(t, remove(dead))
	c.nodes = c.nodes[:dead]
	ok(t, Settled(ctx, c))
	ok(t, remove(1))
	gone := c.nodes[1].p
	defer gone.kill()
	c.nodes = c.nodes[:1]
	ok(t, Settled(ctx, c)) // until then it is needed
	gone.kill()
	_, err := d.Commit(t.Context(), partition(1), client.Put("notes", "a", map[string]int{"n": 1}))
	ok(t, err)
}
