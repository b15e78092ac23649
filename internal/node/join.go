package node

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
)

const (
	// joiningDir holds one file while a node joins: its name is the id of the command
	// that lets the node in, its content the address that the command has.
	joiningDir = "joining"
	// askAgain is how long a node that joins lets go by between attempts.
	askAgain = time.Second
)

// attempt is how this disk asks to be let in. It is on the disk before the cluster is
// asked: a process that ends before it has kept the answer asks for the same again, and
// no other disk can.
type attempt struct {
	files       *kv.Files
	id, address string
}

// begun is the attempt that this disk has begun, or a new one.
func begun(store *kv.Store, dir, address string) (*attempt, error) {
	files, err := kv.NewFiles(store, filepath.Join(dir, joiningDir))
	if err != nil {
		return nil, err
	}
	a := &attempt{files: files, address: address}
	names, err := files.Names()
	if err != nil || len(names) == 0 {
		return a, errors.Join(err, a.renew())
	}
	f, err := files.Open(names[0])
	if err != nil {
		return nil, err
	}
	kept, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	whole := false
	if a.id = names[0]; len(kept) > 0 {
		a.address, whole = strings.CutSuffix(string(kept), "\n")
	}
	if !whole { // it ended while it wrote this, so it has not asked
		a.address = address
		return a, a.renew()
	}
	return a, nil
}

// renew begins another attempt after one that was refused: it would be refused again
// for as long as its receipt is kept.
func (a *attempt) renew() error {
	if err := a.end(); err != nil {
		return err
	}
	a.id = api.NewCommandID()
	return a.files.Create(a.id, func(w io.Writer) error {
		_, err := io.WriteString(w, a.address+"\n")
		return err
	})
}

func (a *attempt) end() error {
	names, err := a.files.Names()
	for _, name := range names {
		err = errors.Join(err, a.files.Remove(name))
	}
	return err
}

// join asks the addresses of the settings for the identity of the store, until one of
// them gives it or says that it never will.
func (m *member) join(ctx context.Context) error {
	if m.settings.Bootstrap {
		return nil
	}
	address := m.settings.Advertise
	if address == "" {
		address = m.mesh.Addr()
	}
	a, err := begun(m.store, m.o.Dir, address)
	if err != nil {
		return engine.OpenFault(m.o.Dir, err)
	}
	for said := ""; ; {
		last, err := m.ask(ctx, a)
		switch {
		case err != nil:
			return err
		case last == nil:
			return a.end()
		}
		if text := last.Error(); text != said {
			said = text
			m.o.Log.Warn("this node is not in the cluster yet; it asks again", "error", text)
		}
		t := time.NewTimer(askAgain)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fault.New(fault.Cancelled, "not_joined", "the node was stopped before it had joined the cluster")
		}
	}
}

// ask asks each address once. err ends the node; last is why it is to ask again, nil
// when it has the identity.
func (m *member) ask(ctx context.Context, a *attempt) (last, err error) {
	for _, at := range m.settings.Join {
		last = engine.Join(m.store, a.id, a.address, func(kind byte, body []byte) ([]byte, error) {
			_, b, err := m.mesh.CallAt(ctx, at, kind, body)
			return b, err
		})
		if last == nil {
			return nil, nil
		}
		switch fault.CodeOf(last) {
		case "": // of this disk: what is in its memory now may not be on it
			return nil, engine.OpenFault(m.o.Dir, last)
		case fault.Conflict, fault.PermissionDenied, fault.FormatUnsupported:
			return nil, last
		case fault.NotFound, fault.CursorExpired:
			// it was not invited; or the id is too old to be new
			if err := a.renew(); err != nil {
				return nil, engine.OpenFault(m.o.Dir, err)
			}
		}
	}
	return last, nil
}
