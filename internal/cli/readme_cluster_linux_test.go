package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEveryCommandOfTheClusterDocumentWorks runs a real cluster as docs/cluster.md
// prints it: what is another host there is another loopback address here. (Only Linux
// answers on all of them, and lets a variable say which authorities callers trust.)
func TestEveryCommandOfTheClusterDocumentWorks(t *testing.T) {
	script := scriptOf(t, "docs/cluster.md")
	network, ports := freeHosts(t, 11)
	script = strings.ReplaceAll(script, "10.0.0.", network)
	for printed, free := range ports {
		script = strings.ReplaceAll(script, printed, free)
	}
	dir := t.TempDir()
	certify(t, dir, network)
	authority := filepath.Join(dir, "tls.pem")
	if out, err := runShellIn(t, dir, script, "SSL_CERT_FILE="+authority, "CURL_CA_BUNDLE="+authority); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// freeHosts is the beginning of loopback addresses, to be ended with a number from 1 to
// the last one, and for each port of the document one that is free on all of them. What
// is connected from elsewhere comes from 127.0.0.1 and takes none of these.
func freeHosts(t *testing.T, last int) (network string, ports map[string]string) {
	t.Helper()
	network = fmt.Sprintf("127.%d.%d.", 1+os.Getpid()/250%250, 1+os.Getpid()%250)
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close() // nothing was accepted
		}
	}()
	listen := func(host int, port string) string {
		l, err := net.Listen("tcp", fmt.Sprintf("%s%d%s", network, host, port))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, l)
		_, port, _ = net.SplitHostPort(l.Addr().String())
		return ":" + port
	}
	ports = map[string]string{}
	for _, printed := range []string{":7600", ":7700"} {
		ports[printed] = listen(1, ":0")
		for host := 2; host <= last; host++ {
			listen(host, ports[printed])
		}
	}
	return network, ports
}

// certify makes tls.pem and tls.key, a certificate that stands for itself and for every
// host of the network.
func certify(t *testing.T, dir, network string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hosts"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for host := range 12 {
		c.IPAddresses = append(c.IPAddresses, net.ParseIP(fmt.Sprint(network, host)))
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tls.pem": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
