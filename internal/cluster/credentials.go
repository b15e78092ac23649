package cluster

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"github.com/keyload/keyload/internal/peer"
)

// Credentials is what a mesh asks at every handshake: what the three files hold.
// They are read again when one has changed; while they cannot be read, or do not
// belong together, what was read before goes on to hold.
func (s Settings) Credentials() func() (peer.Credentials, error) {
	c := &credentials{settings: s}
	return c.get
}

type credentials struct {
	settings Settings

	mu     sync.Mutex
	stamps [3]stamp
	known  bool
	last   peer.Credentials
}

// stamp tells one content of a file from another.
type stamp struct {
	changed time.Time
	size    int64
}

func (c *credentials) get() (peer.Credentials, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, err := c.look()
	if c.known && (err != nil || now == c.stamps) {
		return c.last, nil
	}
	if err != nil {
		return peer.Credentials{}, credentialFault(err)
	}
	read, err := c.read()
	if err != nil && c.known {
		return c.last, nil
	}
	if err != nil {
		return peer.Credentials{}, credentialFault(err)
	}
	c.known, c.stamps, c.last = true, now, read
	return read, nil
}

func (c *credentials) look() (stamps [3]stamp, err error) {
	for i, name := range []string{c.settings.CAFile, c.settings.CertFile, c.settings.KeyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return stamps, err
		}
		stamps[i] = stamp{info.ModTime(), info.Size()}
	}
	return stamps, nil
}

func (c *credentials) read() (peer.Credentials, error) {
	cas, err := readCAs(c.settings.CAFile)
	if err != nil {
		return peer.Credentials{}, err
	}
	pair, err := tls.LoadX509KeyPair(c.settings.CertFile, c.settings.KeyFile)
	if err != nil {
		return peer.Credentials{}, err
	}
	return peer.Credentials{Certificate: pair, CAs: cas}, nil
}
