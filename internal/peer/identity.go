package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// scheme begins the one URI in a node's certificate that says who it is.
const scheme = "keyload"

// Name is who a node is: what its certificate says.
type Name struct {
	Cluster string
	Node    uint64
}

// URI is the name as it stands in a certificate, among its subject alternative
// names: keyload://cluster/CLUSTER/node/NODE.
func (n Name) URI() *url.URL {
	return &url.URL{Scheme: scheme, Host: "cluster", Path: "/" + n.Cluster + "/node/" + strconv.FormatUint(n.Node, 10)}
}

func (n Name) String() string { return fmt.Sprintf("node %d of cluster %s", n.Node, n.Cluster) }

// parseName reads what URI writes, and nothing else.
func parseName(u *url.URL) (Name, error) {
	parts := strings.Split(u.Path, "/")
	if len(parts) == 4 {
		id, err := strconv.ParseUint(parts[3], 10, 64)
		n := Name{Cluster: parts[1], Node: id}
		if err == nil && id > 0 && n.URI().String() == u.String() {
			return n, nil
		}
	}
	return Name{}, errors.New("the certificate's name is not of the form keyload://cluster/CLUSTER/node/NUMBER")
}

// nameOf finds the name in a certificate.
func nameOf(c *x509.Certificate) (Name, error) {
	var found *url.URL
	for _, u := range c.URIs {
		switch {
		case u.Scheme != scheme:
		case found != nil:
			return Name{}, errors.New("the certificate names two nodes")
		default:
			found = u
		}
	}
	if found == nil {
		return Name{}, errors.New("the certificate names no node: it needs the URI keyload://cluster/CLUSTER/node/NUMBER")
	}
	return parseName(found)
}

// Credentials prove who this node is, and tell whom to believe.
type Credentials struct {
	// Certificate is this node's, for both sides of a connection.
	Certificate tls.Certificate
	// CAs signed the certificates of the cluster's nodes, and nobody else's: who
	// has one of them with a node's name is that node.
	CAs *x509.CertPool
}

// check refuses credentials with which no other node would talk. It says until when
// they hold.
func (c Credentials) check(own Name, now time.Time) (until time.Time, err error) {
	if len(c.Certificate.Certificate) == 0 || c.CAs == nil {
		return until, errors.New("there is no certificate, or no authority to check others with")
	}
	var chain []*x509.Certificate
	for _, der := range c.Certificate.Certificate {
		parsed, err := x509.ParseCertificate(der)
		if err != nil {
			return until, fmt.Errorf("this node's certificate: %w", err)
		}
		chain = append(chain, parsed)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		name, err := verify(chain, c.CAs, usage, now)
		if err != nil {
			return until, fmt.Errorf("this node's certificate: %w", err)
		}
		if name != own {
			return until, fmt.Errorf("this node's certificate is that of %s, but this is %s", name, own)
		}
	}
	return chain[0].NotAfter, nil
}

// verify checks a chain, whose first certificate is the node's, and reads its
// name. Addresses do not matter: a node is who its certificate says, wherever it
// runs.
func verify(chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage, now time.Time) (Name, error) {
	if len(chain) == 0 {
		return Name{}, errors.New("there is no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage},
	})
	if err != nil {
		return Name{}, err
	}
	return nameOf(chain[0])
}

// config is the configuration of one connection. usage is what the other side's
// certificate must be for; want is the node it must name, 0 for any of the cluster.
func (o *Options) config(usage x509.ExtKeyUsage, want uint64) (*tls.Config, error) {
	own, err := o.Credentials()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{own.Certificate},
		ClientAuth:   tls.RequireAnyClientCert,
		// Certificates are verified below in every handshake, against the cluster's
		// authority and by the name of a node instead of that of a host.
		InsecureSkipVerify:          true,
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
		NextProtos:                  []string{"keyload-peer"},
		VerifyConnection: func(cs tls.ConnectionState) error {
			name, err := verify(cs.PeerCertificates, own.CAs, usage, time.Now())
			if err != nil {
				return err
			}
			return o.expect(name, want)
		},
	}, nil
}

// expect says why a node with this name is not whom this one talks to.
func (o *Options) expect(name Name, want uint64) error {
	switch {
	case name.Cluster != o.Cluster:
		return fmt.Errorf("the other side is %s, which is another cluster than this node's, %s", name, o.Cluster)
	case name.Node == o.Node:
		return fmt.Errorf("the other side has the certificate of this node, %s", name)
	case want != 0 && name.Node != want:
		return fmt.Errorf("the other side is %s, but node %d is looked for", name, want)
	}
	return nil
}
