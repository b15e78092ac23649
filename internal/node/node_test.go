package node

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
)

// served is a running server.
type served struct {
	url  string
	key  string
	dir  string
	log  *lockedBuffer
	stop func() error // ends it and answers what Serve returned
}

// lockedBuffer is written by the server and read by the test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, change func(*Options)) *served {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	made, err := Init(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &served{key: made.APIKey, dir: dir, log: &lockedBuffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	urls, ended := make(chan string, 1), make(chan error, 1)
	o := Options{
		Dir: dir, Listen: "127.0.0.1:0", Durability: api.DurableDisk,
		Log: slog.New(slog.NewJSONHandler(s.log, nil)), Ready: func(url string) { urls <- url },
	}
	if change != nil {
		change(&o)
	}
	go func() { ended <- Serve(ctx, o) }()
	select {
	case s.url = <-urls:
	case err := <-ended:
		t.Fatal(err)
	}
	s.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = s.stop() }) // tests that care have asked already
	return s
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestAServerAnswersEndsInOrderAndLeavesAStoreThatOpens(t *testing.T) {
	s := start(t, nil)
	c := client.New(s.url, s.key)
	defer c.Close()
	ctx := t.Context()
	if _, err := c.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: "jobs", Kind: api.KindQueue}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Commit(ctx, api.PartitionRef{}, keyload.Enqueue("jobs", keyload.Message(1))); err != nil {
		t.Fatal(err)
	}
	if code, body := get(t, s.url+"/readyz"); code != http.StatusOK {
		t.Errorf("readyz answers %d %s", code, body)
	}
	if err := s.stop(); err != nil {
		t.Fatalf("Serve returned %v", err)
	}
	for _, msg := range []string{`"msg":"serving"`, `"msg":"shutting down"`, `"msg":"stopped"`} {
		if !strings.Contains(s.log.String(), msg) {
			t.Errorf("the log has no %s", msg)
		}
	}
	if strings.Contains(s.log.String(), "kl_") {
		t.Error("the log holds a key")
	}
	db, err := keyload.Open(s.dir, keyload.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	status, err := db.QueueStatus(ctx, keyload.Lane(api.PartitionRef{}, "jobs"))
	if err != nil || status.Counts.Ready != 1 {
		t.Errorf("status is %+v, %v", status, err)
	}
}

func TestAShutdownEndsCallsThatWaitForMessages(t *testing.T) {
	s := start(t, nil)
	c := client.New(s.url, s.key, client.Attempts(1))
	defer c.Close()
	ctx := t.Context()
	if _, err := c.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: "jobs", Kind: api.KindQueue}); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := c.Receive(ctx, &api.QueuesReceiveRequest{Lane: keyload.Lane(api.PartitionRef{}, "jobs"), WaitMillis: 20_000})
		answered <- err
	}()
	began := time.Now()
	if err := s.stop(); err != nil {
		t.Fatalf("Serve returned %v", err)
	}
	if err := <-answered; err == nil {
		t.Error("a receive that waited for nothing succeeded")
	}
	if took := time.Since(began); took > drainTime {
		t.Errorf("the shutdown took %s", took)
	}
}

func TestMetricsCountTheStoreAndNameNoTenant(t *testing.T) {
	s := start(t, nil)
	c := client.New(s.url, s.key)
	defer c.Close()
	if _, err := c.ConfigureResource(t.Context(), &api.ResourcesConfigureRequest{Tenant: "secrettenant", Name: "jobs", Kind: api.KindQueue}); err != nil {
		t.Fatal(err)
	}
	code, body := get(t, s.url+"/metrics")
	if code != http.StatusOK {
		t.Fatalf("metrics answers %d", code)
	}
	for _, want := range []string{
		"\nkeyload_ready 1\n", "\nkeyload_load{what=\"bytes\"} 0\n", "\nkeyload_load{what=\"parked\"} 0\n", "\nkeyload_store_commands_total ", "\nkeyload_store_disk_bytes ",
		"\nkeyload_shard_position{shard=\"0\"} ", "\nkeyload_shard_stopped{shard=\"8\"} 0\n", "\ngo_goroutines ", "keyload_requests_total",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics have no %q", want)
		}
	}
	if strings.Contains(body, "secrettenant") {
		t.Error("metrics name a tenant")
	}
	for _, state := range []api.DispatchState{api.DispatchPaused, api.DispatchRunning} {
		if _, err := api.Call(t.Context(), c, api.AdminDispatch, &api.AdminDispatchRequest{State: state}); err != nil {
			t.Fatal(err)
		}
		want := "\nkeyload_dispatch_paused 0\n"
		if state == api.DispatchPaused {
			want = "\nkeyload_dispatch_paused 1\n"
		}
		if _, body := get(t, s.url+"/metrics"); !strings.Contains(body, want) {
			t.Errorf("when dispatch is %s, metrics have no %q", state, want)
		}
	}
}

func TestAServerSpeaksTLSWithACertificateOnAnyAddress(t *testing.T) {
	cert, key, pool := certificate(t)
	s := start(t, func(o *Options) { o.Listen, o.CertFile, o.KeyFile = "0.0.0.0:0", cert, key })
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("the URL is %s", s.url)
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	c := client.New("https://127.0.0.1:"+port, s.key, client.TLS(&tls.Config{RootCAs: pool}))
	defer c.Close()
	status, err := c.Status(t.Context())
	if err != nil || !status.Ready {
		t.Errorf("status is %+v, %v", status, err)
	}
}

// certificate makes a certificate for 127.0.0.1 that signs itself.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	write := func(name, kind string, b []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret), pool
}

func TestAnAddressInUseIsAConflict(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := Init(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	err = Serve(t.Context(), Options{
		Dir: dir, Listen: l.Addr().String(), Log: slog.New(slog.DiscardHandler),
		Ready: func(string) { t.Error("it says that it is ready") },
	})
	if e := fault.From(err); e == nil || e.Code != fault.Conflict || e.Reason != "address_in_use" {
		t.Errorf("got %v", err)
	}
}

func TestTheFirstKeyIsAnAdministratorsAndEachStoreIsItsOwn(t *testing.T) {
	a, err := Init(t.Context(), filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Init(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if a.Incarnation == b.Incarnation || a.APIKey == b.APIKey {
		t.Error("two stores share an identity")
	}
	db, err := keyload.Open(a.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p, err := db.GetPrincipal(t.Context(), "", Admin)
	if err != nil || !p.Administrator {
		t.Errorf("the principal is %+v, %v", p, err)
	}
}
