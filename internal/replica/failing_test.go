package replica

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/table"
)

// breakable restarts a node on a disk on which the writes below a directory fail from
// some moment on.
func (n *node) breakable(dir string) (fail func()) {
	var broken atomic.Bool
	n.c.lose(n)
	n.fs = errorfs.Wrap(n.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasPrefix(filepath.ToSlash(op.Path), dir+"/") {
			return errors.New("no room on the disk")
		}
		return nil
	}))
	n.c.must(n.open())
	return func() { broken.Store(true) }
}

// Whichever of its two stores fails, a leader answers nothing more as done, says so,
// and another node leads.
func TestALeaderWhoseDiskFailsGivesUpTheLead(t *testing.T) {
	for _, dir := range []string{"journal", "db"} {
		t.Run(dir, func(t *testing.T) {
			c := newCluster(t, 3)
			n := c.nodes[1]
			fail := n.breakable(dir)
			c.lead(n)
			c.write("before")
			fail()
			during := 0
			c.until("that it says so", func() bool { // the state notices when it writes a full block
				_, err := n.log.Propose(ctx, data, c.large(fmt.Sprint("during", during), 20_000), false, nil)
				if code := fault.CodeOf(err); err != nil && code != fault.UnknownWriteOutcome && code != fault.RecoveryRequired {
					t.Fatal(err)
				}
				if err == nil && dir == "journal" {
					t.Fatal("a command was acknowledged that is not in the journal")
				}
				during++
				return n.log.Status(data).Err != nil
			})
			if st := n.log.Status(data); st.Here || st.Leader != 0 {
				t.Errorf("status %+v", st)
			}
			_, err := n.log.Propose(ctx, data, c.put("later"), false, nil)
			is(t, err, fault.RecoveryRequired, "shard_stopped")
			_, err = n.documents()
			is(t, err, fault.RecoveryRequired, "shard_stopped")
			c.until("another leader", func() bool { l := c.leader(data); return l != nil && l != n })
			c.write("after")
			c.lose(n)
			c.must(n.open())
			c.write("again")
			c.settled()
		})
	}
}

// Damage that apply comes upon stops the shard where it is.
func TestAnEntryThatCannotBeAppliedStopsTheShardOnThisNodeOnly(t *testing.T) {
	c := newCluster(t, 3)
	n := c.spoilt(func(key []byte, b *kv.Batch) { b.Set(key, []byte{0xFF}) })
	out, err := n.log.Propose(ctx, data, c.put("x"), false, nil)
	if fault.CodeOf(err) != fault.UnknownWriteOutcome {
		t.Errorf("got %+v, %v", out, err)
	}
	c.stoppedAlone(n)
	if err := n.log.Status(data).Err; !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("it says %v", err)
	}
}

// Damage that changes what a command comes to is found by the others.
func TestAReplicaThatAMajorityContradictsStops(t *testing.T) {
	c := newCluster(t, 3)
	n := c.spoilt(func(key []byte, b *kv.Batch) { b.Delete(key) })
	if out, err := n.log.Propose(ctx, data, c.put("x"), false, nil); err != nil || out.Err == nil {
		t.Fatalf("without its definition a collection took a document: %+v, %v", out, err)
	}
	c.stoppedAlone(n)
	is(t, n.log.Status(data).Err, fault.Corruption, "replicas_differ")
}

// spoilt lets node 1 lead with the definitions of its data shard changed.
func (c *cluster) spoilt(change func(key []byte, b *kv.Batch)) *node {
	c.t.Helper()
	n := c.nodes[1]
	c.settled()
	n.close() // so that nothing is repeated, and nothing remembered
	c.must(n.open())
	snap := n.store.NewSnapshot()
	b := kv.NewBatch(n.store)
	c.must(snap.Scan([]byte{byte(table.ResourceByName), 0, data}, []byte{byte(table.ResourceByName), 0, data + 1}, false, func(k, _ []byte) (bool, error) {
		change(k, b)
		return true, nil
	}))
	c.must(errors.Join(snap.Close(), b.Commit(true)))
	c.lead(n)
	return n
}

// stoppedAlone waits until a node has stopped, another leads, and goes on.
func (c *cluster) stoppedAlone(n *node) {
	c.t.Helper()
	c.until("that it stops", func() bool { return n.log.Status(data).Err != nil })
	c.until("another leader", func() bool { l := c.leader(data); return l != nil && l != n })
	c.write("y")
	for _, o := range c.nodes {
		if o != n && o.log.Status(data).Err != nil {
			c.t.Errorf("node %d stopped too: %v", o.id, o.log.Status(data).Err)
		}
	}
	if n.log.Status(0).Err != nil {
		c.t.Errorf("its other shard stopped too: %v", n.log.Status(0).Err)
	}
}

func TestAPanicOfTheLoopStopsTheReplicasAndNotTheProcess(t *testing.T) {
	c := newCluster(t, 3)
	n := c.leading()
	n.log.host.in.call(func(*loop) { panic("impossible") })
	c.until("that it says so", func() bool { return n.log.Status(data).Err != nil && n.log.Status(0).Err != nil })
	c.until("another leader", func() bool { l := c.leader(data); return l != nil && l != n })
	c.write("after")
}

func TestStoresThatDoNotBelongTogetherAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(c *cluster, n *node){
		"the journal is gone": func(c *cluster, n *node) {
			b := kv.NewBatch(n.journal)
			b.DeleteRange([]byte{0}, []byte{255})
			c.must(b.Commit(true))
		},
		"the log of a shard is gone": func(c *cluster, n *node) {
			b := kv.NewBatch(n.journal)
			b.DeleteRange([]byte{'l', 0, data}, []byte{'l', 0, data + 1})
			b.Delete([]byte{'t', 0, data})
			c.must(b.Commit(true))
		},
		"the end of the journal is gone": func(c *cluster, n *node) {
			b := kv.NewBatch(n.journal)
			b.DeleteRange([]byte{'l', 0, data}, []byte{'l', 0, data + 1})
			c.must(b.Commit(true))
		},
		"the state is gone": func(c *cluster, n *node) {
			b := kv.NewBatch(n.store)
			b.DeleteRange([]byte{0}, []byte{255})
			c.must(b.Commit(true))
		},
		"the state is that of another node": func(c *cluster, n *node) {
			rewrite(c, n, func(a *machine.Applied) { a.Node = 9 })
		},
		"the state is older than the journal": func(c *cluster, n *node) {
			rewrite(c, n, func(a *machine.Applied) { a.Index = 0 })
		},
		"the state is of another term": func(c *cluster, n *node) {
			rewrite(c, n, func(a *machine.Applied) { a.Term++ })
		},
		"the node has another id": func(c *cluster, n *node) { n.id = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1)
			n := c.nodes[1]
			c.write("a")
			c.settled()
			n.close()
			var err error
			n.store, err = kv.Open("db", kv.Options{FS: n.fs, NoSync: true, CacheBytes: 1 << 20})
			c.must(err)
			n.journal, err = kv.Open("journal", kv.Options{FS: n.fs, CacheBytes: 1 << 20})
			c.must(err)
			spoil(c, n)
			c.must(errors.Join(n.store.Close(), n.journal.Close()))
			for range 2 { // and nothing was changed by the first attempt
				is(t, n.open(), fault.RecoveryRequired, "stores_apart")
			}
		})
	}
}

func rewrite(c *cluster, n *node, change func(*machine.Applied)) {
	tx := n.store.NewTx()
	defer tx.Close()
	at, ok, err := machine.StoredApplied(tx, data)
	if err != nil || !ok {
		c.t.Fatal(ok, err)
	}
	change(&at)
	tx.Begin()
	machine.PutApplied(tx, data, &at)
	pending, err := tx.Commit()
	c.must(err)
	c.must(pending.Wait())
}

func TestANodeWithoutAnIDDoesNotOpen(t *testing.T) {
	c := newCluster(t, 1)
	n := c.nodes[1]
	n.close()
	n.id = 0
	is(t, n.open(), fault.Validation, "node_id")
}

// A store that ran alone becomes a cluster with what it holds, and a power loss at any
// moment of that leaves it able to go on.
func TestAStoreThatRanAloneBecomesTheFirstNode(t *testing.T) {
	c := newCluster(t, 1)
	n := c.nodes[1]
	c.write("alone")
	st := n.log.Status(data)
	tx := n.store.NewTx()
	tx.Begin()
	for shard := range uint16(2) {
		machine.ForgetApplied(tx, shard)
	}
	_, err := tx.Commit()
	c.must(errors.Join(err, kv.Sync(n.store)))
	n.close()
	c.must(n.mem.RemoveAll("journal"))
	for range 3 {
		c.must(n.open())
		c.leading()
		if got, err := n.documents(); err != nil || len(got) != 1 {
			t.Fatalf("there are %v, %v", got, err)
		}
		if now := n.log.Status(data); now.Term <= st.Epoch || now.Digest != st.Digest {
			t.Errorf("it was in epoch %d, and leads in term %d; digests %x and %x", st.Epoch, now.Term, st.Digest, now.Digest)
		}
		c.lose(n)
	}
	c.must(n.open())
}
