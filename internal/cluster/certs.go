package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/peer"
)

const (
	// CAFile and CAKeyFile are the names of an authority's files.
	CAFile    = "ca.pem"
	CAKeyFile = "ca.key"
	// CALife and NodeLife are how long certificates hold.
	CALife   = 10 * 365 * 24 * time.Hour
	NodeLife = 365 * 24 * time.Hour
	// early is how long before now certificates hold already, for clocks that
	// differ.
	early = time.Hour
)

// Authority signs the certificates of the nodes of one cluster. Whoever has its
// key can make himself a node: it belongs on no node.
type Authority struct {
	Cluster string
	Expires time.Time

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Issued is a certificate that was made, and where its files are.
type Issued struct {
	Cluster  string    `json:"cluster"`
	Node     uint64    `json:"node"`
	CertFile string    `json:"certFile"`
	KeyFile  string    `json:"keyFile"`
	Expires  time.Time `json:"expires"`
}

// MakeAuthority makes an authority for a cluster and its files in dir, which is
// made if it is missing. Errors: Validation; Conflict (reason file_exists) when
// there is one already, which is left as it is.
func MakeAuthority(dir, cluster string, now time.Time) (*Authority, error) {
	if !validName(cluster) {
		return nil, refusal("cluster_name", "the name of a cluster must be 1 to %d of a-z, 0-9 and -, and neither begin nor end with -", MaxName)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "keyload cluster " + cluster},
		NotBefore: now.Add(-early), NotAfter: now.Add(CALife),
		URIs: []*url.URL{{Scheme: "keyload", Host: "cluster", Path: "/" + cluster}},
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, refusal("file", "%v", err)
	}
	if err := createPair(filepath.Join(dir, CAFile), filepath.Join(dir, CAKeyFile), der, key); err != nil {
		return nil, err
	}
	return authority(der, key)
}

// LoadAuthority reads the authority in dir. found is false when there is none.
func LoadAuthority(dir string) (a *Authority, found bool, err error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, CAFile), filepath.Join(dir, CAKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		for _, name := range []string{CAFile, CAKeyFile} {
			if _, statErr := os.Stat(filepath.Join(dir, name)); statErr == nil {
				return nil, false, refusal("certificates", "%s has only a part of an authority: %v", dir, err)
			}
		}
		return nil, false, nil
	}
	if err != nil {
		return nil, false, refusal("certificates", "the authority in %s cannot be used: %v", dir, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, false, refusal("certificates", "the authority in %s has a key that is not of the kind made here", dir)
	}
	a, err = authority(pair.Certificate[0], key)
	return a, err == nil, err
}

func authority(der []byte, key *ecdsa.PrivateKey) (*Authority, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, refusal("certificates", "the authority: %v", err)
	}
	for _, u := range cert.URIs {
		if name, ok := strings.CutPrefix(u.String(), "keyload://cluster/"); ok && validName(name) && cert.IsCA {
			return &Authority{Cluster: name, Expires: cert.NotAfter, cert: cert, key: key}, nil
		}
	}
	return nil, refusal("certificates", "the authority's certificate does not say of which cluster it is")
}

// Issue makes the certificate of a node and its files in dir, node-N.pem and
// node-N.key. It ends with the authority's at the latest. Errors as those of
// MakeAuthority.
func (a *Authority) Issue(dir string, node uint64, now time.Time) (Issued, error) {
	if node < 1 || node > MaxNode {
		return Issued{}, refusal("node_id", "a node's id is a number from 1 to %d", MaxNode)
	}
	if !now.Before(a.Expires) {
		return Issued{}, refusal("certificates", "the authority expired at %s; no certificate of it is believed", a.Expires.Format(time.RFC3339))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Issued{}, err
	}
	name := peer.Name{Cluster: a.Cluster, Node: node}
	expires := now.Add(NodeLife)
	if expires.After(a.Expires) {
		expires = a.Expires
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: name.String()},
		NotBefore: now.Add(-early), NotAfter: expires,
		URIs:                  []*url.URL{name.URI()},
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return Issued{}, err
	}
	made := Issued{
		Cluster: a.Cluster, Node: node, Expires: expires.UTC().Truncate(time.Second),
		CertFile: filepath.Join(dir, fmt.Sprintf("node-%d.pem", node)), KeyFile: filepath.Join(dir, fmt.Sprintf("node-%d.key", node)),
	}
	return made, createPair(made.CertFile, made.KeyFile, der, key)
}

// createPair makes both files or neither. The key is readable by its owner only.
func createPair(certFile, keyFile string, der []byte, key *ecdsa.PrivateKey) error {
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := create(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		return err
	}
	err = create(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
	if err != nil {
		return errors.Join(err, os.Remove(keyFile))
	}
	return nil
}

// readCAs reads the certificates of one or more authorities: more than one while
// they are being replaced.
func readCAs(name string) (*x509.CertPool, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, refusal("certificates", "%v", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, refusal("certificates", "%s holds no certificate in PEM", name)
	}
	return pool, nil
}

// credentialFault keeps what tls says, which names files and never a key.
func credentialFault(err error) error {
	if fault.From(err) != nil {
		return err
	}
	return refusal("certificates", "%v", err)
}
