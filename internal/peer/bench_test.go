package peer_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/keyload/keyload/internal/cluster"
	"github.com/keyload/keyload/internal/peer"
)

// benched are two nodes on the machine's own network.
func benched(b *testing.B, change func(*peer.Options)) (one, two *peer.Mesh) {
	b.Helper()
	dir := b.TempDir()
	authority, err := cluster.MakeAuthority(dir, "bench", time.Now())
	if err != nil {
		b.Fatal(err)
	}
	open := func(node uint64) *peer.Mesh {
		made, err := authority.Issue(dir, node, time.Now())
		if err != nil {
			b.Fatal(err)
		}
		s := cluster.Settings{CAFile: dir + "/" + cluster.CAFile, CertFile: made.CertFile, KeyFile: made.KeyFile}
		o := peer.Options{
			Cluster: "bench", Node: node, Listen: "127.0.0.1:0", Credentials: s.Credentials(), Log: slog.New(slog.DiscardHandler),
			Dial: func(ctx context.Context, address string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", address)
			},
		}
		if change != nil {
			change(&o)
		}
		m, err := peer.Open(o)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = m.Close() })
		return m
	}
	one, two = open(1), open(2)
	one.Set(2, two.Addr())
	two.Set(1, one.Addr())
	return one, two
}

func BenchmarkCalls(b *testing.B) {
	for _, links := range []int{1, 2, 4} {
		for _, callers := range []int{1, 64, 512} {
			b.Run(fmt.Sprintf("links=%d/callers=%d", links, callers), func(b *testing.B) {
				one, two := benched(b, func(o *peer.Options) { o.Bounds.CallLinks = links })
				two.Attach(nil, func(_ context.Context, _ uint64, _ byte, body []byte) ([]byte, error) { return body[:100], nil })
				body := make([]byte, 300)
				jobs := make(chan struct{})
				done := make(chan error, callers)
				for range callers {
					go func() {
						var err error
						for range jobs {
							if _, callErr := one.Call(context.Background(), 2, 1, body); callErr != nil {
								err = callErr
							}
						}
						done <- err
					}()
				}
				for b.Loop() {
					jobs <- struct{}{}
				}
				close(jobs)
				for range callers {
					if err := <-done; err != nil {
						b.Error(err)
					}
				}
			})
		}
	}
}

// counting counts what comes.
type counting struct{ n chan struct{} }

func (c counting) Receive(uint64, uint16, []byte) { c.n <- struct{}{} }
func (c counting) Unreachable(uint64)             {}
func (c counting) ReceiveSnapshot(_ context.Context, _ uint64, _ uint16, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

func BenchmarkMessages(b *testing.B) {
	for _, size := range []int{100, 10_000, 1 << 20} {
		b.Run(fmt.Sprint("bytes=", size), func(b *testing.B) {
			one, two := benched(b, nil)
			got := counting{make(chan struct{}, 1<<20)}
			two.Attach(got, nil)
			for one.Status()[0].Connected == false {
				one.Send(2, 1, nil)
				select {
				case <-got.n:
				case <-time.After(time.Millisecond):
				}
			}
			b.SetBytes(int64(size))
			waiting := 0
			for b.Loop() {
				one.Send(2, 1, make([]byte, size))
				if waiting++; waiting > 30 {
					<-got.n
				}
			}
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	one, two := benched(b, nil)
	two.Attach(counting{}, nil)
	body := content(64 << 20)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if err := one.SendSnapshot(context.Background(), 2, 1, bytes.NewReader(body)); err != nil {
			b.Fatal(err)
		}
	}
}
