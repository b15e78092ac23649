package httpgw_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/gateway/httpgw"
)

func TestTheServersOwnPagesNeedNoKey(t *testing.T) {
	b := newBed(t)
	for path, want := range map[string]string{
		"/livez": `{"live":true}`, "/readyz": `{"ready":true}`, "/metrics": "keyload_requests_total",
		"/openapi.json": `"openapi": "3.1`, "/docs": "<!doctype html>",
	} {
		a := b.send(http.MethodGet, path, nil, "Authorization", "")
		if a.status != 200 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d %.100s", path, a.status, a.body)
		}
		if a := b.send(http.MethodHead, path, nil); a.status != 200 || len(a.body) != 0 {
			t.Errorf("HEAD %s: %d", path, a.status)
		}
		if a := b.post(path, ""); a.status != 405 || a.header.Get("Allow") != "GET" {
			t.Errorf("POST %s: %d %v", path, a.status, a.header)
		}
	}
}

func TestTheDocumentsNeedNothingFromElsewhere(t *testing.T) {
	b := newBed(t)
	page := string(b.send(http.MethodGet, "/docs", nil).body)
	for _, bad := range []string{"<script", "src=", "@import", "url(", "<link", "http://", "https://"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, o := range api.Operations() {
		if !strings.Contains(page, `id="`+o.Name+`"`) || !strings.Contains(page, "POST "+o.Path()) {
			t.Errorf("the page does not show %s", o.Name)
		}
	}
}

func TestAServerThatShutsDownIsNotReady(t *testing.T) {
	b := newBed(t)
	g, err := httpgw.New(httpgw.Options{Door: b.db.Engine()})
	check(t, err)
	s, err := httpgw.Listen(g, httpgw.ListenOptions{Addr: "127.0.0.1:0"})
	check(t, err)
	check(t, s.Shutdown(t.Context()))
	w := record(g, http.MethodGet, "/readyz")
	if w.status != 503 || w.problem(t).Reason != "shutting_down" {
		t.Errorf("%d %s", w.status, w.body)
	}
	if w := record(g, http.MethodGet, "/livez"); w.status != 200 {
		t.Errorf("%d", w.status)
	}
}

func TestOnlyLoopbackIsListenedOnWithoutTLSUnlessToldOtherwise(t *testing.T) {
	g, err := httpgw.New(httpgw.Options{})
	check(t, err)
	for _, c := range []struct {
		o  httpgw.ListenOptions
		ok bool
	}{
		{httpgw.ListenOptions{Addr: "127.0.0.1:0"}, true},
		{httpgw.ListenOptions{Addr: "localhost:0"}, true},
		{httpgw.ListenOptions{Addr: "127.8.8.8:0"}, true},
		{httpgw.ListenOptions{Addr: ":0"}, false},
		{httpgw.ListenOptions{Addr: "0.0.0.0:0"}, false},
		{httpgw.ListenOptions{Addr: "[::]:0"}, false},
		{httpgw.ListenOptions{Addr: ":0", AllowInsecure: true}, true},
		{httpgw.ListenOptions{Addr: "nonsense"}, false},
		{httpgw.ListenOptions{Addr: "127.0.0.1:0", CertFile: "missing", KeyFile: "missing"}, false},
	} {
		s, err := httpgw.Listen(g, c.o)
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.o, err)
		}
		if err == nil {
			go func() { _ = s.Serve() }()
			check(t, s.Shutdown(t.Context()))
		}
	}
}

func TestAServerWithACertificateSpeaksTLS(t *testing.T) {
	b := newBed(t)
	cert, key, pool := certificate(t)
	g, err := httpgw.New(httpgw.Options{Door: b.db.Engine()})
	check(t, err)
	s, err := httpgw.Listen(g, httpgw.ListenOptions{Addr: "0.0.0.0:0", CertFile: cert, KeyFile: key})
	check(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL(), "https://"))
	check(t, err)
	for _, protocols := range []string{"HTTP/1.1", "HTTP/2.0"} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: protocols == "HTTP/2.0"}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://127.0.0.1:"+port+"/v1/resources/list", strings.NewReader("{}"))
		check(t, err)
		req.Header.Set("Authorization", "Bearer "+b.key)
		resp, err := (&http.Client{Transport: tr}).Do(req)
		check(t, err)
		check(t, resp.Body.Close())
		if resp.StatusCode != 200 || resp.Proto != protocols {
			t.Errorf("%s %s", resp.Proto, resp.Status)
		}
		tr.CloseIdleConnections()
	}
	check(t, s.Shutdown(t.Context()))
	check(t, <-served)
}

// certificate makes a certificate for 127.0.0.1 and the pool that trusts it.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600))
		return path
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	check(t, err)
	pool.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret), pool
}

func TestALongOperationGivesUpTheServersDeadlines(t *testing.T) {
	var log bytes.Buffer
	b := newBed(t, func(o *httpgw.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	a := b.post("/v1/admin/check", `{"shard":2}`)
	if a.status != http.StatusOK || !strings.Contains(string(a.body), `"shards":3`) || !strings.Contains(string(a.body), `"findings":[]`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if strings.Contains(log.String(), "keeps its deadline") {
		t.Error(log.String())
	}
	if a := b.post("/v1/admin/check", `{"shard":3}`); a.status != http.StatusNotFound {
		t.Errorf("a shard that is not there: %d", a.status)
	}
}
