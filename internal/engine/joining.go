package engine

import (
	"context"
	"errors"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/resource/members"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/wire"
)

// letIn notes that an invited node has joined, and gives it the identity of the
// store, once.
func letIn(ctx context.Context, e *Engine, node uint64, address string) ([]byte, error) {
	if err := Announce(ctx, e, members.JoinRequest{Node: node, Address: address}); err != nil {
		return nil, err
	}
	b, err := wire.EncodeLog(e.identity)
	if err != nil {
		return nil, e.public(err, "")
	}
	return b, nil
}

// Join gives an empty store the identity of a cluster's, which ask gets of one of its
// nodes with a call of the kind and body it is given. A store that has one stays as
// it is.
func Join(store *kv.Store, address string, ask func(kind byte, body []byte) ([]byte, error)) error {
	tx := store.NewTx()
	_, known, err := system.ReadIdentity(tx)
	if err = errors.Join(err, tx.Close()); err != nil || known {
		return err
	}
	b, err := ask(callIdentity, []byte(address))
	if err != nil {
		return err
	}
	var id system.Identity
	if err := wire.DecodeLog(b, &id); err != nil || id.Format > system.Format {
		return fault.New(fault.FormatUnsupported, "newer_format", "the cluster runs a newer program than this node (%v); start this node with that one", err)
	}
	return writeIdentity(store, id)
}

// Alone refuses the directory of a member of a cluster, which is no store alone: its
// state is not all it has, and what it did alone the others would not know. Errors:
// Conflict (reason cluster_member), or what reading it said.
func Alone(store *kv.Store, shards uint16) error {
	s := store.NewSnapshot()
	defer s.Close()
	for shard := range shards + 1 {
		at, ok, err := machine.StoredApplied(s, shard)
		if err != nil {
			return err
		}
		if ok {
			return fault.New(fault.Conflict, "cluster_member",
				"the directory is that of node %d of a cluster; serve it with its cluster.json there. A store of its own is made from a backup of the cluster (keyload backup, keyload restore)", at.Node)
		}
	}
	return nil
}

// forgetCluster makes a copy of a member's state that of a store alone.
func forgetCluster(store *kv.Store) error {
	tx := store.NewTx()
	tx.Begin()
	id, ok, err := system.ReadIdentity(tx)
	if err != nil || !ok {
		return errors.Join(err, tx.Close())
	}
	for shard := range id.Shards + 1 {
		machine.ForgetApplied(tx, shard)
	}
	pending, err := tx.Commit()
	if err != nil {
		return errors.Join(err, tx.Close())
	}
	return errors.Join(pending.Wait(), tx.Close())
}

// Nodes is the list of members as this node knows it, and the nodes that were chosen
// to lead a shard.
func Nodes(e *Engine) (Members, error) {
	s := e.store.NewSnapshot()
	defer s.Close()
	all, err := members.All(s, system.CatalogShard)
	if err != nil {
		return Members{}, err
	}
	chosen, err := members.Chosen(s, system.CatalogShard)
	return Members{all, chosen}, err
}
