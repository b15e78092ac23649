package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/keyload/keyload/fault"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, what string, err error, code fault.Code, reason string) {
	t.Helper()
	if f := fault.From(err); f == nil || f.Code != code || f.Reason != reason {
		t.Errorf("%s: %v, want %s (%s)", what, err, code, reason)
	}
}

// each runs a test with a directory and with S3, in which a part has 1,000 bytes.
func each(t *testing.T, test func(t *testing.T, p Place)) {
	t.Run("directory", func(t *testing.T) {
		p, err := Locate(t.TempDir())
		must(t, err)
		test(t, p)
	})
	t.Run("S3", func(t *testing.T) {
		newS3(t)
		test(t, s3Place(t, "s3://backups/daily/"))
	})
}

func s3Place(t *testing.T, location string) Place {
	t.Helper()
	p, err := Locate(location)
	must(t, err)
	p.Target.(*bucket).part = 1000
	return p
}

func (p Place) read(t *testing.T, name string) []byte {
	t.Helper()
	p.Name = name
	r, err := p.Open(t.Context())
	must(t, err)
	b, err := io.ReadAll(r)
	must(t, errors.Join(err, r.Close()))
	return b
}

func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

func TestWhatIsPutIsReadListedAndDeleted(t *testing.T) {
	each(t, func(t *testing.T, p Place) {
		ctx := t.Context()
		sizes := []int{0, 1, 999, 1000, 1001, 2000, 10_500}
		for _, n := range sizes {
			name := fmt.Sprintf("b-%05d.klb", n)
			put, err := p.Put(ctx, name, iotest.HalfReader(bytes.NewReader(content(n))))
			must(t, err)
			if put != int64(n) || !bytes.Equal(p.read(t, name), content(n)) {
				t.Errorf("%d bytes: %d were put, and something else is read", n, put)
			}
		}
		_, err := p.Put(ctx, "notes.txt", strings.NewReader("x"))
		must(t, err)
		list, err := p.List(ctx)
		must(t, err)
		if len(list) != len(sizes) {
			t.Fatalf("%d are listed: %+v", len(list), list)
		}
		for i, e := range list {
			if e.Name != fmt.Sprintf("b-%05d.klb", sizes[i]) || e.Bytes != int64(sizes[i]) || e.Modified.Year() < 2020 {
				t.Errorf("listed: %+v", e)
			}
		}
		for _, c := range []struct{ offset, length, from, to int64 }{{0, -1, 0, 2000}, {5, 10, 5, 15}, {1999, 5, 1999, 2000}, {7, 0, 7, 7}, {1500, -1, 1500, 2000}} {
			r, err := p.Get(ctx, "b-02000.klb", c.offset, c.length)
			must(t, err)
			got, err := io.ReadAll(r)
			must(t, errors.Join(err, r.Close()))
			if !bytes.Equal(got, content(2000)[c.from:c.to]) {
				t.Errorf("from %d, %d bytes: %d are read", c.offset, c.length, len(got))
			}
		}
		must(t, p.Delete(ctx, "b-00001.klb"))
		wants(t, "deleting it again", p.Delete(ctx, "b-00001.klb"), fault.NotFound, "no_backup")
		_, err = p.Get(ctx, "b-00001.klb", 0, -1)
		wants(t, "reading what was deleted", err, fault.NotFound, "no_backup")
	})
}

func TestABackupNeverReplacesAnother(t *testing.T) {
	each(t, func(t *testing.T, p Place) {
		for _, n := range []int{10, 5000} { // in one request, and in parts
			name := fmt.Sprintf("%d.klb", n)
			_, err := p.Put(t.Context(), name, bytes.NewReader(content(n)))
			must(t, err)
			read := 0
			counting := readerFunc(func(p []byte) (int, error) { read += len(p); return len(p), nil })
			_, err = p.Put(t.Context(), name, io.LimitReader(counting, 10_000))
			wants(t, "a second backup of the name", err, fault.Conflict, "backup_exists")
			if read > 0 {
				t.Errorf("%d bytes of it were read before that was found", read)
			}
			// Another one that comes first while this one is under way.
			late := fmt.Sprintf("late-%d.klb", n)
			_, err = p.Put(t.Context(), late, io.MultiReader(bytes.NewReader(content(n)), &once{do: func() {
				_, err := p.Put(t.Context(), late, strings.NewReader("first"))
				must(t, err)
			}}))
			wants(t, "a backup of a name that was taken meanwhile", err, fault.Conflict, "backup_exists")
			if got := string(p.read(t, late)); got != "first" {
				t.Errorf("it became %.20q", got)
			}
		}
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// once does something when it is read, and ends.
type once struct {
	do func()
	sync.Once
}

func (o *once) Read([]byte) (int, error) { o.Do(o.do); return 0, io.EOF }

// Whatever content fails with, and wherever: nothing has the name, and nothing is
// left behind it.
func TestABackupThatFailsOnItsWayLeavesNothing(t *testing.T) {
	broken := errors.New("the store is closing")
	each(t, func(t *testing.T, p Place) {
		for _, failure := range []error{broken, io.ErrUnexpectedEOF} {
			for _, n := range []int{0, 10, 999, 1000, 1001, 2500} {
				name := fmt.Sprintf("%d.klb", n)
				_, err := p.Put(t.Context(), name, io.MultiReader(bytes.NewReader(content(n)), iotest.ErrReader(failure)))
				if err == nil || !strings.Contains(err.Error(), failure.Error()) {
					t.Errorf("failing with %v after %d bytes: %v", failure, n, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				_, err = p.Put(ctx, name, io.MultiReader(bytes.NewReader(content(n)), &once{do: cancel}, bytes.NewReader(content(5000))))
				wants(t, fmt.Sprintf("cancelled after %d bytes", n), err, fault.Cancelled, "cancelled")
				_, err = p.Get(t.Context(), name, 0, -1)
				wants(t, "reading it", err, fault.NotFound, "no_backup")
			}
		}
		own := fault.New(fault.Corruption, "damaged_backup", "it is damaged")
		_, err := p.Put(t.Context(), "own.klb", iotest.ErrReader(own))
		wants(t, "content that fails with a fault", err, fault.Corruption, "damaged_backup")
		switch at := p.Target.(type) {
		case directory:
			if names, err := filepath.Glob(filepath.Join(string(at), "*")); err != nil || len(names) > 0 {
				t.Errorf("left: %v, %v", names, err)
			}
			if hidden, err := filepath.Glob(filepath.Join(string(at), ".*")); err != nil || len(hidden) > 0 {
				t.Errorf("left: %v, %v", hidden, err)
			}
		case *bucket:
			if left, err := at.core.ListMultipartUploads(t.Context(), at.name, "", "", "", "", 10); err == nil && len(left.Uploads) > 0 {
				t.Errorf("left: %+v", left)
			}
		}
	})
}

func TestAFileOfABackupIsItsOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	p, err := Locate(dir)
	must(t, err)
	_, err = p.Put(t.Context(), "a.klb", strings.NewReader("x"))
	must(t, err)
	info, err := os.Stat(filepath.Join(dir, "a.klb"))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("it has the mode %v", info.Mode())
	}
	// Where the file system cannot rename without replacing, a link does it.
	must(t, os.WriteFile(filepath.Join(dir, "temp"), []byte("x"), 0o600))
	if err := linkAs(filepath.Join(dir, "temp"), filepath.Join(dir, "a.klb")); !errors.Is(err, os.ErrExist) {
		t.Errorf("over another one: %v", err)
	}
	must(t, linkAs(filepath.Join(dir, "temp"), filepath.Join(dir, "b.klb")))
	if _, err := os.Stat(filepath.Join(dir, "temp")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its old name is left: %v", err)
	}
}

func TestALocationIsAFileADirectoryOrABucket(t *testing.T) {
	newS3(t)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.klb"), []byte("x"), 0o600))
	for location, want := range map[string]struct{ kind, name, path string }{
		dir:                             {"target.directory", "", dir + "/n.klb"},
		dir + "/":                       {"target.directory", "", dir + "/n.klb"},
		dir + "/missing/":               {"target.directory", "", dir + "/missing/n.klb"},
		dir + "/a.klb":                  {"target.directory", "a.klb", dir + "/n.klb"},
		"a.klb":                         {"target.directory", "a.klb", "n.klb"},
		"s3://backups":                  {"*target.bucket", "", "s3://backups/n.klb"},
		"s3://backups/":                 {"*target.bucket", "", "s3://backups/n.klb"},
		"s3://backups/daily/":           {"*target.bucket", "", "s3://backups/daily/n.klb"},
		"s3://backups/daily/monday.klb": {"*target.bucket", "monday.klb", "s3://backups/daily/n.klb"},
		"s3://backups/monday.klb":       {"*target.bucket", "monday.klb", "s3://backups/n.klb"},
	} {
		p, err := Locate(location)
		if err != nil {
			t.Errorf("%s: %v", location, err)
			continue
		}
		if got := fmt.Sprintf("%T", p.Target); got != want.kind || p.Name != want.name || p.Path("n.klb") != want.path {
			t.Errorf("%s: %s %q, path %q, want %+v", location, got, p.Name, p.Path("n.klb"), want)
		}
	}
	for _, location := range []string{"", "s3://", "s3:///x", "https://example.org/x", "gs://bucket/x"} {
		if _, err := Locate(location); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%q: %v", location, err)
		}
	}
	p, err := Locate(dir)
	must(t, err)
	if _, err := p.Open(t.Context()); fault.CodeOf(err) != fault.Validation {
		t.Errorf("opening a directory: %v", err)
	}
}

func TestTheNameOfABackupSaysWhenAndOfWhat(t *testing.T) {
	got := NewName(time.Date(2027, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)), "0b5e7a91-1111-4222-8333-444455556666")
	if want := "keyload-20270102T020405Z-0b5e7a91.klb"; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}

func TestWhatIsNotThereOrNotAllowedIsSaid(t *testing.T) {
	s := newS3(t)
	for _, location := range []string{filepath.Join(t.TempDir(), "missing") + "/", "s3://nowhere/"} {
		p, err := Locate(location)
		must(t, err)
		_, err = p.Put(t.Context(), "a.klb", strings.NewReader("x"))
		wants(t, location, err, fault.NotFound, "no_place")
		_, err = p.List(t.Context())
		wants(t, location, err, fault.NotFound, "no_place")
	}
	s.fail = func(w http.ResponseWriter, _ *http.Request) bool {
		s.refuse(w, http.StatusForbidden, "AccessDenied")
		return true
	}
	p := s3Place(t, "s3://backups/")
	_, err := p.Put(t.Context(), "a.klb", strings.NewReader("x"))
	wants(t, "a refusal", err, fault.PermissionDenied, "s3_refused")
	if err != nil && strings.Contains(err.Error(), "test-secret") {
		t.Errorf("it holds the secret: %v", err)
	}
	p.Name = "a.klb"
	if _, err = p.Open(t.Context()); fault.CodeOf(err) != fault.PermissionDenied {
		t.Errorf("reading: %v", err)
	}
}
