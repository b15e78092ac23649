package peer_test

import (
	"io"
	"testing"
	"time"

	"github.com/keyload/keyload/internal/peer"
)

func FuzzNothingThatANodeSendsDoesMoreThanEndItsConnection(f *testing.F) {
	for _, use := range []byte{1, 2, 3} {
		f.Add(use, []byte{})
		f.Add(use, []byte{0, 0, 0, 5, 5, 0, 0, 0, 0})
		f.Add(use, []byte{0, 0, 0, 10, 1, 0, 0, 0, 1, 7, 0, 0, 0, 0})
		f.Add(use, []byte{0, 0, 0, 6, 34, 0, 0, 0, 1, 7})
		f.Add(use, []byte{0, 0, 0, 5, 35, 0, 0, 0, 1, 0, 0, 0, 6, 36, 0, 0, 0, 0, 9, 0, 0, 0, 5, 37, 0, 0, 0, 0})
		f.Add(use, []byte{255, 255, 255, 255, 36, 0, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, use byte, sent []byte) {
		b := newBed(t)
		one := b.start(1, func(o *peer.Options) { o.Bounds.MessageBytes, o.Bounds.CallBytes = 1_000, 1_000 })
		one.call, one.snapshot = echo, whole
		conn := raw(t, b, one)
		if a := greet(t, conn, greeting{Version: 1, Use: use%3 + 1, Node: 2}); a.Refusal != "" {
			t.Fatal(a.Refusal)
		}
		_, _ = conn.Write(sent) // the other side may have ended it
		if tcp, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = tcp.CloseWrite()
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
			t.Error("the connection was kept after its end")
		}
		for len(one.messages) > 0 {
			if m := one.next(t); m.from != 2 || len(m.body) > 1_000 {
				t.Errorf("%d bytes of node %d came", len(m.body), m.from)
			}
		}
		_ = conn.Close()
		two := b.start(2, nil) // it still serves
		two.Set(1, one.Addr())
		talks(t, two, one)
	})
}
