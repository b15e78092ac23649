package peer_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/cluster"
	"github.com/keyload/keyload/internal/frame"
	"github.com/keyload/keyload/internal/peer"
	"github.com/keyload/keyload/internal/wire"
)

func TestANodeOfAnotherAuthorityClusterOrIDIsRefusedByBothSidesWithAClearLine(t *testing.T) {
	for _, c := range []struct {
		name   string
		maker  func(t *testing.T, b *bed) *bed // whose authority makes the stranger's certificate
		id     uint64
		dialed string // what a node says that expected node 2 there
		called string // what a node says that is called by it; "" if it welcomes it
	}{
		{"authority", func(t *testing.T, _ *bed) *bed { return newBed(t) }, 2,
			"certificate signed by unknown authority", "certificate signed by unknown authority"},
		{"cluster", func(_ *testing.T, b *bed) *bed {
			other := *b.authority
			other.Cluster = "other"
			return &bed{b.t, b.dir, &other, b.network}
		}, 2, "node 2 of cluster other, which is another cluster", "node 2 of cluster other, which is another cluster"},
		{"id", func(_ *testing.T, b *bed) *bed { return b }, 3,
			"node 3 of cluster test, but node 2 is looked for", ""},
		{"own id", func(_ *testing.T, b *bed) *bed { return b }, 1,
			"has the certificate of this node, node 1", "has the certificate of this node, node 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t)
			one := b.start(1, nil)
			maker := c.maker(t, b)
			stranger := maker.start(c.id, func(o *peer.Options) { o.Cluster = maker.authority.Cluster })
			one.Set(2, stranger.Addr())
			until(t, "the one who dials says why not", func() bool { return one.log.holds(c.dialed) })
			until(t, "the one who is dialed hears that", func() bool { return stranger.log.holds("does not accept this node") })
			one.Send(2, 1, []byte("x"))
			one.told(t, 2)
			// The stranger itself checks nothing.
			conn := connect(t, maker.settings(c.id), one)
			if c.called == "" {
				return
			}
			if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
				t.Errorf("it was not refused: %v", err)
			}
			until(t, "the one who is dialed says why not", func() bool {
				return strings.Count(one.log.text(), c.called) > 1 && one.log.holds("a connection was refused")
			})
			if len(stranger.messages) > 0 || len(one.messages) > 0 {
				t.Error("a message went through")
			}
		})
	}
}

func TestWhoHasNoCertificateIsRefused(t *testing.T) {
	one := newBed(t).start(1, nil)
	conn := connect(t, cluster.Settings{}, one)
	if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("it was not refused: %v", err)
	}
	until(t, "the log says so", func() bool { return one.log.holds("didn't provide a certificate") })
}

func TestANodeWithUnusableCredentialsDoesNotStartAndSaysWhy(t *testing.T) {
	b := newBed(t)
	past, err := cluster.MakeAuthority(t.TempDir(), "test", time.Now().Add(-cluster.NodeLife-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(s *cluster.Settings)
		want   string
	}{
		{"other id", func(s *cluster.Settings) { s.Node = 9 }, "that of node 1 of cluster test, but this is node 9"},
		{"other cluster", func(s *cluster.Settings) { s.Cluster = "prod" }, "that of node 1 of cluster test, but this is node 1 of cluster prod"},
		{"other authority", func(s *cluster.Settings) { s.CAFile = newBed(t).dir + "/ca.pem" }, "unknown authority"},
		{"no authority", func(s *cluster.Settings) { s.CAFile = s.KeyFile }, "holds no certificate"},
		{"no file", func(s *cluster.Settings) { s.KeyFile += "x" }, "no such file"},
		{"expired", func(s *cluster.Settings) {
			made, err := past.Issue(t.TempDir(), 1, time.Now().Add(-cluster.NodeLife-time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			s.CertFile, s.KeyFile = made.CertFile, made.KeyFile
		}, "expired"},
	} {
		s := b.settings(1)
		c.change(&s)
		o := b.options(1)
		o.Cluster, o.Node, o.Credentials = s.Cluster, s.Node, s.Credentials()
		o.Log = discard()
		_, err := peer.Open(o)
		if f := fault.From(err); f == nil || f.Code != fault.Validation || !strings.Contains(f.Detail, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestACertificateThatExpiresSoonIsComplainedOfAtTheStart(t *testing.T) {
	for _, left := range []time.Duration{29 * 24 * time.Hour, 31 * 24 * time.Hour} {
		b := newBed(t)
		s := b.settings(1)
		made, err := b.authority.Issue(t.TempDir(), 1, time.Now().Add(left-cluster.NodeLife))
		if err != nil {
			t.Fatal(err)
		}
		s.CertFile, s.KeyFile = made.CertFile, made.KeyFile
		one := b.start(1, func(o *peer.Options) { o.Credentials = s.Credentials() })
		if soon := left < 30*24*time.Hour; one.log.holds("expires soon") != soon || !one.log.holds("listening for other nodes") {
			t.Errorf("%s before its end:\n%s", left, one.log.text())
		}
	}
}

func TestAnAddressInUseIsAConflict(t *testing.T) {
	b := newBed(t)
	one := b.start(1, nil)
	o := b.options(2)
	o.Listen, o.Log = one.Addr(), discard()
	if _, err := peer.Open(o); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("got %v", err)
	}
}

// greeting is what a hello and a welcome hold, by their numbers.
type greeting struct {
	Version uint16 `cbor:"1,keyasint"`
	Use     byte   `cbor:"2,keyasint"`
	Node    uint64 `cbor:"3,keyasint"`
	To      uint64 `cbor:"4,keyasint"`
	Address string `cbor:"5,keyasint"`
	Extra   string `cbor:"99,keyasint,omitempty"` // of a version to come
}

type answer struct {
	Version uint16 `cbor:"1,keyasint"`
	Address string `cbor:"2,keyasint"`
	Refusal string `cbor:"3,keyasint"`
}

// connect connects with a certificate and believes whoever answers.
func connect(t *testing.T, as cluster.Settings, to *member) net.Conn {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"keyload-peer"}}
	if as.CertFile != "" {
		own, err := as.Credentials()()
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{own.Certificate}
	}
	conn, err := tls.Dial("tcp", to.Addr(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// raw connects as node 2, which says what the test wants.
func raw(t *testing.T, b *bed, to *member) net.Conn {
	t.Helper()
	return connect(t, b.settings(2), to)
}

// say writes a frame. The other side may end the connection at any part of it.
func say(t *testing.T, conn net.Conn, kind frame.Kind, body []byte) {
	t.Helper()
	_, _ = conn.Write(frame.Header{Kind: kind}.Append(nil, nil, body))
}

// greet says hello and hears the answer.
func greet(t *testing.T, conn net.Conn, g greeting) answer {
	t.Helper()
	b, err := wire.EncodeCBOR(g)
	if err != nil {
		t.Fatal(err)
	}
	say(t, conn, 32, b)
	var head [9]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:])-5)
	if _, err := io.ReadFull(conn, body); err != nil || head[4] != 33 {
		t.Fatalf("kind %d, %v", head[4], err)
	}
	var a answer
	if err := wire.ReadCBOR(body, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAHelloIsAnsweredWithAWelcomeOrWithWhyNot(t *testing.T) {
	b := newBed(t)
	one := b.start(1, nil)
	for _, c := range []struct {
		name string
		g    greeting
		why  string
	}{
		{"welcome", greeting{Version: 1, Use: 1, Node: 2, To: 1}, ""},
		{"to anybody", greeting{Version: 1, Use: 3, Node: 2}, ""},
		{"from a later version", greeting{Version: 2, Use: 1, Node: 2, To: 1, Extra: "more"}, ""},
		{"from before the first version", greeting{Version: 0, Use: 1, Node: 2, To: 1}, "upgrade it"},
		{"another id than that of the certificate", greeting{Version: 1, Use: 1, Node: 3, To: 1}, "says that it is node 3, but its certificate is that of node 2 of cluster test"},
		{"somebody else's address", greeting{Version: 1, Use: 1, Node: 2, To: 4}, "looks for node 4, but this is node 1"},
		{"an unknown use", greeting{Version: 1, Use: 9, Node: 2, To: 1}, "use 9"},
	} {
		got := greet(t, raw(t, b, one), c.g)
		if (got.Refusal == "") != (c.why == "") || !strings.Contains(got.Refusal, c.why) {
			t.Errorf("%s: %+v", c.name, got)
		}
		if got.Refusal == "" && (got.Version != 1 || got.Address != one.Addr()) {
			t.Errorf("%s: %+v", c.name, got)
		}
		if c.why != "" && !one.log.holds(c.why) {
			t.Errorf("%s: the log does not say so", c.name)
		}
	}
}

func TestWhoDoesNotSpeakTheProtocolLosesTheConnection(t *testing.T) {
	b := newBed(t)
	one := b.start(1, func(o *peer.Options) { o.Bounds.MessageBytes, o.Bounds.CallBytes = 200_000, 1_000 })
	hello := greeting{Version: 1, Use: 1, Node: 2, To: 1}
	for _, c := range []struct {
		name string
		do   func(conn net.Conn)
	}{
		{"no greeting", func(conn net.Conn) { say(t, conn, 34, []byte("a message")) }},
		{"a greeting that is not CBOR", func(conn net.Conn) { say(t, conn, 32, []byte("hello")) }},
		{"a greeting above its bound", func(conn net.Conn) { say(t, conn, 32, make([]byte, 4<<10+1)) }},
		{"an unknown frame", func(conn net.Conn) { greet(t, conn, hello); say(t, conn, 99, nil) }},
		{"a message above its bound", func(conn net.Conn) { greet(t, conn, hello); say(t, conn, 34, make([]byte, 200_001)) }},
		{"a length of 4 GiB", func(conn net.Conn) {
			greet(t, conn, hello)
			if _, err := conn.Write([]byte{255, 255, 255, 255, 34, 0, 0, 0, 1}); err != nil {
				t.Fatal(err)
			}
		}},
		{"a call on a connection for messages", func(conn net.Conn) { greet(t, conn, hello); say(t, conn, frame.Call, make([]byte, 9)) }},
		{"a call above its bound", func(conn net.Conn) {
			greet(t, conn, greeting{Version: 1, Use: 3, Node: 2})
			say(t, conn, frame.Call, make([]byte, 5+1_001))
		}},
		{"a call without a head", func(conn net.Conn) {
			greet(t, conn, greeting{Version: 1, Use: 3, Node: 2})
			say(t, conn, frame.Call, make([]byte, 4))
		}},
		{"a stream without a beginning", func(conn net.Conn) {
			greet(t, conn, greeting{Version: 1, Use: 2, Node: 2})
			say(t, conn, 36, []byte("x"))
		}},
	} {
		conn := raw(t, b, one)
		c.do(conn)
		if _, err := io.Copy(io.Discard, conn); err == io.EOF || isTimeout(err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if len(one.messages) > 0 {
		t.Error("a message was taken")
	}
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

func TestWhoConnectsAndSaysNothingIsDropped(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	one := b.start(1, impatient)
	silent, err := new(net.Dialer).DialContext(context.Background(), "tcp", one.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, conn := range []net.Conn{silent, raw(t, b, one)} {
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
			t.Errorf("the connection was kept: %v", err)
		}
	}
	// A greeting alone is not enough either.
	conn := raw(t, b, one)
	if a := greet(t, conn, greeting{Version: 1, Use: 1, Node: 2}); a.Refusal != "" {
		t.Fatal(a.Refusal)
	}
	if _, err := io.Copy(io.Discard, conn); isTimeout(err) { // it pings until it gives up
		t.Errorf("a peer without a sign of life was kept: %v", err)
	}
}

func TestANewCertificateIsUsedWithoutAStart(t *testing.T) {
	b := newBed(t)
	one := b.start(1, nil)
	two := b.settings(2)
	o := b.options(2)
	served := make(chan struct{}, 100)
	credentials := two.Credentials()
	o.Credentials = func() (peer.Credentials, error) {
		select {
		case served <- struct{}{}:
		default:
		}
		return credentials()
	}
	m := b.start(2, func(p *peer.Options) { p.Credentials = o.Credentials })
	for len(served) > 0 {
		<-served
	}
	m.Set(1, one.Addr())
	talks(t, m, one)
	if len(served) == 0 {
		t.Error("the credentials were not asked for at the handshake")
	}
}
