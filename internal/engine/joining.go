package engine

import (
	"context"
	"errors"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/resource/members"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/wire"
)

// joining is what a node without an identity asks another one. The id is that of the
// command that lets it in: whoever repeats it is the same node on the same disk.
type joining struct {
	ID      string `cbor:"1,keyasint"`
	Address string `cbor:"2,keyasint"`
}

// letIn notes that an invited node has joined, and gives it the identity of the
// store, once. A node that was let in and lost the answer repeats its question: it is
// answered as long as it has not told where it is, before which it votes in no shard.
// Nor can it have confirmed any entry: it forgets the id of its question when it has the
// identity on disk, and opens its log after that.
func letIn(ctx context.Context, e *Engine, node uint64, body []byte) ([]byte, error) {
	var j joining
	if err := wire.DecodeLog(body, &j); err != nil {
		return nil, fault.New(fault.Validation, "peer_call", "the call of another node cannot be read; it runs another version perhaps: %v", err)
	}
	if err := Announce(ctx, e, members.JoinRequest{CommandID: j.ID, Node: node, Address: j.Address}); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, e.public(err, "")
	}
	defer e.calls.Done()
	err := e.read(ctx, system.CatalogShard, func(s *kv.Snapshot) error {
		n, err := members.Find(s, system.CatalogShard, node)
		if err == nil && (n.State != api.NodeJoined || n.URL != "") {
			err = members.JoinedBefore(node)
		}
		return err
	})
	if err != nil {
		return nil, e.public(err, "")
	}
	b, err := wire.EncodeLog(e.identity)
	if err != nil {
		return nil, e.public(err, "")
	}
	return b, nil
}

// Join gives an empty store the identity of a cluster's, which ask gets of one of its
// nodes with a call of the kind and body it is given. A store that has one stays as
// it is. id is a command id that the same disk gives again, with the same address, until
// Join has succeeded or the command was refused.
func Join(store *kv.Store, id, address string, ask func(kind byte, body []byte) ([]byte, error)) error {
	tx := store.NewTx()
	_, known, err := system.ReadIdentity(tx)
	if err = errors.Join(err, tx.Close()); err != nil || known {
		return err
	}
	body, err := wire.EncodeLog(joining{id, address})
	if err != nil {
		return err
	}
	b, err := ask(callIdentity, body)
	if err != nil {
		return err
	}
	var given system.Identity
	if err := wire.DecodeLog(b, &given); err != nil || given.Format > system.Format {
		return fault.New(fault.FormatUnsupported, "newer_format", "the cluster runs a newer program than this node (%v); start this node with that one", err)
	}
	if err := writeIdentity(store, given); err != nil {
		return err
	}
	return kv.Sync(store) // before anybody is told that it is there
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
