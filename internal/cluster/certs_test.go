package cluster

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyload/keyload/fault"
)

func certificateOf(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(b)
	if block == nil || len(rest) > 0 {
		t.Fatalf("%s is not one block of PEM", file)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestACertificateNamesItsNodeAndIsSignedByTheAuthorityThatWasReadAgain(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), "certs"), time.Now()
	if _, found, err := LoadAuthority(dir); found || err != nil {
		t.Fatalf("there is an authority already: %v, %v", found, err)
	}
	if _, err := MakeAuthority(dir, "prod", now); err != nil {
		t.Fatal(err)
	}
	a, found, err := LoadAuthority(dir)
	if err != nil || !found || a.Cluster != "prod" || a.Expires.Sub(now.Add(CALife)).Abs() > time.Second {
		t.Fatalf("read as %+v, %v, %v", a, found, err)
	}
	made, err := a.Issue(dir, 3, now)
	if err != nil {
		t.Fatal(err)
	}
	c := certificateOf(t, made.CertFile)
	if len(c.URIs) != 1 || c.URIs[0].String() != "keyload://cluster/prod/node/3" || c.IsCA || !c.NotAfter.Equal(made.Expires) {
		t.Errorf("the certificate is for %v until %s, CA %v", c.URIs, c.NotAfter, c.IsCA)
	}
	if life := c.NotAfter.Sub(now); (life - NodeLife).Abs() > time.Second {
		t.Errorf("it holds for %s", life)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificateOf(t, filepath.Join(dir, CAFile)))
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		if _, err := c.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("usage %d: %v", usage, err)
		}
	}
	for file, want := range map[string]fs.FileMode{made.KeyFile: 0o600, filepath.Join(dir, CAKeyFile): 0o600} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	a, err := MakeAuthority(dir, "prod", now)
	if err != nil {
		t.Fatal(err)
	}
	made, err := a.Issue(dir, 1, now)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{CAFile, CAKeyFile, filepath.Base(made.CertFile), filepath.Base(made.KeyFile)}
	before := map[string][]byte{}
	for _, name := range names {
		if before[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := MakeAuthority(dir, "prod", now); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("another authority: %v", err)
	}
	if _, err := a.Issue(dir, 1, now); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("another certificate: %v", err)
	}
	for _, name := range names {
		if now, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(now, before[name]) {
			t.Errorf("%s was changed, %v", name, err)
		}
	}
	// One of the two files is enough, and the other one is not left behind.
	if err := os.Remove(made.KeyFile); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Issue(dir, 1, now); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("beside a certificate: %v", err)
	}
	if _, err := os.Stat(made.KeyFile); !os.IsNotExist(err) {
		t.Errorf("a key was left behind: %v", err)
	}
}

func TestAnAuthorityThatCannotBeUsedIsRefused(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	a, err := MakeAuthority(dir, "prod", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := MakeAuthority(t.TempDir(), "Prod", now); fault.CodeOf(err) != fault.Validation {
		t.Errorf("a wrong name: %v", err)
	}
	for _, node := range []uint64{0, MaxNode + 1} {
		if _, err := a.Issue(dir, node, now); fault.CodeOf(err) != fault.Validation {
			t.Errorf("node %d: %v", node, err)
		}
	}
	late := now.Add(CALife - time.Hour)
	if made, err := a.Issue(dir, MaxNode, late); err != nil || made.Expires.After(a.Expires) {
		t.Errorf("at the end of the authority: until %s, %v", made.Expires, err)
	}
	if _, err := a.Issue(dir, 5, now.Add(CALife+time.Second)); fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), "expired") {
		t.Errorf("after its end: %v", err)
	}
	made, err := a.Issue(dir, 1, now)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(dir string) error{
		"a part of it is gone": func(dir string) error { return os.Remove(filepath.Join(dir, CAKeyFile)) },
		"a node's in its place": func(dir string) error {
			return errorsOf(os.Remove(filepath.Join(dir, CAFile)), os.Remove(filepath.Join(dir, CAKeyFile)),
				os.Link(made.CertFile, filepath.Join(dir, CAFile)), os.Link(made.KeyFile, filepath.Join(dir, CAKeyFile)))
		},
		"another key": func(dir string) error {
			return errorsOf(os.Remove(filepath.Join(dir, CAKeyFile)), os.Link(made.KeyFile, filepath.Join(dir, CAKeyFile)))
		},
	} {
		other := filepath.Join(t.TempDir(), "ca")
		if _, err := MakeAuthority(other, "prod", now); err != nil {
			t.Fatal(err)
		}
		if err := change(other); err != nil {
			t.Fatal(err)
		}
		if _, found, err := LoadAuthority(other); found || fault.CodeOf(err) != fault.Validation {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestCredentialsFollowTheirFilesAndSurviveFilesThatAreBroken(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	a, err := MakeAuthority(dir, "prod", now)
	if err != nil {
		t.Fatal(err)
	}
	made, err := a.Issue(dir, 1, now)
	if err != nil {
		t.Fatal(err)
	}
	s := Settings{CAFile: filepath.Join(dir, CAFile), CertFile: made.CertFile, KeyFile: made.KeyFile}
	get := s.Credentials()
	first, err := get()
	if err != nil {
		t.Fatal(err)
	}
	same, err := get()
	if err != nil || !bytes.Equal(same.Certificate.Certificate[0], first.Certificate.Certificate[0]) || same.CAs != first.CAs {
		t.Errorf("files that did not change were read again: %v", err)
	}
	if err := os.WriteFile(made.CertFile, []byte("half of a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if broken, err := get(); err != nil || !bytes.Equal(broken.Certificate.Certificate[0], first.Certificate.Certificate[0]) {
		t.Errorf("a broken file took the certificate away: %v", err)
	}
	if _, err := s.Credentials()(); fault.CodeOf(err) != fault.Validation {
		t.Errorf("a broken file at the start: %v", err)
	}
	if err := errorsOf(os.Remove(made.CertFile), os.Remove(made.KeyFile)); err != nil {
		t.Fatal(err)
	}
	if gone, err := get(); err != nil || gone.CAs != first.CAs {
		t.Errorf("missing files took the certificate away: %v", err)
	}
	if _, err := a.Issue(dir, 1, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	next, err := get()
	if err != nil || bytes.Equal(next.Certificate.Certificate[0], first.Certificate.Certificate[0]) {
		t.Errorf("the new certificate is not used: %v", err)
	}
}
