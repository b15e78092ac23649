package client_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/internal/gateway/httpgw"
	"github.com/keyload/keyload/internal/kv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a server on a store in memory, with an administrator's key and the
// resources docs, orders, news and jobs.
type bed struct {
	t      testing.TB
	db     *keyload.DB
	key    string
	server *httpgw.Server
	served chan error
	gauges *prometheus.Registry
}

func newBed(t testing.TB, change ...func(*httpgw.Options)) *bed {
	t.Helper()
	store, err := kv.Open("store", kv.Options{FS: vfs.NewMem(), NoSync: true})
	check(t, err)
	db, err := keyload.OpenStore(store, keyload.Options{Shards: 2, Durability: api.DurableProcess})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	b := &bed{t: t, db: db}
	ctx := t.Context()
	for name, kind := range map[string]api.ResourceKind{
		"docs": api.KindCollection, "orders": api.KindStreamSet, "news": api.KindTopic, "jobs": api.KindQueue,
	} {
		_, err := db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: name, Kind: kind})
		check(t, err)
	}
	_, err = db.ConfigurePrincipal(ctx, api.Principal{ID: "admin", Administrator: true, PolicyEpoch: 1})
	check(t, err)
	k, err := db.CreateAPIKey(ctx, &api.APIKeysCreateRequest{PrincipalID: "admin"})
	check(t, err)
	b.key = k.APIKey
	b.serve("127.0.0.1:0", change...)
	t.Cleanup(b.shutdown)
	return b
}

// serve starts a server at an address.
func (b *bed) serve(addr string, change ...func(*httpgw.Options)) {
	b.t.Helper()
	b.gauges = prometheus.NewRegistry()
	o := httpgw.Options{Door: b.db.Engine(), Metrics: b.gauges}
	for _, f := range change {
		f(&o)
	}
	g, err := httpgw.New(o)
	check(b.t, err)
	server, err := httpgw.Listen(g, httpgw.ListenOptions{Addr: addr})
	check(b.t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	b.server, b.served = server, served
}

// inFlight is how many requests the server is evaluating.
func (b *bed) inFlight() int {
	families, err := b.gauges.Gather()
	check(b.t, err)
	for _, f := range families {
		if f.GetName() == "keyload_requests_in_flight" {
			return int(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	b.t.Fatal("the server does not count requests in flight")
	return 0
}

func (b *bed) addr() string { return strings.TrimPrefix(b.server.URL(), "http://") }

// shutdown ends the server, once.
func (b *bed) shutdown() {
	if b.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	check(b.t, b.server.Shutdown(ctx))
	check(b.t, <-b.served)
	b.server = nil
}

// client makes a client that is closed before the server.
func (b *bed) client(url string, opts ...client.Option) *client.Client {
	c := client.New(url, b.key, opts...)
	b.t.Cleanup(func() { check(b.t, c.Close()) })
	return c
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// network stands between client and server and loses answers.
type network struct {
	listener net.Listener
	to       string
	accepted atomic.Int64
	lose     atomic.Int64 // answers to lose; each takes its connection with it
	after    atomic.Int64 // chunks of each connection that pass before one is lost
	down     atomic.Bool  // refuses new connections
	downNext atomic.Bool  // goes down with the next answer it loses

	mu    sync.Mutex
	conns []net.Conn
	done  sync.WaitGroup
}

func newNetwork(t testing.TB, to string) *network {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	n := &network{listener: l, to: to}
	n.done.Go(n.accept)
	t.Cleanup(func() { _ = l.Close(); n.cut(); n.done.Wait() })
	return n
}

func (n *network) url() string { return "http://" + n.listener.Addr().String() }

func (n *network) accept() {
	for {
		near, err := n.listener.Accept()
		if err != nil {
			return
		}
		if n.down.Load() {
			_ = near.Close()
			continue
		}
		far, err := net.Dial("tcp", n.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		n.accepted.Add(1)
		n.mu.Lock()
		n.conns = append(n.conns, near, far)
		n.mu.Unlock()
		n.done.Go(func() { n.copy(far, near, false) })
		n.done.Go(func() { n.copy(near, far, true) })
	}
}

// copy moves bytes; an answer that is to be lost closes both sides instead.
func (n *network) copy(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 64<<10)
	for passed := int64(0); ; passed++ {
		k, err := from.Read(b)
		if err != nil {
			return
		}
		if answers && passed >= n.after.Load() && n.lose.Add(-1) >= 0 {
			if n.downNext.Load() {
				n.down.Store(true)
			}
			return
		}
		if _, err := to.Write(b[:k]); err != nil {
			return
		}
	}
}

// cut closes every connection.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		_ = c.Close()
	}
	n.conns = nil
}
