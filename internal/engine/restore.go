package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/resource/system"
)

// RestoreOptions say how a restored store begins.
type RestoreOptions struct {
	// Now is the instant of the restore in milliseconds; it may be behind what the
	// store has logged.
	Now int64
	// AllowIntake lets publish, append and enqueue go on while dispatch is paused.
	AllowIntake bool
}

// Restored is what became of a store.
type Restored struct {
	Earlier      string `json:"earlier"`      // incarnation that ended
	Incarnation  string `json:"incarnation"`  // incarnation that begins
	PausedGroups int    `json:"pausedGroups"` // groups that delivered before
}

// Restore ends the history of a store that was copied from a backup and begins a
// new one: dispatch and every group are paused, and tokens, cursors and receipts
// of the ended history hold no more. Nobody may have the store open, and nobody
// may open it before Restore has returned without an error: until then it still
// is what the backup was taken of. Errors are *fault.Error, as of Open, or the cause
// of ctx.
func Restore(ctx context.Context, store *kv.Store, o RestoreOptions) (Restored, error) {
	now, err := notBeforeLogged(store, o.Now)
	if err != nil {
		return Restored{}, OpenFault("the restored directory", err)
	}
	e, err := Open(Config{Store: store, copied: true, Now: func() time.Time { return time.UnixMilli(now) }})
	if err != nil {
		return Restored{}, err
	}
	was := e.identity
	paused, err := spread{e}.endHistory(ctx, !o.AllowIntake)
	if err = errors.Join(err, e.Close()); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return Restored{}, cause
		}
		return Restored{}, OpenFault("the restored directory", err)
	}
	id := newIdentity(was.Shards, o.Now)
	id.CreatedAt = was.CreatedAt
	if err := writeIdentity(store, id); err != nil {
		return Restored{}, OpenFault("the restored directory", err)
	}
	return Restored{uuid.UUID(was.Incarnation).String(), uuid.UUID(id.Incarnation).String(), paused}, nil
}

// notBeforeLogged is an instant, or the latest one that a shard has logged: to a
// shard that is days ahead, commands of a machine whose clock is behind are too old
// to be carried out. Its own commands wait until the clock is right.
func notBeforeLogged(store *kv.Store, now int64) (int64, error) {
	s := store.NewSnapshot()
	defer s.Close()
	id, _, err := system.ReadIdentity(s)
	for shard := uint16(0); err == nil && shard <= id.Shards; shard++ {
		var h machine.Head
		h, err = machine.StoredHead(s, shard)
		now = max(now, h.Time)
	}
	return now, err
}

// endHistory gives every shard the last commands of its history.
func (e spread) endHistory(ctx context.Context, refuseIntake bool) (paused int, err error) {
	step := func(shard uint16, after []byte) (*system.RestoreResponse, error) {
		req := &system.RestoreRequest{CommandID: e.commandID(), RefuseIntake: refuseIntake, After: after}
		resp, err := e.internal(ctx, shard, system.Restore.Operation, req.CommandID, req)
		if err != nil {
			return nil, err
		}
		return resp.(*system.RestoreResponse), nil
	}
	if _, err := step(system.CatalogShard, nil); err != nil {
		return 0, err
	}
	if err := e.run(ctx); err != nil {
		return 0, err
	}
	for shard := system.CatalogShard + 1; shard <= e.identity.Shards; shard++ {
		for after := []byte(nil); ; {
			resp, err := step(shard, after)
			if err != nil {
				return 0, err
			}
			paused += resp.Paused
			if after = resp.Next; after == nil {
				break
			}
		}
	}
	return paused, nil
}

// newIdentity begins a history. Its key is new too: whoever has a backup knows
// the old one.
func newIdentity(shards uint16, now int64) system.Identity {
	key := make([]byte, 32)
	rand.Read(key)
	return system.Identity{Format: system.Format, Incarnation: uuid.New(), Shards: shards, TokenKeys: [][]byte{key}, CreatedAt: now}
}

func writeIdentity(s *kv.Store, id system.Identity) error {
	tx := s.NewTx()
	tx.Begin()
	system.WriteIdentity(tx, id)
	pending, err := tx.Commit()
	if err != nil {
		return err
	}
	return errors.Join(pending.Wait(), tx.Close())
}
