package node

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
)

// Admin is the name of the first administrator.
const Admin = "admin"

// Created is a new store and the key of its first administrator, which is told
// this once.
type Created struct {
	Dir         string `json:"dir"`
	Incarnation string `json:"incarnation"`
	Principal   string `json:"principal"`
	APIKey      string `json:"apiKey,omitempty"`
}

// Init makes a store in an empty or missing directory, with an administrator
// named Admin. Until all of that is there, nothing in the directory opens as a
// store, and the same call begins anew. Errors: Conflict (reason store_exists,
// directory_not_empty or foreign_files) for a directory that holds anything,
// RecoveryRequired (reason restore_unfinished) for what a restore left, Validation
// (reason directory_unusable).
func Init(ctx context.Context, dir string) (Created, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return Created{}, err
	}
	making, err := kv.BeginNew(full, kv.Options{})
	if err != nil {
		return Created{}, initFault(full, err)
	}
	created, err := fill(ctx, making)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Created{}, errors.Join(initFault(full, err), making.Abort())
	}
	if err := making.Publish(); err != nil {
		return Created{}, initFault(full, err)
	}
	created.Dir = full
	return created, nil
}

// fill makes the store and what must be in it. Nobody can open it before it is
// published: there must be no store whose key nobody was shown.
func fill(ctx context.Context, making *kv.Restoring) (Created, error) {
	store, err := making.New()
	if err != nil {
		return Created{}, err
	}
	db, err := keyload.OpenStore(store, keyload.Options{})
	if err != nil {
		return Created{}, err
	}
	created, err := administrator(ctx, db)
	return created, errors.Join(err, db.Close())
}

// administrator makes the first principal and its key.
func administrator(ctx context.Context, db *keyload.DB) (Created, error) {
	_, err := api.Call(ctx, db, api.PrincipalsConfigure, &api.PrincipalsConfigureRequest{
		Principal: api.Principal{ID: Admin, Administrator: true, PolicyEpoch: 1},
	})
	if err != nil {
		return Created{}, err
	}
	key, err := api.Call(ctx, db, api.APIKeysCreate, &api.APIKeysCreateRequest{PrincipalID: Admin})
	if err != nil {
		return Created{}, err
	}
	return Created{Incarnation: key.Receipt.Token.Incarnation, Principal: Admin, APIKey: key.APIKey}, nil
}

// initFault turns what kept a store from being made into the contract's codes.
func initFault(dir string, err error) error {
	switch _, there := kv.StoreAround(dir, kv.Options{}); {
	case fault.From(err) != nil, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, kv.ErrNotEmpty) && there:
		return fault.New(fault.Conflict, "store_exists", "there is a store in %s already; nothing was changed", dir)
	case errors.Is(err, kv.ErrNotEmpty):
		return fault.New(fault.Conflict, "directory_not_empty", "%s is not empty; a store is made in an empty or missing directory", dir)
	case errors.Is(err, kv.ErrForeign):
		return fault.New(fault.Conflict, "foreign_files", "a store in %s was not made to its end, and beside what is left of it there is something else: %v. Nothing was changed", dir, err)
	}
	return engine.OpenFault(dir, err)
}
