package peer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/peer"
)

func echo(_ context.Context, from uint64, kind byte, body []byte) ([]byte, error) {
	return append([]byte{byte(from), kind}, body...), nil
}

func TestManyCallsInFlightGetEachItsOwnAnswer(t *testing.T) {
	one, two := newBed(t).pair(nil)
	two.call = func(ctx context.Context, from uint64, kind byte, body []byte) ([]byte, error) {
		if binary.BigEndian.Uint32(body)%3 == 0 {
			return nil, fault.New(fault.NotFound, "gone", "number %d", binary.BigEndian.Uint32(body))
		}
		return echo(ctx, from, kind, body)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for j := range 200 {
				n := uint32(i*1_000 + j)
				got, err := one.Call(t.Context(), 2, byte(i), binary.BigEndian.AppendUint32(nil, n))
				if n%3 == 0 {
					if f := fault.From(err); f == nil || f.Code != fault.NotFound || f.Reason != "gone" || errors.Is(err, peer.ErrLost) || errors.Is(err, peer.ErrNotSent) {
						t.Errorf("call %d: %v", n, err)
					}
				} else if want := binary.BigEndian.AppendUint32([]byte{1, byte(i)}, n); err != nil || !bytes.Equal(got, want) {
					t.Errorf("call %d: %x, %v", n, got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestACallAndItsAnswerMayHaveUpToTheirBoundOfBytes(t *testing.T) {
	const bound = 100_000
	one, two := newBed(t).pair(func(o *peer.Options) { o.Bounds.CallBytes = bound })
	var calls atomic.Int32
	two.call = func(_ context.Context, _ uint64, kind byte, body []byte) ([]byte, error) {
		calls.Add(1)
		if kind == 2 {
			return make([]byte, binary.BigEndian.Uint32(body)), nil
		}
		return body, nil
	}
	for _, size := range []uint32{bound - 1, bound, bound + 1} {
		calls.Store(0)
		sent := content(int(size))
		got, err := one.Call(t.Context(), 2, 1, sent)
		switch {
		case size > bound && (!is(err, peer.ErrNotSent) || calls.Load() != 0):
			t.Errorf("a call of %d bytes: %v", size, err)
		case size <= bound && (err != nil || !bytes.Equal(got, sent)):
			t.Errorf("a call of %d bytes: %d came back, %v", size, len(got), err)
		}
		got, err = one.Call(t.Context(), 2, 2, binary.BigEndian.AppendUint32(nil, size))
		switch {
		case size > bound && !is(err, peer.ErrLost):
			t.Errorf("an answer of %d bytes: %v", size, err)
		case size <= bound && (err != nil || len(got) != int(size)):
			t.Errorf("an answer of %d bytes: %d came, %v", size, len(got), err)
		}
	}
	if got, err := one.Call(t.Context(), 2, 3, nil); err != nil || len(got) != 0 {
		t.Errorf("an empty call: %x, %v", got, err)
	}
}

func TestACallerThatLeavesIsToldWhetherTheCallWasSentAndTheHandlerStops(t *testing.T) {
	one, two := newBed(t).pair(nil)
	begun, stopped := make(chan bool, 1), make(chan error, 1)
	two.call = func(ctx context.Context, _ uint64, _ byte, _ []byte) ([]byte, error) {
		_, limited := ctx.Deadline()
		begun <- limited
		<-ctx.Done()
		stopped <- ctx.Err()
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := one.Call(ctx, 2, 1, nil)
		left <- err
	}()
	if <-begun {
		t.Error("a call without a deadline has one at its handler")
	}
	cancel()
	if err := <-left; !is(err, peer.ErrLost) || !errors.Is(err, context.Canceled) {
		t.Errorf("after it was sent: %v", err)
	}
	if err := <-stopped; err != context.Canceled {
		t.Errorf("the handler ended with %v", err)
	}
	if _, err := one.Call(ctx, 2, 1, nil); !is(err, peer.ErrNotSent) || !errors.Is(err, context.Canceled) {
		t.Errorf("before it was sent: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := one.Call(short, 2, 1, nil); !errors.Is(err, peer.ErrLost) {
		t.Errorf("at the deadline: %v", err)
	}
	if !<-begun {
		t.Error("the deadline did not reach the handler")
	}
	<-stopped
}

func TestACallToNobodyWasCertainlyNotSent(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	one := b.start(1, impatient)
	if _, err := one.Call(t.Context(), 2, 1, nil); !is(err, peer.ErrNotSent) {
		t.Errorf("an unknown node: %v", err)
	}
	one.Set(2, "127.0.0.1:1")
	if _, err := one.Call(t.Context(), 2, 1, nil); !is(err, peer.ErrNotSent) {
		t.Errorf("an address where nobody is: %v", err)
	}
	three := b.start(3, nil)
	b.network.Cut("node1", "node3")
	one.Set(3, three.Addr())
	began := time.Now()
	if _, err := one.Call(t.Context(), 3, 1, nil); !is(err, peer.ErrNotSent) || time.Since(began) > patience {
		t.Errorf("a node that cannot be reached: %v after %s", err, time.Since(began))
	}
	three.Attach(nil, nil)
	b.network.Mend("node1", "node3")
	until(t, "it is reached, and says that it is not ready", func() bool {
		_, err := one.Call(t.Context(), 3, 1, nil)
		return is(err, peer.ErrNotSent) && strings.Contains(err.Error(), "does not answer calls yet")
	})
	three.Attach(nil, echo)
	if _, err := one.Call(t.Context(), 3, 1, nil); err != nil {
		t.Error(err)
	}
}

func TestCallsInFlightAreLostWithTheirConnectionAndTheNextOnesGoOn(t *testing.T) {
	b := newBed(t)
	one, two := b.pair(nil)
	begun := make(chan struct{}, 10)
	two.call = func(ctx context.Context, from uint64, kind byte, body []byte) ([]byte, error) {
		if kind == 1 {
			begun <- struct{}{}
			<-ctx.Done() // ends with the connection
			return nil, ctx.Err()
		}
		return echo(ctx, from, kind, body)
	}
	results := make(chan error, 10)
	for range 10 {
		go func() {
			_, err := one.Call(t.Context(), 2, 1, []byte("x"))
			results <- err
		}()
	}
	for range 10 {
		<-begun
	}
	b.network.Break("node1", "node2")
	for range 10 {
		if err := <-results; !is(err, peer.ErrLost) {
			t.Errorf("a call in flight: %v", err)
		}
	}
	if _, err := one.Call(t.Context(), 2, 2, nil); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestACallThroughACutEndsAtItsDeadlineOrWhenTheConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	one, two := b.pair(impatient)
	two.call = echo
	for range 2 {
		if _, err := one.Call(t.Context(), 2, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	b.network.Cut("node1", "node2")
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := one.Call(short, 2, 1, make([]byte, 8<<20)); !errors.Is(err, peer.ErrLost) && !errors.Is(err, peer.ErrNotSent) {
		t.Errorf("at the deadline: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the caller waited %s", took)
	}
	_, err := one.Call(t.Context(), 2, 1, nil)
	if err == nil || errors.Is(err, peer.ErrLost) == errors.Is(err, peer.ErrNotSent) {
		t.Errorf("without a deadline: %v", err)
	}
}

func TestHandlersAreBoundedInNumberAndBytesAndTheRestIsRefusedUndone(t *testing.T) {
	for _, c := range []struct {
		name   string
		bounds func(b *peer.Bounds)
		body   int
		fit    int
	}{
		{"number", func(b *peer.Bounds) { b.CallsServed = 3 }, 1, 3},
		{"bytes", func(b *peer.Bounds) { b.CallsBytes = 2_000 }, 1_000, 2},
		{"bytes, one of them over", func(b *peer.Bounds) { b.CallsBytes = 1_999 }, 1_000, 1},
		{"one larger than the bound", func(b *peer.Bounds) { b.CallsBytes = 999 }, 1_000, 1},
	} {
		one, two := newBed(t).pair(func(o *peer.Options) { o.Bounds.CallLinks = 1; c.bounds(&o.Bounds) })
		begun, goOn := make(chan struct{}, 10), make(chan struct{})
		var handled atomic.Int32
		two.call = func(context.Context, uint64, byte, []byte) ([]byte, error) {
			handled.Add(1)
			begun <- struct{}{}
			<-goOn
			return nil, nil
		}
		results := make(chan error, 10)
		for range c.fit {
			go func() {
				_, err := one.Call(t.Context(), 2, 1, make([]byte, c.body))
				results <- err
			}()
			<-begun
		}
		if _, err := one.Call(t.Context(), 2, 1, make([]byte, c.body)); !is(err, peer.ErrNotSent) || int(handled.Load()) != c.fit {
			t.Errorf("%s: one more: %v, %d handled", c.name, err, handled.Load())
		}
		close(goOn)
		for range c.fit {
			if err := <-results; err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if _, err := one.Call(t.Context(), 2, 1, make([]byte, c.body)); err != nil {
			t.Errorf("%s: when there is room again: %v", c.name, err)
		}
	}
}

func TestAHandlerThatFailsWithoutACodeMayHaveDoneIt(t *testing.T) {
	one, two := newBed(t).pair(nil)
	two.call = func(context.Context, uint64, byte, []byte) ([]byte, error) {
		return nil, errors.New(strings.Repeat("no ", 1_000))
	}
	_, err := one.Call(t.Context(), 2, 1, nil)
	if !is(err, peer.ErrLost) || !strings.Contains(err.Error(), "no no") || len(err.Error()) > 1_300 {
		t.Errorf("%d bytes: %v", len(err.Error()), err)
	}
}

func TestWhoJoinsCallsAnAddressAndLearnsWhoIsThere(t *testing.T) {
	b := newBed(t)
	one, nine := b.start(1, nil), b.start(9, nil)
	one.call = echo
	node, got, err := nine.CallAt(t.Context(), one.Addr(), 5, []byte("let me in"))
	if err != nil || node != 1 || string(got) != "\x09\x05let me in" {
		t.Errorf("node %d: %q, %v", node, got, err)
	}
	talks(t, nine, one) // each learned the other's address
	talks(t, one, nine)
	if _, _, err := nine.CallAt(t.Context(), "127.0.0.1:1", 5, nil); !is(err, peer.ErrNotSent) {
		t.Errorf("nobody there: %v", err)
	}
	one.call = func(ctx context.Context, _ uint64, _ byte, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := nine.CallAt(short, one.Addr(), 5, nil); err == nil || errors.Is(err, peer.ErrLost) == errors.Is(err, peer.ErrNotSent) {
		t.Errorf("at the deadline: %v", err)
	}
}

func TestCloseEndsHandlersAndCallersAndNothingIsTakenAfterIt(t *testing.T) {
	one, two := newBed(t).pair(nil)
	begun := make(chan struct{})
	two.call = func(ctx context.Context, _ uint64, _ byte, _ []byte) ([]byte, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	result := make(chan error, 1)
	go func() {
		_, err := one.Call(t.Context(), 2, 1, nil)
		result <- err
	}()
	<-begun
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !is(err, peer.ErrLost) {
		t.Errorf("the call in flight: %v", err)
	}
	if _, err := one.Call(t.Context(), 2, 1, nil); !is(err, peer.ErrNotSent) {
		t.Errorf("a call after Close: %v", err)
	}
	if _, _, err := one.CallAt(t.Context(), two.Addr(), 1, nil); !is(err, peer.ErrNotSent) {
		t.Errorf("a call to an address after Close: %v", err)
	}
	if err := one.SendSnapshot(t.Context(), 2, 1, bytes.NewReader(nil)); !is(err, peer.ErrNotSent) {
		t.Errorf("a snapshot after Close: %v", err)
	}
	one.Send(2, 1, nil)
	one.Set(3, "127.0.0.1:3")
	one.Remove(2)
	if err := one.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
}
