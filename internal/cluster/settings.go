package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/wire"
)

// File is the name of the settings in the directory of a node. A directory
// without it is a store that runs alone.
const File = "cluster.json"

const (
	// MaxNode is the highest node id; the lowest is 1. Ids are never used again:
	// a node whose disk was lost comes back with a new one.
	MaxNode = 999_999
	// MaxName is the longest cluster id, in bytes.
	MaxName = 63
	// MaxJoin is the most addresses to join at.
	MaxJoin = 16
	// maxFile is the largest settings file, in bytes.
	maxFile = 64 << 10
	// maxAddress is the longest address, in bytes.
	maxAddress = 256
)

// Settings are what a node must know before it can speak to another one.
// Everything else about the cluster is in its replicated list of members.
type Settings struct {
	// Cluster is the name that every certificate of the cluster holds: 1 to
	// MaxName of a-z, 0-9 and -, with neither end a -.
	Cluster string `json:"cluster"`
	// Node is who this is, 1 to MaxNode.
	Node uint64 `json:"node"`
	// Listen is host:port for other nodes; port 0 picks a free one.
	Listen string `json:"listen"`
	// Advertise is host:port at which other nodes reach this one. Empty is the
	// address that is listened on.
	Advertise string `json:"advertise,omitempty"`
	// CAFile, CertFile and KeyFile are PEM files. Read makes them absolute: in
	// the file they are relative to its directory.
	CAFile   string `json:"caFile"`
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// Bootstrap is true for the one node that brings the store with which the
	// cluster begins.
	Bootstrap bool `json:"bootstrap,omitempty"`
	// Join are addresses (host:port) of nodes of which one is asked to let this
	// one in, as long as its directory holds no store. Exactly one of Bootstrap
	// and Join is set.
	Join []string `json:"join,omitempty"`
}

// Read reads the settings of the node in dir. found is false when the directory
// has no settings file: its store runs alone. Errors are Validation.
func Read(dir string) (s Settings, found bool, err error) {
	name := filepath.Join(dir, File)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Settings{}, false, nil
	}
	if err != nil {
		return Settings{}, false, refusal("cluster_settings", "%s cannot be read: %v", name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Settings{}, false, refusal("cluster_settings", "%s cannot be read: %v", name, err)
	}
	if len(b) > maxFile {
		return Settings{}, false, refusal("cluster_settings", "%s has more than %d bytes; it is no settings file", name, maxFile)
	}
	if e := wire.DecodeJSON(b, &s); e != nil {
		return Settings{}, false, refusal("cluster_settings", "%s: %s", name, e.Detail)
	}
	for _, file := range []*string{&s.CAFile, &s.CertFile, &s.KeyFile} {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(dir, *file)
		}
	}
	if err := s.Check(); err != nil {
		return Settings{}, false, refusal("cluster_settings", "%s: %s", name, fault.From(err).Detail)
	}
	return s, true, nil
}

// Write stores the settings in dir, which must exist and have none. Paths are
// written as they are given. Errors: Validation; Conflict (reason file_exists).
func Write(dir string, s Settings) error {
	if err := s.Check(); err != nil {
		return err
	}
	b, err := wire.EncodeJSON(s)
	if err != nil {
		return err
	}
	return create(filepath.Join(dir, File), append(b, '\n'), 0o644)
}

// Check refuses settings that no node can run with. It opens no file.
func (s *Settings) Check() error {
	if !validName(s.Cluster) {
		return refusal("cluster_settings", "cluster must be 1 to %d of a-z, 0-9 and -, and neither begin nor end with -", MaxName)
	}
	if s.Node < 1 || s.Node > MaxNode {
		return refusal("cluster_settings", "node must be a number from 1 to %d", MaxNode)
	}
	if err := checkAddress(s.Listen, true); err != nil {
		return refusal("cluster_settings", "listen %v", err)
	}
	if s.Advertise != "" {
		if err := checkAddress(s.Advertise, false); err != nil {
			return refusal("cluster_settings", "advertise %v", err)
		}
	} else if host, _, _ := net.SplitHostPort(s.Listen); unspecified(host) {
		return refusal("cluster_settings", "advertise must be given: listen says every address of this machine, and others need one to reach it at")
	}
	for _, file := range []struct{ field, path string }{{"caFile", s.CAFile}, {"certFile", s.CertFile}, {"keyFile", s.KeyFile}} {
		if file.path == "" {
			return refusal("cluster_settings", "%s must name a PEM file: nodes speak over TLS only", file.field)
		}
	}
	return s.checkJoin()
}

func (s *Settings) checkJoin() error {
	if s.Bootstrap == (len(s.Join) > 0) {
		return refusal("cluster_settings", "either bootstrap must be true, on the one node that brings the store, or join must list addresses of other nodes")
	}
	if len(s.Join) > MaxJoin {
		return refusal("cluster_settings", "join must list at most %d addresses", MaxJoin)
	}
	for i, a := range s.Join {
		if err := checkAddress(a, false); err != nil {
			return refusal("cluster_settings", "join/%d %v", i, err)
		}
	}
	return nil
}

func validName(s string) bool {
	if len(s) < 1 || len(s) > MaxName || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// checkAddress says what is wrong with host:port; to listen, the host may be
// empty and the port 0.
func checkAddress(address string, listen bool) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || len(address) > maxAddress {
		return errors.New("must be host:port")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 && !listen {
		return errors.New("must be host:port with a port from 1 to 65535")
	}
	if !listen && unspecified(host) {
		return fmt.Errorf("must have a host that other nodes can reach, not %q", host)
	}
	return nil
}

func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// create makes a new file with the content, synced, or none at all.
func create(name string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Conflict, "file_exists", "%s exists already and is left as it is; nothing was changed there", name)
	}
	if err != nil {
		return refusal("file", "%v", err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		_ = os.Remove(name) // it is not whole, and was not there before
	}
	return err
}

func refusal(reason, format string, args ...any) error {
	return fault.New(fault.Validation, reason, format, args...)
}
