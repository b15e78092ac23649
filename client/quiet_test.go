package client

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/frame"
)

func TestASilentServerIsAskedOnceAndThenGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		s := newSession(near, near, 10, quietTime)
		began := time.Now()
		asked := make(chan time.Duration, 10)
		answers := 2 // pings that are answered before the silence
		go func() {
			in := bufio.NewReader(far)
			var h [9]byte
			for {
				if _, err := io.ReadFull(in, h[:]); err != nil {
					return
				}
				if _, err := in.Discard(int(binary.BigEndian.Uint32(h[:])) - 5); err != nil {
					return
				}
				if frame.Kind(h[4]) != frame.Ping {
					continue
				}
				asked <- time.Since(began)
				if answers--; answers >= 0 {
					_, _ = far.Write([]byte{0, 0, 0, 5, byte(frame.Pong), 0, 0, 0, 0})
				}
			}
		}()
		r := request{op: api.AdminStatus.Operation, body: []byte{0xa0}}
		err := s.call(context.Background(), r, &api.AdminStatusResponse{})
		if f := fault.From(err); f == nil || f.Code != fault.OwnershipLost || f.Reason != "connection_lost" {
			t.Errorf("%v", err)
		}
		if got := time.Since(began); got != 4*quietTime {
			t.Errorf("given up after %v, want %v", got, 4*quietTime)
		}
		for i := range 3 {
			if got := <-asked; got != time.Duration(i+1)*quietTime {
				t.Errorf("ping %d after %v", i+1, got)
			}
		}
		<-s.done
		_ = far.Close()
	})
}
