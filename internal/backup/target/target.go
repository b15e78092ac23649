package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/keyload/keyload/fault"
)

// Extension ends the names of backups.
const Extension = ".klb"

// Target keeps backups by name. Errors are *fault.Error; a backup that is not
// there is NotFound (reason no_backup).
type Target interface {
	// Put keeps everything that content gives under a new name. Nothing has the
	// name before all of it is kept, and nothing ever has it if content fails. An
	// existing name is a Conflict (reason backup_exists).
	Put(ctx context.Context, name string, content io.Reader) (bytes int64, err error)
	// Get reads from an offset on, at most length bytes; -1 is to the end.
	Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// List lists what has the extension of backups, and what is left of those that
	// were not made to their end, by name.
	List(ctx context.Context) ([]Entry, error)
	// Delete removes a backup.
	Delete(ctx context.Context, name string) error
}

// Entry is one backup that is kept.
type Entry struct {
	Name     string    `json:"name"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
	// Partial says that it is no backup: it is being made, or the process that made it
	// was killed.
	Partial bool `json:"partial,omitzero"`
}

// Place is where a location points to.
type Place struct {
	Target
	// Name is that of a backup, without the location; "" where the location is a
	// directory or prefix of many.
	Name string
	// where is the location of the target, to write a name behind it.
	where string
}

// Path is the location of a backup in the place, as a person would write it.
func (p Place) Path(name string) string {
	if strings.HasPrefix(p.where, scheme) {
		return p.where + name
	}
	return filepath.Join(p.where, name)
}

// Directory is that of the place, and false where the place is none.
func (p Place) Directory() (string, bool) {
	_, ok := p.Target.(directory)
	return p.where, ok
}

// Locate finds the place of a location: a file, a directory (which is there, or
// ends with a separator), s3://bucket/key or s3://bucket/prefix/.
func Locate(location string) (Place, error) {
	if strings.HasPrefix(location, scheme) {
		return locateS3(location)
	}
	if u, err := url.Parse(location); err == nil && len(u.Scheme) > 1 && strings.Contains(location, "://") {
		return Place{}, fault.New(fault.Validation, "location", "a location is a file, a directory or s3://bucket/…, not %s://", u.Scheme)
	}
	if location == "" || location == "-" {
		return Place{}, fault.New(fault.Validation, "location", "name a file, a directory or s3://bucket/…: standard input and output are no places for backups")
	}
	info, err := os.Stat(location)
	if err == nil && info.IsDir() || os.IsPathSeparator(location[len(location)-1]) {
		return Place{Target: directory(location), where: location}, nil
	}
	dir, name := filepath.Split(location)
	if dir == "" {
		dir = "."
	}
	return Place{Target: directory(dir), Name: name, where: dir}, nil
}

// LocateNew is Locate for a backup that is to be made.
func LocateNew(location string) (Place, error) {
	p, err := Locate(location)
	if err == nil && p.Name != "" && !strings.HasSuffix(p.Name, Extension) {
		err = fault.New(fault.Validation, "location", "the name of a backup ends with %s: write %s%s; or, if it is to be a directory, make that first", Extension, location, Extension)
	}
	return p, err
}

// LocateMany is Locate for a place of many backups.
func LocateMany(location string) (Place, error) {
	p, err := Locate(location)
	if err != nil || p.Name == "" {
		return p, err
	}
	if _, isDirectory := p.Directory(); isDirectory {
		if _, err := os.Stat(location); errors.Is(err, fs.ErrNotExist) {
			return p, noPlace("directory", location)
		}
	}
	return p, fault.New(fault.Validation, "location", "%s is one backup or none: name a directory, or s3://bucket/prefix/ with a slash at its end", location)
}

// NewName is a name for a backup that is made now of a store.
func NewName(now time.Time, incarnation string) string {
	return fmt.Sprintf("keyload-%s-%.8s%s", now.UTC().Format("20060102T150405Z"), incarnation, Extension)
}

// Open reads the backup of the place from its beginning. What is lost on the way
// is fetched again.
func (p Place) Open(ctx context.Context) (io.ReadCloser, error) {
	if p.Name == "" {
		return nil, fault.New(fault.Validation, "location", "%s is a place for many backups; name one of them (keyload backup list %s)", p.where, p.where)
	}
	r := &resuming{ctx: ctx, place: p}
	return r, r.open()
}

// resuming reads on after a connection was lost. That the backup is the same one
// still is what whoever reads it verifies.
type resuming struct {
	ctx      context.Context
	place    Place
	current  io.ReadCloser
	offset   int64
	attempts int // without a byte
}

// maxAttempts is how often a read without any progress is tried.
const maxAttempts = 4

func (r *resuming) open() (err error) {
	r.current, err = r.place.Get(r.ctx, r.place.Name, r.offset, -1)
	return err
}

func (r *resuming) Read(p []byte) (int, error) {
	for {
		n, err := r.current.Read(p)
		if n > 0 {
			r.offset, r.attempts = r.offset+int64(n), 0
			if err != io.EOF {
				err = nil // the next read says it again
			}
			return n, err
		}
		if err == nil || err == io.EOF || r.ctx.Err() != nil || r.attempts >= maxAttempts {
			return 0, err
		}
		r.attempts++
		_ = r.current.Close() // it has failed
		if err := r.open(); err != nil {
			r.current = ended{err}
			if fault.CodeOf(err) != fault.RecoveryRequired {
				return 0, err // it is gone, or must not be read any more
			}
		}
	}
}

func (r *resuming) Close() error { return r.current.Close() }

// ended is what cannot be read any more.
type ended struct{ err error }

func (e ended) Read([]byte) (int, error) { return 0, e.err }
func (e ended) Close() error             { return nil }

func noBackup(path string) *fault.Error {
	return fault.New(fault.NotFound, "no_backup", "there is no backup %s", path)
}

func noPlace(kind, name string) *fault.Error {
	return fault.New(fault.NotFound, "no_place", "there is no %s %s", kind, name)
}

// unconfirmed is of a backup of which every byte was sent.
func unconfirmed(path string, err error) *fault.Error {
	return fault.New(fault.RecoveryRequired, "backup_unconfirmed",
		"all of the backup was written, but it was not confirmed that it stays at %s: %v. If it is there it is whole; verify it before you rely on it", path, err)
}

func exists(path string) *fault.Error {
	return fault.New(fault.Conflict, "backup_exists", "there is something at %s already; it was left as it is", path)
}

func byName(entries []Entry) []Entry {
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return entries
}
