package members

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
)

// JoinRequest says that a node asks for the identity of the store, or is the one
// that brings it.
type JoinRequest struct {
	CommandID string `cbor:"1,keyasint" json:"commandId"`
	Node      uint64 `cbor:"2,keyasint" json:"node"`
	Address   string `cbor:"3,keyasint" json:"address"`
	URL       string `cbor:"4,keyasint" json:"url"`
	// First is true for the node with which the cluster begins.
	First bool `cbor:"5,keyasint,omitempty" json:"first"`
	// Known is true for a node that has the identity and only tells where it is now.
	Known bool `cbor:"6,keyasint,omitempty" json:"known"`
}

// JoinResponse is the node as it is in the list now.
type JoinResponse struct {
	Receipt api.Receipt     `cbor:"1,keyasint" json:"receipt"`
	Node    api.ClusterNode `cbor:"2,keyasint" json:"node"`
}

// GetCommandID and SetCommandID make the request a command's.
func (r *JoinRequest) GetCommandID() string   { return r.CommandID }
func (r *JoinRequest) SetCommandID(id string) { r.CommandID = id }

// Join is the internal command.
var Join = api.Define[JoinRequest, JoinResponse](api.Operation{
	Name: "members.join", Number: 60004, Kind: api.Command, Scope: api.PartitionScope,
	Summary: "Note that a node has the identity of the store, and where it is",
})

// JoinedBefore refuses a node that asks for the identity again.
func JoinedBefore(node uint64) error {
	return fault.New(fault.Conflict, "node_joined",
		"node %d has joined before. If its disk was lost it is a new node now: replace it by one with a new number (keyload cluster replace)", node)
}

// join lets an invited node in, once: whoever asks again with another command has lost
// what it was given, with everything it had voted for.
func join(c *op.Ctx, req *JoinRequest) (*JoinResponse, error) {
	n, ok, err := nodes.Get(c.Tx, nodeKey{c.Space.Shard, req.Node})
	if err != nil {
		return nil, err
	}
	if req.First && !ok {
		all, err := All(c.Tx, c.Space.Shard)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			n, ok = api.ClusterNode{NodeID: req.Node, State: api.NodeInvited}, true
		}
	}
	switch {
	case !ok:
		return nil, fault.New(fault.NotFound, "unknown_node",
			"node %d was not invited: an administrator adds it first (keyload cluster add)", req.Node)
	case n.State == api.NodeRemoved:
		return nil, fault.New(fault.PermissionDenied, "node_removed", "node %d was removed from the cluster; its number is not used again", req.Node)
	case n.State == api.NodeJoined && !req.Known && !req.First:
		return nil, JoinedBefore(req.Node)
	case n.State == api.NodeInvited && req.Known:
		return nil, fault.New(fault.Conflict, "node_not_joined", "node %d was invited and has not fetched the identity of the store", req.Node)
	}
	if n.State == api.NodeJoined && n.Address == req.Address && n.URL == req.URL {
		return &JoinResponse{Node: n}, nil
	}
	n.State, n.Address, n.URL = api.NodeJoined, req.Address, req.URL
	put(c, &n)
	return &JoinResponse{Node: n}, nil
}
