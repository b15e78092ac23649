package formats_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/system"
)

// kept are the stores that are kept here, with the format they were written in.
var kept = map[string]int64{
	"first":    1, // documents, streams, topics, queues
	"groups":   1, // with groups
	"restores": 2, // with dispatch and restores
}

// lasted is how long the clock went on while a store was filled.
const lasted = 30 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryStoreKeptHereOpensAndAnswersAsItDidWhenItWasWritten(t *testing.T) {
	for name, format := range kept {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, name, dir)
			before, err := check.Dir(t.Context(), dir, nil)
			must(t, err)
			if before.Format != format || len(before.Findings) != 0 {
				t.Errorf("before the upgrade: format %d, %v", before.Format, before.Findings)
			}
			want, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
			must(t, err)
			for range 2 { // once upgraded, and once as it is then
				same(t, string(want), answers(t, dir))
				after, err := check.Dir(t.Context(), dir, nil)
				must(t, err)
				if after.Format != system.Format || len(after.Findings) != 0 {
					t.Errorf("after: format %d, %v", after.Format, after.Findings)
				}
			}
			if format == system.Format {
				return
			}
			old, err := check.Dir(t.Context(), filepath.Join(dir, fmt.Sprint("format-", format)), nil)
			must(t, err)
			if old.Format != format || old.Incarnation != before.Incarnation || old.Rows != before.Rows || len(old.Findings) != 0 {
				t.Errorf("the copy: %+v", old)
			}
		})
	}
}

func TestAStoreOfANewerFormatIsRefusedAndLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	unpack(t, "first", dir)
	store, err := kv.Open(dir, kv.Options{})
	must(t, err)
	snap := store.NewSnapshot()
	id, _, err := system.ReadIdentity(snap)
	must(t, errors.Join(err, snap.Close()))
	id.Format = system.Format + 1
	tx := store.NewTx()
	tx.Begin()
	system.WriteIdentity(tx, id)
	p, err := tx.Commit()
	must(t, err)
	must(t, errors.Join(p.Wait(), tx.Close(), store.Close()))
	for _, open := range []func() error{
		func() error { _, err := keyload.Open(dir, keyload.Options{MustExist: true}); return err },
		func() error { _, err := check.Dir(t.Context(), dir, nil); return err },
		func() error { _, err := backup.OpenRest(dir, "test", nil); return err },
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), "FormatUnsupported") || !strings.Contains(err.Error(), "formats up to") {
			t.Errorf("it says %v", err)
		}
	}
	if copies, err := filepath.Glob(filepath.Join(dir, "format-*")); err != nil || len(copies) > 0 {
		t.Errorf("a copy was made of it: %v, %v", copies, err)
	}
}

// answers opens a store at the instant it was left and asks all queries.
func answers(t *testing.T, dir string) string {
	t.Helper()
	f := &filler{now: begin.Add(lasted)}
	var err error
	f.db, err = keyload.Open(dir, keyload.Options{MustExist: true, Clock: f.clock})
	must(t, err)
	defer func() { must(t, f.db.Close()) }()
	queries, err := lines("queries.txt")
	must(t, err)
	return f.ask(queries)
}

// same compares the answers, query by query: what a store answered then it
// answers now. There may be more to an answer now.
func same(t *testing.T, then, now string) {
	t.Helper()
	was, is := split(then), split(now)
	for query, answer := range was {
		if answer == "null" {
			continue // the operation did not exist
		}
		var a, b any
		must(t, json.Unmarshal([]byte(answer), &a))
		must(t, json.Unmarshal([]byte(is[query]), &b))
		if at := differs(a, b, ""); at != "" {
			t.Errorf("%s: differs at %s", query, at)
		}
	}
}

func split(text string) map[string]string {
	out := map[string]string{}
	query := ""
	for line := range strings.SplitSeq(text, "\n") {
		if name, _, ok := strings.Cut(line, " {"); ok && strings.Contains(name, ".") && name == strings.TrimSpace(name) {
			query = line
			continue
		}
		out[query] += line
	}
	return out
}

// differs is where a value lacks something of another one; "" is nowhere.
func differs(then, now any, at string) string {
	switch a := then.(type) {
	case map[string]any:
		b, ok := now.(map[string]any)
		if !ok {
			return at
		}
		for name, v := range a {
			if strings.HasSuffix(strings.ToLower(name), "agemillis") || name == "cursor" {
				continue
			}
			if d := differs(v, b[name], at+"/"+name); d != "" {
				return d
			}
		}
		return ""
	case []any:
		b, ok := now.([]any)
		if !ok || len(a) != len(b) {
			return at
		}
		for i := range a {
			if d := differs(a[i], b[i], at+"/item"); d != "" {
				return d
			}
		}
		return ""
	}
	if !reflect.DeepEqual(then, now) {
		return at
	}
	return ""
}

func unpack(t *testing.T, name, dir string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".tar.gz"))
	must(t, err)
	z, err := gzip.NewReader(bytes.NewReader(b))
	must(t, err)
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		must(t, err)
		if h.Typeflag != tar.TypeReg {
			continue
		}
		f, err := os.Create(filepath.Join(dir, filepath.Base(h.Name)))
		must(t, err)
		_, err = io.Copy(f, r)
		must(t, errors.Join(err, f.Close()))
	}
}

// With KEYLOAD_KEEP=name a store is filled by this program and kept under the
// name, for the versions after it.
func TestTheStepsFillAStoreThatAnswersTheQueries(t *testing.T) {
	dir := t.TempDir()
	f := &filler{now: begin}
	var err error
	f.db, err = keyload.Open(dir, keyload.Options{Shards: 2, Clock: f.clock})
	must(t, err)
	steps, err := lines("steps.txt")
	must(t, err)
	must(t, f.fill(steps))
	queries, err := lines("queries.txt")
	must(t, err)
	text := f.ask(queries)
	must(t, f.db.Close())
	if strings.Contains(text, "\n\"") {
		t.Errorf("a query is refused:\n%s", text)
	}
	if f.now.Sub(begin) != lasted {
		t.Errorf("it lasted %s", f.now.Sub(begin))
	}
	same(t, text, answers(t, dir))
	if name := os.Getenv("KEYLOAD_KEEP"); name != "" {
		keep(t, name, dir, text)
	}
}

func keep(t *testing.T, name, dir, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join("testdata", name+".txt"), []byte(text), 0o644))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(dir, file.Name()))
		must(t, err)
		if file.Name() == "LOCK" {
			continue
		}
		must(t, w.WriteHeader(&tar.Header{Name: file.Name(), Size: int64(len(content)), Mode: 0o644}))
		_, err = w.Write(content)
		must(t, err)
	}
	must(t, errors.Join(w.Close(), z.Close()))
	must(t, os.WriteFile(filepath.Join("testdata", name+".tar.gz"), b.Bytes(), 0o644))
}
