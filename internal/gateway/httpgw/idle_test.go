package httpgw_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/frame"
	"github.com/keyload/keyload/internal/gateway/httpgw"
	"github.com/keyload/keyload/internal/wire"
)

func TestASessionOfASilentClientEndsAndOneThatPingsGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := httpgw.New(httpgw.Options{})
		check(t, err)
		near, far := net.Pipe()
		ended := make(chan struct{})
		go func() { g.ServeSession(far, "kl_a_b"); close(ended) }()
		p := &peer{t, near, bufio.NewReader(near)}
		_, err = http.ReadResponse(p.in, nil)
		check(t, err)
		began := time.Now()
		for range 3 {
			//keyload:sleep the fake clock of this bubble moves on
			time.Sleep(httpgw.IdleTime - time.Second)
			p.write(byte(frame.Ping), 0, nil)
			if kind, _, _, err := p.read(); kind != byte(frame.Pong) || err != nil {
				t.Fatalf("kind %d, %v", kind, err)
			}
		}
		kind, _, body, err := p.read()
		check(t, err)
		f := &fault.Error{}
		check(t, wire.ReadCBOR(body, f))
		if kind != byte(frame.Goodbye) || f.Reason != "session_idle" {
			t.Errorf("kind %d %v", kind, f)
		}
		if got, want := time.Since(began), 4*httpgw.IdleTime-3*time.Second; got != want {
			t.Errorf("ended after %v, want %v", got, want)
		}
		if _, _, _, err := p.read(); !errors.Is(err, io.EOF) {
			t.Errorf("%v", err)
		}
		<-ended
		check(t, near.Close())
	})
}
