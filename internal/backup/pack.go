package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/check"
)

// manifestName is the first entry of every archive.
const manifestName = "manifest.json"

// windowBytes is how far back the compressor looks, and how much a reader keeps.
const windowBytes = 4 << 20

// The steps of making and reading backups.
var (
	rowsRead      = check.Step{Done: "read", Unit: check.Rows}
	bytesHashed   = check.Step{Done: "hashed", Unit: check.Bytes}
	bytesPacked   = check.Step{Done: "packed", Unit: check.Bytes}
	bytesVerified = check.Step{Done: "verified", Unit: check.Bytes}
	bytesRestored = check.Step{Done: "restored", Unit: check.Bytes}
)

// meter reports one step; report may be nil.
type meter struct {
	report      check.Progress
	step        check.Step
	done, total int64
}

func (m *meter) add(n int64) {
	if m.done += n; n > 0 && m.report != nil {
		m.report(m.step, m.done, m.total)
	}
}

// measured reads within a context, and counts and hashes.
type measured struct {
	ctx   context.Context
	r     io.Reader
	sum   hash.Hash
	meter *meter
	err   error // that it ended with, but for its end
}

func measure(ctx context.Context, r io.Reader, m *meter) *measured {
	return &measured{ctx: ctx, r: r, sum: sha256.New(), meter: m}
}

func (c *measured) Read(p []byte) (int, error) {
	if c.err = context.Cause(c.ctx); c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	c.meter.add(int64(n))
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

func (c *measured) hex() string { return hex.EncodeToString(c.sum.Sum(nil)) }

// header is the whole of an entry's header: a reader wants exactly this.
func header(name string, bytes int64, created api.Time) *tar.Header {
	return &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: bytes, Mode: 0o600, Format: tar.FormatUSTAR,
		ModTime: created.Time().Truncate(1e9),
	}
}

// source opens a file that is to be packed.
type source func(name string) (io.ReadCloser, error)

// pack writes an archive. The manifest is a frame of its own, with a checksum of
// its own, so that it can be trusted without reading the rest.
func pack(ctx context.Context, w io.Writer, m *Manifest, open source, progress check.Progress) (id string, err error) {
	text, err := m.encode()
	if err != nil {
		return "", err
	}
	if _, err := decode(text); err != nil { // a bound: better now than at the restore
		return "", fmt.Errorf("what was made cannot be restored: %w", err)
	}
	if len(text) > maxManifestBytes {
		return "", fmt.Errorf("the manifest has %d bytes, more than the %d that can be restored", len(text), maxManifestBytes)
	}
	out := newSealing(w)
	z, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(windowBytes),
		zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return "", err
	}
	t := tar.NewWriter(z)
	if err := entry(t, manifestName, int64(len(text)), m.CreatedAt, bytes.NewReader(text)); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	z.Reset(out)
	packed := &meter{progress, bytesPacked, 0, m.Bytes}
	for _, f := range m.Files {
		if err := packFile(ctx, t, m, f, open, packed); err != nil {
			return "", err
		}
	}
	for _, end := range []func() error{t.Close, z.Close, out.seal} {
		if err := end(); err != nil {
			return "", err
		}
	}
	return idOf(text), nil
}

func packFile(ctx context.Context, t *tar.Writer, m *Manifest, f File, open source, packed *meter) error {
	r, err := open(f.Name)
	if err != nil {
		return err
	}
	defer r.Close() // it is only read
	content := measure(ctx, r, packed)
	if err := entry(t, f.Name, f.Bytes, m.CreatedAt, content); err != nil {
		return err
	}
	if content.hex() != f.SHA256 {
		return fmt.Errorf("%s changed while it was copied", f.Name)
	}
	return nil
}

// entry writes one file of the archive, padding included.
func entry(t *tar.Writer, name string, bytes int64, created api.Time, content io.Reader) error {
	if err := t.WriteHeader(header(name, bytes, created)); err != nil {
		return err
	}
	if n, err := io.Copy(t, content); err != nil {
		return err
	} else if n != bytes {
		return fmt.Errorf("%s has %d bytes and had %d", name, n, bytes)
	}
	return t.Flush()
}
