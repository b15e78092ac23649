package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/cli"
	"github.com/keyload/keyload/internal/kv"
)

// interruptor is a terminal that interrupts the command when it shows a word.
type interruptor struct {
	bytes.Buffer
	word      string
	interrupt func()
}

func (i *interruptor) Write(p []byte) (int, error) {
	n, err := i.Buffer.Write(p)
	if strings.Contains(i.String(), i.word) {
		i.interrupt()
	}
	return n, err
}

// filled makes a store with messages and without the rows by which they are found.
func filled(t *testing.T, dir string) {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := keyload.Open(dir, keyload.Options{Durability: api.DurableProcess})
	ok(err)
	_, err = db.ConfigureResource(t.Context(), &api.ResourcesConfigureRequest{Name: "jobs", Kind: api.KindQueue})
	ok(err)
	for n := range 5 {
		var ms []api.Mutation
		for i := range 200 {
			ms = append(ms, keyload.Enqueue("jobs", api.Message{MessageID: fmt.Sprint(n, "-", i), Payload: api.Of(i)}))
		}
		_, err = db.Commit(t.Context(), api.PartitionRef{}, ms...)
		ok(err)
	}
	ok(db.Close())
}

func loseReady(t *testing.T, dir string) {
	t.Helper()
	s, err := kv.Open(dir, kv.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	tx := s.NewTx()
	tx.Begin()
	var keys [][]byte
	err = tx.Scan([]byte{53}, []byte{54}, false, func(key, _ []byte) (bool, error) {
		keys = append(keys, bytes.Clone(key))
		return true, nil
	})
	for _, k := range keys {
		tx.Delete(k)
	}
	p, cerr := tx.Commit()
	if err := errors.Join(err, cerr); err != nil || len(keys) != 1000 {
		t.Fatalf("%d rows, %v", len(keys), err)
	}
	if err := errors.Join(p.Wait(), tx.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// One interrupt ends what would go on for hours on a large store, while it reads.
func TestAnInterruptEndsACheckARepairAndARestoreOnTheirWay(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	filled(t, at("data"))
	if code := cli.Run(t.Context(), []string{"backup", "create", at("a.klb"), "--dir", at("data")}, cli.Streams{Out: &bytes.Buffer{}, Err: t.Output()}); code != 0 {
		t.Fatalf("the backup exits with %d", code)
	}
	loseReady(t, at("data"))
	for _, c := range []struct{ word, line string }{
		{"checked", "check " + at("data")},
		{"checked", "check --repair-indexes " + at("data")},
		{"compared", "check --repair-indexes " + at("data")},
		{"verified", "restore " + at("a.klb") + " " + at("new")},
		{"restored", "restore " + at("a.klb") + " " + at("new")},
		{"checked", "restore " + at("a.klb") + " " + at("new")},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		terminal := &interruptor{word: c.word, interrupt: cancel}
		var out bytes.Buffer
		code := cli.Run(ctx, strings.Fields(c.line), cli.Streams{Out: &out, Err: terminal, ErrTerminal: true})
		if code != 130 || out.Len() > 0 || !strings.HasSuffix(terminal.String(), "\nkeyload: interrupted\n") {
			t.Errorf("%s, interrupted while it shows %q: exits with %d, %s\n%s", c.line, c.word, code, &out, terminal)
		}
		if _, err := os.Stat(at("new")); err == nil {
			t.Errorf("%s, interrupted while it shows %q: it left something", c.line, c.word)
		}
	}
	var out bytes.Buffer
	if code := cli.Run(t.Context(), []string{"check", at("data"), "--repair-indexes"}, cli.Streams{Out: &out, Err: t.Output()}); code != 0 || !strings.Contains(out.String(), "1000 rows added") {
		t.Errorf("the repair after that exits with %d: %s", code, &out)
	}
}
