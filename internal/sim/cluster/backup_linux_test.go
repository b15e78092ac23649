package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
)

// acknowledged is what callers of a cluster were told that it has.
type acknowledged struct {
	mu     sync.Mutex
	notes  map[uint16][]string // by shard
	topics []string
	first  *api.CommandsCommitRequest // of shard 1
	token  api.CommitToken            // that answered it
}

// write commits notes to a shard, or topics to the catalog, one after the other until
// ctx ends.
func (a *acknowledged) write(ctx context.Context, t *testing.T, d *client.Client, shard uint16) {
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("n-%d-%d", shard, n)
		req, made, err := &api.CommandsCommitRequest{CommandID: api.NewCommandID()}, &api.CommandsCommitResponse{}, error(nil)
		if shard == 0 {
			_, err = d.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: name, Kind: api.KindTopic})
		} else {
			req.Partition, req.Mutations = partition(shard), []api.Mutation{client.Put("notes", name, map[string]int{"n": n})}
			made, err = api.Call(ctx, d, api.CommandsCommit, req)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		a.mu.Lock()
		if shard == 0 {
			a.topics = append(a.topics, name)
		} else {
			a.notes[shard] = append(a.notes[shard], name)
		}
		if shard == 1 && n == 0 {
			a.first, a.token = req, made.Receipt.Token
		}
		a.mu.Unlock()
	}
}

// now is a copy of what was acknowledged by now.
func (a *acknowledged) now() *acknowledged {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := &acknowledged{notes: map[uint16][]string{}, topics: a.topics[:len(a.topics):len(a.topics)], first: a.first, token: a.token}
	for shard, names := range a.notes {
		out.notes[shard] = names[:len(names):len(names)]
	}
	return out
}

// count is how much of it there is: the fewest of any shard.
func (a *acknowledged) count() int { return min(len(a.topics), len(a.notes[1]), len(a.notes[2])) }

// found wants all of it to be in a store.
func (a *acknowledged) found(t *testing.T, d api.Doer) {
	t.Helper()
	for shard, names := range a.notes {
		for _, name := range names {
			if _, err := client.CallsOf(d).Get(t.Context(), partition(shard), "notes", name); err != nil {
				t.Fatalf("note %s was acknowledged: %v", name, err)
			}
		}
	}
	for _, name := range a.topics {
		if _, err := api.Call(t.Context(), d, api.ResourcesGet, &api.ResourcesGetRequest{Name: name}); err != nil {
			t.Fatalf("topic %s was acknowledged: %v", name, err)
		}
	}
}

func TestABackupOfAFollowerHasEverythingThatWasAcknowledgedAndBeginsAnotherCluster(t *testing.T) {
	c := three(t)
	const leader, catalog, follower = 0, 1, 2
	for shard, i := range []int{catalog, leader, leader} {
		d := c.keep(t, leader, c.key, 10)
		_, err := api.Call(t.Context(), d, api.ClusterTransfer, &api.ClusterTransferRequest{Shard: int64(shard), NodeID: c.nodes[i].id})
		ok(t, err)
		ok(t, wait(t.Context(), "the chosen node leads", func(ctx context.Context) error {
			if got, err := c.Leader(ctx, uint32(shard)); got != i || err != nil {
				return fmt.Errorf("shard %d is led by %d, not %d: %v", shard, got, i, err)
			}
			return nil
		}))
	}
	_, err := c.keep(t, leader, c.key, 10).Commit(t.Context(), partition(1), client.Enqueue("tasks", api.Message{MessageID: "m", Payload: api.Of("work")}))
	ok(t, err)

	all := &acknowledged{notes: map[uint16][]string{}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	busy, rest := context.WithCancel(ctx)
	var working sync.WaitGroup
	for shard := range uint16(3) {
		d := c.Client(leader)
		t.Cleanup(func() { ok(t, d.Close()) })
		working.Go(func() { all.write(busy, t, d, shard) })
	}
	ok(t, wait(ctx, "something was acknowledged in every shard", func(context.Context) error {
		if t.Failed() {
			t.FailNow()
		}
		if n := all.now().count(); n < 20 {
			return fmt.Errorf("%d topics, %d and %d notes", len(all.now().topics), len(all.now().notes[1]), len(all.now().notes[2]))
		}
		return nil
	}))
	c.ways.slow(leader, follower, 80*time.Millisecond) // its copies of what that leads lag
	var before *acknowledged
	var archive bytes.Buffer
	for range 2 {
		before = all.now()
		archive.Reset()
		_, err = c.keep(t, follower, c.key, 10).Backup(t.Context(), &archive)
		ok(t, err)
	}
	c.ways.healAll()
	rest()
	working.Wait()

	open := func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}
	dir := filepath.Join(t.TempDir(), "alone")
	restored, err := backup.Restore(t.Context(), open, dir, backup.RestoreOptions{})
	ok(t, err)
	db, err := keyload.Open(dir, keyload.Options{MustExist: true})
	ok(t, err)
	before.found(t, db)
	members, err := api.Call(t.Context(), db, api.ClusterStatus, &api.ClusterStatusRequest{})
	ok(t, err)
	if len(members.Nodes) != 0 || !restored.Checked {
		t.Errorf("a store that was restored has %d nodes, and was checked: %v", len(members.Nodes), restored.Checked)
	}
	ok(t, db.Close())

	ok(t, c.Close())
	second := begun(t, c.key, func(ctx context.Context, dir string) error {
		_, err := backup.Restore(ctx, open, dir, backup.RestoreOptions{})
		return err
	})
	d := second.Client()
	defer d.Close()
	before.found(t, d)
	for name, err := range map[string]error{
		"a commit token": failure(api.Call(t.Context(), d, api.DocumentsGet, &api.DocumentsGetRequest{
			Partition: partition(1), Collection: "notes", ID: "n-1-0", MinToken: &before.token,
		})),
		"a command": failure(api.Call(t.Context(), d, api.CommandsCommit, before.first)),
	} {
		if fault.CodeOf(err) != fault.TokenInvalidated {
			t.Errorf("%s of the cluster that was: %v", name, err)
		}
	}
	receive := &api.QueuesReceiveRequest{Lane: client.Lane(partition(1), "tasks")}
	if _, err := d.Receive(t.Context(), receive); fault.CodeOf(err) != fault.DispatchPaused {
		t.Errorf("nobody has looked yet, and it delivers: %v", err)
	}
	ok(t, Same(t.Context(), second))
	ok(t, Sound(t.Context(), second))
}

func failure(_ any, err error) error { return err }

// begun is a cluster of two nodes that begins with a store that is brought.
func begun(t *testing.T, key string, bring func(ctx context.Context, dir string) error) *Cluster {
	t.Helper()
	o := options(t, 2)
	o.Bring = func(ctx context.Context, dir string) (string, error) { return key, bring(ctx, dir) }
	c, err := Start(t.Context(), o)
	ok(t, err)
	t.Cleanup(func() { ok(t, c.Close()) })
	return c
}
