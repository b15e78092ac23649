package dev_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/cluster"
	"github.com/keyload/keyload/internal/cluster/dev"
)

// shown is what a cluster tells programs.
type shown struct {
	Dir   string
	Nodes []struct {
		Node    uint64
		URL     string
		Process int
	}
	APIKey string
}

func options(t *testing.T, dir string) dev.Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return dev.Options{
		Dir: dir, LogLevel: "info", Program: self, JSON: true, Out: &screen{}, Err: &screen{},
		Suggest: func(args ...string) string { return strings.Join(args, " ") },
		Invite: func(context.Context, string, string, uint64, string) error {
			t.Error("a cluster of one node invites nobody")
			return nil
		},
	}
}

// started is a cluster that runs until the test ends it.
func started(t *testing.T, o dev.Options) (s shown, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- dev.Run(ctx, o) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() }) // tests that care have asked already
	out := o.Out.(*screen)
	until(t, "the cluster runs", o.Err.(*screen), func() bool {
		select {
		case err := <-ended:
			t.Fatalf("it ended with %v\n%s", err, o.Err)
		default:
		}
		return strings.Contains(out.String(), "\n")
	})
	if err := json.Unmarshal([]byte(out.String()), &s); err != nil {
		t.Fatal(err)
	}
	return s, stop
}

func TestAClusterOfOneNodeIsMadeSurvivesAKillAndGoesOnInItsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	o := options(t, dir)
	o.Nodes = 1
	s, stop := started(t, o)
	c := client.New(s.Nodes[0].URL, s.APIKey)
	defer c.Close()
	if status, err := c.Status(t.Context()); err != nil || !status.Ready {
		t.Errorf("status is %+v, %v", status, err)
	}
	settings, found, err := cluster.Read(filepath.Join(dir, "node-1"))
	if err != nil || !found || settings.Node != 1 || !settings.Bootstrap {
		t.Errorf("settings are %+v, %v, %v", settings, found, err)
	}
	if _, err := settings.Credentials()(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "admin.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	if p, err := os.FindProcess(s.Nodes[0].Process); err != nil || p.Kill() != nil {
		t.Fatal(err)
	}
	log := o.Err.(*screen)
	until(t, "the node runs again", log, func() bool { return strings.Contains(log.String(), "runs again") && served(s.Nodes[0].URL) })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if served(s.Nodes[0].URL) {
		t.Error("the node still runs")
	}
	again, stop := started(t, options(t, dir))
	if again.APIKey != s.APIKey || again.Nodes[0].URL != s.Nodes[0].URL || again.Nodes[0].Process == s.Nodes[0].Process {
		t.Errorf("before %+v, now %+v", s, again)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	more := options(t, dir)
	more.Nodes = 3
	if err := dev.Run(t.Context(), more); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("another number of nodes: %v", err)
	}
}

func TestADirectoryThatIsSomethingElseIsLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "diary"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := dev.Run(t.Context(), options(t, dir))
	if f := fault.From(err); f == nil || f.Reason != "directory_not_empty" {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("it holds %v, %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "dev.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dev.Run(t.Context(), options(t, dir)); fault.CodeOf(err) != fault.Validation {
		t.Errorf("a plan of no nodes: %v", err)
	}
}

func TestAClusterHasOneToSevenNodes(t *testing.T) {
	for _, n := range []int{-1, dev.MaxNodes + 1} {
		o := options(t, filepath.Join(t.TempDir(), "c"))
		o.Nodes = n
		if err := dev.Run(t.Context(), o); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%d nodes: %v", n, err)
		}
		if _, err := os.Stat(o.Dir); !os.IsNotExist(err) {
			t.Errorf("%d nodes: something was made", n)
		}
	}
}

func TestATakenPortIsToldWithItsReason(t *testing.T) {
	o := options(t, filepath.Join(t.TempDir(), "c"))
	o.Nodes = 1
	one, _ := started(t, o)
	other := options(t, filepath.Join(t.TempDir(), "d"))
	other.Nodes, other.Base = 1, port(t, one.Nodes[0].URL)
	err := dev.Run(t.Context(), other)
	if err == nil || !strings.Contains(err.Error(), "node 1 ended before it was ready") || !strings.Contains(err.Error(), "address_in_use") {
		t.Errorf("got %v", err)
	}
}

func port(t *testing.T, url string) int {
	t.Helper()
	n, err := strconv.Atoi(url[strings.LastIndex(url, ":")+1:])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
