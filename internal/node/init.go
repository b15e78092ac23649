package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
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
// named Admin. Errors: Conflict (reason store_exists or directory_not_empty)
// for a directory that holds anything.
func Init(ctx context.Context, dir string) (Created, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return Created{}, err
	}
	if err := mustBeEmpty(full); err != nil {
		return Created{}, err
	}
	db, err := keyload.Open(full)
	if err != nil {
		return Created{}, err
	}
	created, err := administrator(ctx, db)
	created.Dir = full
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

func mustBeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return fault.New(fault.Validation, "directory_unreadable", "the directory cannot be read: %v", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "MANIFEST-") {
			return fault.New(fault.Conflict, "store_exists",
				"there is a store in %s already; nothing was changed. Serve it, or make another key with: keyload api-keys create --dir %s --principal-id %s", dir, dir, Admin)
		}
	}
	return fault.New(fault.Conflict, "directory_not_empty", "%s is not empty; a store is made in an empty or missing directory", dir)
}
