package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/replica/journal"
)

// retain lets every node keep so few entries.
func (c *cluster) retain(keep retention) {
	c.t.Helper()
	for _, n := range c.nodes {
		if n.log == nil {
			continue
		}
		done := make(chan struct{})
		n.log.host.in.call(func(l *loop) { l.retention = keep; close(done) })
		<-done
	}
}

// begins is the entry after which the log of a node begins.
func (n *node) begins(shard uint16) (index uint64) {
	done := make(chan struct{})
	n.log.host.in.call(func(l *loop) { index, _ = l.groups[shard].log.Truncated(); close(done) })
	<-done
	return index
}

var few = retention{entries: 8, bytes: 1 << 20, farEntries: 400, farBytes: 1 << 30}

func TestANodeThatLacksMoreThanTheLogHasGetsASnapshot(t *testing.T) {
	c := newCluster(t, 3)
	c.lead(c.nodes[1])
	c.retain(few)
	behind := c.nodes[3]
	before := behind.begins(data)
	c.lose(behind)
	for i := range 60 {
		c.write(fmt.Sprint("w", i))
	}
	c.until("that the leader's log is cut off", func() bool { return c.nodes[1].begins(data) > 40 })
	c.must(behind.open())
	c.settled()
	if got := behind.begins(data); got <= before+40 {
		t.Errorf("its log began after %d and begins after %d: that was no snapshot", before, got)
	}
	for range 2 {
		c.lose(behind)
		c.must(behind.open())
		c.write(fmt.Sprint("again", c.drawn.Load()))
		c.settled()
	}
	if names, err := spoolOf(t, behind).Names(); err != nil || len(names) != 0 {
		t.Errorf("files are left: %v, %v", names, err)
	}
}

func spoolOf(t *testing.T, n *node) *kv.Files {
	t.Helper()
	files, err := kv.NewFiles(n.journal, "spool")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestTheLogIsKeptForANodeWithinReachAndNoFurther(t *testing.T) {
	c := newCluster(t, 3)
	c.lead(c.nodes[1])
	far := few
	far.farEntries, far.ticks = 50, 1<<40
	c.retain(far)
	c.settled()
	c.net.isolate(3, 1, 2)
	match := c.nodes[3].log.shards[data].apply.index.Load()
	for i := range 45 {
		c.write(fmt.Sprint("w", i))
	}
	passed := c.nodes[1].chores()
	c.until("chores", func() bool { return c.nodes[1].chores() > passed+2 })
	if got := c.nodes[1].begins(data); got > match {
		t.Errorf("the log begins after %d; node 3 has %d", got, match)
	}
	for i := range 60 {
		c.write(fmt.Sprint("x", i))
	}
	c.until("that it is kept no longer", func() bool { return c.nodes[1].begins(data) > match })
	applied := c.nodes[1].log.shards[data].apply.index.Load()
	if got := c.nodes[1].begins(data); got > applied-50 {
		t.Errorf("the log begins after %d of %d", got, applied)
	}
	c.net.heal()
	c.settled()
}

// chores is how often the node has done its chores.
func (n *node) chores() (times uint64) {
	done := make(chan struct{})
	n.log.host.in.call(func(l *loop) { times = l.ticks / choreTicks; close(done) })
	<-done
	return times
}

// crashes is a disk that keeps a copy of what a power loss would leave, at every sync.
type crashes struct {
	vfs.FS
	c      *cluster
	mem    *vfs.MemFS
	mu     sync.Mutex
	copies []*vfs.MemFS
}

type crashFile struct {
	vfs.File
	c *crashes
}

func (c *crashes) take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.copies = append(c.copies, c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.c.rng.IntN(3) * 50, RNG: c.c.rng}))
}

func (c *crashes) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	return crashFile{f, c}, nil
}

func (f crashFile) Sync() error     { f.c.take(); err := f.File.Sync(); f.c.take(); return err }
func (f crashFile) SyncData() error { f.c.take(); err := f.File.SyncData(); f.c.take(); return err }

// Whenever the power goes while a node gets its first state, it gets there in the end.
func TestAnInstallationThatAPowerLossInterruptsIsDoneAgain(t *testing.T) {
	c := newCluster(t, 2)
	for i := range 6 { // two batches
		cmd := c.large(fmt.Sprint("large", i), 900_000)
		c.until("a large write", func() bool { return c.try(cmd) })
	}
	n := &node{c: c, id: 3, mem: vfs.NewCrashableMem(), led: make(chan uint64, 1000)}
	disk := &crashes{FS: n.mem, c: c, mem: n.mem}
	n.fs = disk
	c.nodes[3] = n
	c.must(n.open())
	c.lead(c.nodes[1])
	for shard := range uint16(2) { // a learner only: its disk is turned back below
		c.change(func(l *Log) error { return l.AddLearner(ctx, shard, 3) }, shard)
	}
	c.settled()
	disk.mu.Lock()
	copies := disk.copies
	disk.mu.Unlock()
	interrupted := 0
	for i, left := range copies {
		if installing(t, left) {
			interrupted++
		} else if i%8 != 0 {
			continue
		}
		n.close()
		n.mem, n.fs = left, left
		// A leader that remembers what the disk had then would rely on it.
		l := c.leading()
		c.lead(l)
		c.lead(c.nodes[3-l.id])
		c.must(n.open())
		c.settled()
	}
	t.Logf("%d moments, %d of them within an installation", len(copies), interrupted)
	if interrupted == 0 {
		t.Error("no installation was interrupted: the test tests nothing")
	}
}

// installing says whether a disk has the marker of an installation.
func installing(t *testing.T, disk *vfs.MemFS) bool {
	t.Helper()
	s, err := kv.Open("journal", kv.Options{FS: disk.CrashClone(vfs.CrashCloneCfg{}), CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	j, err := journal.Open(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	for shard := range uint16(2) {
		if _, ok := j.Shard(shard).Install(); ok {
			return true
		}
	}
	return false
}

// A snapshot whose stream breaks is sent again, and leaves nothing behind.
func TestASnapshotThatBreaksOffIsSentAgain(t *testing.T) {
	c := newCluster(t, 1)
	for i := range 8 {
		cmd := c.large(fmt.Sprint("large", i), 900_000)
		c.until("a large write", func() bool { return c.try(cmd) })
	}
	n := c.add(2, false)
	c.net.sever(1, 2)
	for shard := range uint16(2) {
		c.change(func(l *Log) error { return l.AddLearner(ctx, shard, 2) }, shard)
	}
	for range 5 { // it gets so far, and no further
		c.net.heal()
		pause(3 * time.Millisecond)
		c.net.isolate(2, 1)
		pause(tick)
	}
	c.net.heal()
	c.settled()
	if names, err := spoolOf(t, n).Names(); err != nil || len(names) != 0 {
		t.Errorf("files are left: %v, %v", names, err)
	}
}

// streamed is a snapshot of the data shard for another node.
func streamed(t *testing.T, n *node) (whole []byte, header snapshotHeader) {
	t.Helper()
	s := n.log.shards[data]
	snap, err := s.apply.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	header = snapshotHeader{[16]byte{1}, data, snapshotMessage(1, 2)}
	var out bytes.Buffer
	if err := writeSnapshot(&out, &header, snap, func(int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), header
}

func readAll(b []byte) (rows int, err error) {
	s, err := openSnapshot(bytes.NewReader(b))
	if err != nil {
		return 0, err
	}
	return rows, s.each(func(_, _ []byte) error { rows++; return nil })
}

func TestADamagedSnapshotIsNeverTakenForAWholeOne(t *testing.T) {
	c := newCluster(t, 1)
	c.write("a")
	whole, _ := streamed(t, c.nodes[1])
	rows, err := readAll(whole)
	if err != nil || rows < 5 {
		t.Fatalf("%d rows, %v", rows, err)
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1 << (i % 8)
		if _, err := readAll(b); !errors.Is(err, errSnapshot) {
			t.Fatalf("with byte %d changed: %v", i, err)
		}
		if _, err := readAll(whole[:i]); !errors.Is(err, errSnapshot) {
			t.Fatalf("cut off at %d: %v", i, err)
		}
	}
	if _, err := readAll(append(bytes.Clone(whole), 0)); !errors.Is(err, errSnapshot) {
		t.Errorf("with a byte more: %v", err)
	}
}

func TestASnapshotForSomebodyElseIsRefused(t *testing.T) {
	c := newCluster(t, 1)
	n := c.add(2, false)
	whole, _ := streamed(t, c.nodes[1])
	for name, send := range map[string]func() error{
		"another sender":   func() error { return n.log.ReceiveSnapshot(ctx, 3, data, bytes.NewReader(whole)) },
		"another shard":    func() error { return n.log.ReceiveSnapshot(ctx, 1, 0, bytes.NewReader(whole)) },
		"no shard":         func() error { return n.log.ReceiveSnapshot(ctx, 1, 2, bytes.NewReader(whole)) },
		"another receiver": func() error { return c.nodes[1].log.ReceiveSnapshot(ctx, 1, data, bytes.NewReader(whole)) },
		"no snapshot":      func() error { return n.log.ReceiveSnapshot(ctx, 1, data, strings.NewReader("GET / HTTP/1.1\r\n\r\n")) },
	} {
		if err := send(); !errors.Is(err, errSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := n.log.ReceiveSnapshot(gone, 1, data, bytes.NewReader(whole)); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
	if names, err := spoolOf(t, n).Names(); err != nil || len(names) != 0 {
		t.Errorf("files are left: %v, %v", names, err)
	}
}

func TestANodeReceivesAtMostTwoSnapshotsAtATimeAndOneOfAShard(t *testing.T) {
	var r receiving
	first, ok := r.enter(1)
	if !ok {
		t.Fatal("the first was refused")
	}
	if _, ok := r.enter(1); ok {
		t.Error("a second of the same shard was let in")
	}
	if _, ok := r.enter(2); !ok {
		t.Error("the second was refused")
	}
	if _, ok := r.enter(3); ok {
		t.Error("a third was let in")
	}
	r.leave(1)
	if again, ok := r.enter(1); !ok || again == first {
		t.Errorf("after one had left: %s %v", again, ok)
	}
	c := newCluster(t, 1)
	n := c.add(2, false)
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- n.log.ReceiveSnapshot(ctx, 1, data, reader) }()
	if _, err := writer.Write([]byte(snapshotMagic)); err != nil {
		t.Fatal(err)
	}
	is(t, n.log.ReceiveSnapshot(ctx, 1, data, strings.NewReader("")), fault.ResourceExhausted, "snapshots")
	writer.Close()
	if err := <-done; !errors.Is(err, errSnapshot) {
		t.Errorf("got %v", err)
	}
}

func TestAStreamTakesNoMoreThanItsShareOfASecond(t *testing.T) {
	c := newCluster(t, 1)
	s := c.nodes[1].log.shards[data]
	s.h.cfg.SnapshotBytes = 10 << 20
	begun := time.Now()
	pace := s.pace(ctx)
	for range 8 {
		c.must(pace(256 << 10))
	}
	if took := time.Since(begun); took < 200*time.Millisecond {
		t.Errorf("2 MiB took %v at 10 MiB a second", took)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.pace(gone)(1 << 30); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}
