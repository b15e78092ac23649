package backup

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"io"
	"reflect"
	"regexp"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/check"
)

// maxWindowBytes bounds what a reader keeps of an archive.
const maxWindowBytes = 8 << 20

// archive is an archive that is being read, from front to end.
type archive struct {
	Backup
	ctx    context.Context
	origin *origin
	z      *zstd.Decoder
	plain  *bufio.Reader // what the decoder gives
	tar    *tar.Reader
}

// origin is where the bytes of an archive come from. It tells a source that
// fails from an archive that is damaged.
type origin struct {
	ctx  context.Context
	r    io.Reader
	read int64
	err  error
}

func (o *origin) Read(p []byte) (int, error) {
	if o.err = context.Cause(o.ctx); o.err != nil {
		return 0, o.err
	}
	n, err := o.r.Read(p)
	if o.read += int64(n); err != nil && err != io.EOF {
		o.err = err
	}
	return n, err
}

// openArchive reads the manifest. Close the result.
func openArchive(ctx context.Context, r io.Reader) (*archive, error) {
	a := &archive{ctx: ctx, origin: &origin{ctx: ctx, r: r}}
	begun := bufio.NewReader(a.origin)
	if err := a.begins(begun); err != nil {
		return nil, err
	}
	var err error
	a.z, err = zstd.NewReader(newUnsealing(begun), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindowBytes), zstd.WithDecoderMaxMemory(maxWindowBytes))
	if err != nil {
		return nil, a.failure(manifestName, err)
	}
	a.plain = bufio.NewReaderSize(a.z, 64<<10)
	a.tar = tar.NewReader(a.plain)
	if err := a.readManifest(); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (a *archive) close() { a.z.Close() }

// begins wants the first bytes to be those of a backup: any other file is not a
// damaged one.
func (a *archive) begins(r *bufio.Reader) error {
	const magic = "\x28\xb5\x2f\xfd" // of a zstd frame
	first, err := r.Peek(len(magic))
	switch {
	case err != nil && err != io.EOF:
		return a.failure(manifestName, err)
	case len(first) == 0:
		return damaged("it is empty")
	case !strings.HasPrefix(magic, string(first)):
		return fault.New(fault.Corruption, "not_a_backup", "this is no backup, or its first bytes are damaged")
	}
	return nil
}

// readManifest reads the first entry, and a little of what follows: then the
// checksum of its frame was looked at.
func (a *archive) readManifest() error {
	h, err := a.tar.Next()
	switch {
	case err == io.EOF:
		return damaged("it is empty")
	case err != nil:
		return a.failure(manifestName, err)
	case h.Name != manifestName || h.Size > maxManifestBytes || h.Typeflag != tar.TypeReg:
		return damaged("it does not begin with a manifest")
	}
	text := make([]byte, h.Size)
	if _, err := io.ReadFull(a.tar, text); err != nil {
		return a.failure(manifestName, err)
	}
	const block = 512
	padding := -h.Size & (block - 1)
	if _, err := a.plain.Peek(int(padding) + 1); err != nil {
		return a.failure(manifestName, err)
	}
	b, err := decode(text)
	if err != nil {
		return err
	}
	a.Backup = *b
	return sameHeader(h, h.Size, manifestName, a.Manifest)
}

// sameHeader wants a header to be the one that pack writes.
func sameHeader(h *tar.Header, bytes int64, name string, m *Manifest) error {
	want := header(name, bytes, m.CreatedAt)
	h.ModTime = h.ModTime.UTC()
	if !reflect.DeepEqual(h, want) {
		return damaged("the entry of %s is not as the manifest says", name)
	}
	return nil
}

// each gives every file to fn, in order, and compares it with the manifest after
// that; fn must not trust what it was given before each returns.
func (a *archive) each(step check.Step, progress check.Progress, fn func(f File, content io.Reader) error) error {
	m := &meter{progress, step, 0, a.Bytes}
	for _, f := range a.Files {
		if err := a.file(f, m, fn); err != nil {
			return err
		}
	}
	switch h, err := a.tar.Next(); {
	case err == nil:
		return damaged("it has %.100q, which its manifest does not name", h.Name)
	case err != io.EOF:
		return a.failure("its end", err)
	}
	switch _, err := a.plain.ReadByte(); {
	case err == nil:
		return damaged("something follows its end")
	case err != io.EOF:
		return a.failure("its end", err)
	}
	return nil
}

func (a *archive) file(f File, m *meter, fn func(File, io.Reader) error) error {
	h, err := a.tar.Next()
	switch {
	case err == io.EOF:
		return damaged("%s is missing", f.Name)
	case err != nil:
		return a.failure(f.Name, err)
	case h.Name != f.Name:
		return damaged("%.100q stands where %s must be", h.Name, f.Name)
	}
	if err := sameHeader(h, f.Bytes, f.Name, a.Manifest); err != nil {
		return err
	}
	content := measure(a.ctx, a.tar, m)
	if err := fn(f, content); err != nil {
		if content.err != nil {
			return a.failure(f.Name, content.err)
		}
		return err // of what is done with it
	}
	if content.hex() != f.SHA256 {
		return damaged("the content of %s is not what its manifest says", f.Name)
	}
	return nil
}

// failure sorts out why an archive could not be read on.
func (a *archive) failure(what string, err error) error {
	switch {
	case fault.From(err) != nil:
		return fault.From(err)
	case context.Cause(a.ctx) != nil:
		return ended(context.Cause(a.ctx))
	case a.origin.err != nil:
		return fault.New(fault.RecoveryRequired, "backup_unreadable", "the backup cannot be read any further, at byte %d: %v", a.origin.read, a.origin.err)
	case errors.Is(err, errNoSeal):
		return damaged("after %d bytes it ends, and not as a backup ends: it was cut off, or something was added to it", a.origin.read)
	case errors.Is(err, io.ErrUnexpectedEOF), err == io.EOF:
		return damaged("it ends within %s, after %d bytes", what, a.origin.read)
	case errors.Is(err, errBadSeal):
		return damaged("%v", errBadSeal)
	}
	return damaged("%s cannot be read, before byte %d: %v", what, a.origin.read, err)
}

// ended is the error of work whose context ended.
func ended(cause error) error {
	if f := fault.From(cause); f != nil {
		return f
	}
	return fault.New(fault.Cancelled, "cancelled", "the work was ended before it was done: %v", cause)
}

// Inspect reads the manifest of an archive and nothing else. Errors are
// *fault.Error: Corruption, FormatUnsupported, RecoveryRequired where the source
// fails.
func Inspect(ctx context.Context, r io.Reader) (*Backup, error) {
	a, err := openArchive(ctx, r)
	if err != nil {
		return nil, err
	}
	defer a.close()
	return &a.Backup, nil
}

// Verify reads a whole archive and compares every byte with the manifest and the
// manifest with expect, the id that was noted when the backup was made; "" takes
// any. Errors are those of Inspect, Conflict (reason other_backup), and Validation
// (reason backup_id) where expect is no id.
func Verify(ctx context.Context, r io.Reader, expect string, progress check.Progress) (*Backup, error) {
	if err := mayBeID(expect); err != nil {
		return nil, err
	}
	a, err := openArchive(ctx, r)
	if err != nil {
		return nil, err
	}
	defer a.close()
	if err := a.expected(expect); err != nil {
		return nil, err
	}
	err = a.each(bytesVerified, progress, func(f File, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &a.Backup, nil
}

var idForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func mayBeID(id string) error {
	if id == "" || idForm.MatchString(id) {
		return nil
	}
	return fault.New(fault.Validation, "backup_id", "%.100q is not the id of any backup: an id has 64 digits, 0 to 9 and a to f, as keyload backup create prints it. Nothing was read", id)
}

func (a *archive) expected(id string) error {
	if id == "" || id == a.ID {
		return nil
	}
	return fault.New(fault.Conflict, "other_backup", "this is the backup %s, not the one that is expected", a.ID).With("id", "%s", a.ID)
}
