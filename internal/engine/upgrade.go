package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/system"
)

// upgrade makes a store of an older format one of this program's. Before that it
// keeps a copy as it was, in a directory within the store's: an older program can
// be started on it, should the upgrade be regretted.
func upgrade(e *Engine) error {
	old := e.identity.Format
	kept := fmt.Sprintf("format-%d", old)
	if !e.cfg.copied {
		if err := keep(e.store, kept); err != nil {
			return fault.New(fault.RecoveryRequired, "upgrade",
				"the store has format %d and is to be upgraded to %d, but a copy of it as it is cannot be kept first: %v. Nothing was changed; make room and open it again, or use the program that wrote it", old, system.Format, err)
		}
		e.logger.Warn("the store was upgraded; a copy of it as it was is kept in its directory and takes room until it is removed",
			"from", old, "to", system.Format, "copy", kept)
	}
	e.identity.Format = system.Format
	return writeIdentity(e.store, e.identity)
}

func keep(store *kv.Store, name string) error {
	c, err := store.Checkpoint(context.Background())
	if err != nil {
		return err
	}
	return errors.Join(c.Keep(name), c.Close())
}
