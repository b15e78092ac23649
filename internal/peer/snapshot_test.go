package peer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/keyload/keyload/internal/peer"
)

// content is bytes that say where they stand.
func content(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

func TestASnapshotOfAnySizeArrivesWhole(t *testing.T) {
	t.Parallel()
	one, two := newBed(t).pair(nil)
	type arrived struct {
		from  uint64
		shard uint16
		sum   [32]byte
		n     int
	}
	got := make(chan arrived, 1)
	two.snapshot = func(_ context.Context, from uint64, shard uint16, r io.Reader) error {
		b, err := io.ReadAll(iotest.HalfReader(r))
		got <- arrived{from, shard, sha256.Sum256(b), len(b)}
		return err
	}
	const chunk = 128 << 10
	for i, size := range []int{0, 1, chunk - 1, chunk, chunk + 1, 20 << 20} {
		sent := content(size)
		if err := one.SendSnapshot(t.Context(), 2, uint16(i), iotest.HalfReader(bytes.NewReader(sent))); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if a := <-got; a != (arrived{1, uint16(i), sha256.Sum256(sent), size}) {
			t.Errorf("%d bytes: %d came", size, a.n)
		}
	}
}

func TestASnapshotThatCannotBeReadNeverEndsAtItsReceiver(t *testing.T) {
	one, two := newBed(t).pair(nil)
	begun, ended := make(chan struct{}, 1), make(chan error, 1)
	two.snapshot = func(_ context.Context, _ uint64, _ uint16, r io.Reader) error {
		begun <- struct{}{}
		_, err := io.Copy(io.Discard, r)
		ended <- err
		return err
	}
	broken := errors.New("the disk is gone")
	for _, fail := range []error{broken, io.ErrUnexpectedEOF} {
		r := io.MultiReader(bytes.NewReader(content(300_000)), readerFunc(func([]byte) (int, error) {
			<-begun
			return 0, fail
		}))
		if err := one.SendSnapshot(t.Context(), 2, 1, r); !errors.Is(err, fail) {
			t.Errorf("got %v, want %v", err, fail)
		}
		if err := <-ended; err == nil {
			t.Error("the receiver took a part for the whole")
		}
	}
}

func TestTheSenderLearnsWhyTheReceiverRefused(t *testing.T) {
	one, two := newBed(t).pair(nil)
	for _, c := range []struct {
		name    string
		receive func(r io.Reader) error
		size    int
		want    string
	}{
		{"at once", func(io.Reader) error { return errors.New("no room here") }, 30 << 20, "no room here"},
		{"at the end", func(r io.Reader) error {
			_, _ = io.Copy(io.Discard, r)
			return errors.New("wrong checksum")
		}, 1_000_000, "wrong checksum"},
		{"says that it is well, but has not read all", func(r io.Reader) error {
			_, err := r.Read(make([]byte, 10))
			return err
		}, 30 << 20, "did not read the stream to its end"},
		{"reads all but the end", func(r io.Reader) error {
			_, err := io.ReadFull(r, make([]byte, 1_000))
			return err
		}, 1_000, ""},
	} {
		two.snapshot = func(_ context.Context, _ uint64, _ uint16, r io.Reader) error { return c.receive(r) }
		err := one.SendSnapshot(t.Context(), 2, 1, bytes.NewReader(content(c.size)))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	two.Attach(nil, nil)
	if err := one.SendSnapshot(t.Context(), 2, 1, bytes.NewReader(nil)); err == nil || !strings.Contains(err.Error(), "not ready") {
		t.Errorf("without a receiver: %v", err)
	}
}

func TestASnapshotEndsWithItsContextWithTheReceiverAndWithTheNode(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	one, two := b.pair(impatient)
	begun := make(chan struct{}, 1)
	ended := make(chan error, 1)
	two.snapshot = func(ctx context.Context, _ uint64, _ uint16, r io.Reader) error {
		begun <- struct{}{}
		_, err := io.Copy(io.Discard, r)
		ended <- err
		return err
	}
	for _, c := range []struct {
		name string
		end  func(cancel context.CancelFunc)
	}{
		{"cancelled", func(cancel context.CancelFunc) { cancel() }},
		{"cut off", func(context.CancelFunc) { b.network.Cut("node1", "node2") }},
		{"removed", func(context.CancelFunc) { one.Remove(2) }},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		sent := make(chan error, 1)
		go func() { sent <- one.SendSnapshot(ctx, 2, 1, endless{}) }()
		<-begun
		c.end(cancel)
		if err := <-sent; err == nil {
			t.Errorf("%s: the sender thinks that it arrived", c.name)
		}
		if err := <-ended; err == nil {
			t.Errorf("%s: the receiver thinks that it was whole", c.name)
		}
		cancel()
		b.network.Mend("node1", "node2")
		if c.name != "removed" {
			talks(t, one, two)
		}
	}
}

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// whole reads a stream to its end.
func whole(_ context.Context, _ uint64, _ uint16, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// endless is a stream without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestAReceiverThatTakesLongIsWaitedFor(t *testing.T) {
	t.Parallel()
	one, two := newBed(t).pair(impatient)
	two.snapshot = func(_ context.Context, _ uint64, _ uint16, r io.Reader) error {
		if _, err := r.Read(make([]byte, 1)); err != nil {
			return err
		}
		t := time.NewTimer(3 * time.Second) // three times as long as a dead one may be silent
		defer t.Stop()
		<-t.C
		_, err := io.Copy(io.Discard, r)
		return err
	}
	if err := one.SendSnapshot(t.Context(), 2, 1, bytes.NewReader(content(5<<20))); err != nil {
		t.Error(err)
	}
}

func TestASnapshotOfWhichNothingMovesIsGivenUp(t *testing.T) {
	t.Parallel()
	one, two := newBed(t).pair(func(o *peer.Options) { o.Times.StallAfter = 500 * time.Millisecond })
	two.snapshot = func(ctx context.Context, _ uint64, _ uint16, r io.Reader) error {
		if _, err := r.Read(make([]byte, 1)); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
	for _, size := range []int{10, 60 << 20} { // while its receiver works on it, and while it is sent
		err := one.SendSnapshot(t.Context(), 2, 1, bytes.NewReader(content(size)))
		if err == nil || !strings.Contains(err.Error(), "has moved for too long") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestOnlySoManySnapshotsAreSentAndReceivedAtOnce(t *testing.T) {
	b := newBed(t)
	bound := func(n int) func(o *peer.Options) { return func(o *peer.Options) { o.Bounds.Snapshots = n } }
	one, two := b.start(1, bound(3)), b.start(2, bound(2))
	one.Set(2, two.Addr())
	begun, goOn := make(chan struct{}, 4), make(chan struct{})
	two.snapshot = func(_ context.Context, _ uint64, _ uint16, r io.Reader) error {
		begun <- struct{}{}
		<-goOn
		_, err := io.Copy(io.Discard, r)
		return err
	}
	results := make(chan error, 4)
	send := func() { results <- one.SendSnapshot(t.Context(), 2, 1, bytes.NewReader(content(10))) }
	go send()
	go send()
	<-begun
	<-begun
	go send() // one too many for the receiver
	if err := <-results; !is(err, peer.ErrNotSent) || !strings.Contains(err.Error(), "receives 2 snapshots already") {
		t.Errorf("the third: %v", err)
	}
	three := b.start(3, bound(2))
	one.Set(3, three.Addr())
	three.snapshot = two.snapshot
	toThree := func(ctx context.Context) error { return one.SendSnapshot(ctx, 3, 1, bytes.NewReader(nil)) }
	go func() { results <- toThree(t.Context()) }()
	<-begun // that is three
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := toThree(short); !is(err, peer.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the fourth did not wait: %v", err)
	}
	close(goOn)
	for range 3 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if err := toThree(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestASnapshotIsSentAtItsRateAtMost(t *testing.T) {
	one, two := newBed(t).pair(func(o *peer.Options) { o.Bounds.SnapshotRate = 4 << 20 })
	two.snapshot = func(_ context.Context, _ uint64, _ uint16, r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	began := time.Now()
	if err := one.SendSnapshot(t.Context(), 2, 1, bytes.NewReader(content(1<<20))); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 250*time.Millisecond {
		t.Errorf("1 MiB at 4 MiB/s took %s", took)
	}
}
