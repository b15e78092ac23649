package network

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a connection from a to b.
func pair(t *testing.T, n *Network) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n.Name(l.Addr().String(), "b")
	if a, err = n.Dialer("a")(t.Context(), l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(); _ = b.Close(); n.Close() })
	return a, b
}

func arrives(t *testing.T, from, to net.Conn, within time.Duration) error {
	t.Helper()
	_ = to.SetReadDeadline(time.Now().Add(within))
	go func() { _, _ = from.Write([]byte("x")) }() // may wait at a cut
	var one [1]byte
	_, err := to.Read(one[:])
	return err
}

func TestACutHoldsOneDirectionBackUntilItIsMended(t *testing.T) {
	n := New()
	a, b := pair(t, n)
	for _, c := range []struct {
		cut, other    [2]string
		from, to      net.Conn
		fromO, toO    net.Conn
		before, after error
	}{
		{[2]string{"a", "b"}, [2]string{"b", "a"}, a, b, b, a, os.ErrDeadlineExceeded, nil},
		{[2]string{"b", "a"}, [2]string{"a", "b"}, b, a, a, b, os.ErrDeadlineExceeded, nil},
	} {
		n.Cut(c.cut[0], c.cut[1])
		if err := arrives(t, c.from, c.to, 30*time.Millisecond); !errors.Is(err, c.before) {
			t.Errorf("%v is cut: %v", c.cut, err)
		}
		if err := arrives(t, c.fromO, c.toO, 10*time.Second); err != nil {
			t.Errorf("%v is cut, the other way: %v", c.cut, err)
		}
		n.Mend(c.cut[0], c.cut[1])
		_ = c.to.SetReadDeadline(time.Now().Add(10 * time.Second))
		var one [1]byte
		if _, err := c.to.Read(one[:]); err != nil {
			t.Errorf("%v is mended: %v", c.cut, err)
		}
	}
}

func TestTheEndOfAConnectionWaitsAtACutToo(t *testing.T) {
	n := New()
	a, b := pair(t, n)
	n.Cut("a", "b")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after the end: %v", err)
	}
	_ = b.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("b heard %v through a cut", err)
	}
	n.Mend("a", "b")
	_ = b.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := b.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("b heard %v after the mend", err)
	}
}

func TestADelayMakesBytesLateAndBreakEndsConnections(t *testing.T) {
	n := New()
	a, b := pair(t, n)
	n.Delay("a", "b", 30*time.Millisecond)
	began := time.Now()
	if err := arrives(t, a, b, 10*time.Second); err != nil || time.Since(began) < 30*time.Millisecond {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	n.Break("b", "a")
	_ = b.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := b.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the break: %v", err)
	}
}
