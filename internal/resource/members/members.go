package members

import (
	"strconv"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// nodes are all that ever were members, removed ones included, by shard (always the
// catalog's) and id.
var nodes = table.Table[nodeKey, api.ClusterNode]{
	ID: table.Member, Name: "member",
	Key: func(dst []byte, k nodeKey) []byte {
		return codec.AppendUint64(codec.AppendUint16(dst, k.Shard), k.Node)
	},
	ParseKey: func(r *codec.KeyReader) nodeKey { return nodeKey{r.Uint16(), r.Uint64()} },
	Encode:   table.EncodeCBOR[api.ClusterNode], Decode: table.DecodeCBOR[api.ClusterNode],
}

type nodeKey struct {
	Shard uint16
	Node  uint64
}

// chosen are the nodes that should lead a shard.
var chosen = table.Table[leaderKey, choice]{
	ID: table.Leadership, Name: "leadership",
	Key: func(dst []byte, k leaderKey) []byte {
		return codec.AppendUint16(codec.AppendUint16(dst, k.Shard), k.Led)
	},
	ParseKey: func(r *codec.KeyReader) leaderKey { return leaderKey{r.Uint16(), r.Uint16()} },
	Encode:   table.EncodeCBOR[choice], Decode: table.DecodeCBOR[choice],
}

type leaderKey struct {
	Shard uint16 // the catalog's
	Led   uint16
}

type choice struct {
	Node uint64 `cbor:"1,keyasint"`
}

// Resource is what this package brings to the registry.
func Resource() op.Resource {
	return op.Resource{
		Name:   "members",
		Tables: []table.Info{nodes.Info(), chosen.Info()},
		Handlers: []op.Handler{
			op.Handle(api.ClusterAdd, op.Command[api.ClusterAddRequest, api.ClusterAddResponse]{Apply: add, Urgent: true}),
			op.Handle(api.ClusterRemove, op.Command[api.ClusterRemoveRequest, api.ClusterRemoveResponse]{Apply: remove, Urgent: true}),
			op.Handle(api.ClusterReplace, op.Command[api.ClusterReplaceRequest, api.ClusterReplaceResponse]{Apply: replace, Urgent: true}),
			op.Handle(api.ClusterDrain, op.Command[api.ClusterDrainRequest, api.ClusterDrainResponse]{Apply: drain, Urgent: true}),
			op.Handle(api.ClusterTransfer, op.Command[api.ClusterTransferRequest, api.ClusterTransferResponse]{Apply: transfer, Urgent: true}),
			op.Handle(Join, op.Command[JoinRequest, JoinResponse]{Apply: join, Urgent: true}),
		},
		Check: check,
	}
}

// All lists every node that ever was a member, by id.
func All(r kv.Reader, catalogShard uint16) ([]api.ClusterNode, error) {
	var out []api.ClusterNode
	err := nodes.Scan(r, table.Range{Prefix: codec.AppendUint16(nil, catalogShard)}, func(_ nodeKey, n *api.ClusterNode) (bool, error) {
		out = append(out, *n)
		return true, nil
	})
	return out, err
}

// Find reads a node; its State is empty where none has the number.
func Find(r kv.Reader, catalogShard uint16, id uint64) (api.ClusterNode, error) {
	n, _, err := nodes.Get(r, nodeKey{catalogShard, id})
	return n, err
}

// Chosen is the node that should lead each shard for which one was chosen.
func Chosen(r kv.Reader, catalogShard uint16) (map[uint16]uint64, error) {
	out := map[uint16]uint64{}
	err := chosen.Scan(r, table.Range{Prefix: codec.AppendUint16(nil, catalogShard)}, func(k leaderKey, c *choice) (bool, error) {
		out[k.Led] = c.Node
		return true, nil
	})
	return out, err
}

// Forget removes the list: a store that is restored is no cluster yet, whatever the
// one was that its backup was taken of.
func Forget(c *op.Ctx) error {
	all, err := All(c.Tx, c.Space.Shard)
	if err != nil {
		return err
	}
	for i := range all {
		nodes.Delete(c.Tx, nodeKey{c.Space.Shard, all[i].NodeID})
	}
	return forgetChoices(c, func(uint64) bool { return true })
}

// forgetChoices removes the choices of the nodes that match.
func forgetChoices(c *op.Ctx, match func(node uint64) bool) error {
	var gone []leaderKey
	err := chosen.Scan(c.Tx, table.Range{Prefix: codec.AppendUint16(nil, c.Space.Shard)}, func(k leaderKey, v *choice) (bool, error) {
		if match(v.Node) {
			gone = append(gone, k)
		}
		return true, nil
	})
	for _, k := range gone {
		chosen.Delete(c.Tx, k)
	}
	return err
}

// member finds a node that was not removed.
func member(c *op.Ctx, id uint64) (*api.ClusterNode, error) {
	n, ok, err := nodes.Get(c.Tx, nodeKey{c.Space.Shard, id})
	if err != nil || ok && n.State != api.NodeRemoved {
		return &n, err
	}
	all, err := All(c.Tx, c.Space.Shard)
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, alone()
	}
	return nil, fault.New(fault.NotFound, "unknown_node", "node %d is no member of this cluster", id)
}

// alone refuses what only a cluster can do.
func alone() error {
	return fault.New(fault.UnsupportedCapability, "no_cluster",
		"this store runs alone; start it with cluster settings first (keyload cluster --help), and it is the first node of a cluster").
		WithRetry(fault.RetryAfterChange)
}

// put stores a node at its next revision.
func put(c *op.Ctx, n *api.ClusterNode) {
	n.Revision++
	nodes.Put(c.Tx, nodeKey{c.Space.Shard, n.NodeID}, n)
}

// room refuses a node too many.
func room(c *op.Ctx) error {
	all, err := All(c.Tx, c.Space.Shard)
	if err != nil {
		return err
	}
	n := 0
	for i := range all {
		if all[i].State != api.NodeRemoved {
			n++
		}
	}
	switch {
	case n == 0:
		return alone()
	case n >= limits.ClusterNodes:
		return fault.New(fault.Conflict, "too_many_nodes", "the cluster has %d nodes; the most is %d", n, limits.ClusterNodes).
			With("limit", "%d", limits.ClusterNodes)
	}
	return nil
}

// invite makes the row of a new node.
func invite(c *op.Ctx, id, replaces uint64, address string) (*api.ClusterNode, error) {
	old, known, err := nodes.Get(c.Tx, nodeKey{c.Space.Shard, id})
	switch {
	case err != nil:
		return nil, err
	case !hostAndPort(address):
		return nil, fault.Invalid("/address", "must be host:port, with a port from 1 to 65535, at which the other nodes reach it")
	case known && old.State == api.NodeInvited && old.Address == address && old.Replaces == replaces:
		return &old, nil
	case known:
		return nil, fault.New(fault.Conflict, "node_known",
			"the number %d was given out before (the node is %s); a node that lost its disk, or comes back, is a new one with a new number", id, old.State)
	}
	return &api.ClusterNode{NodeID: id, Address: address, State: api.NodeInvited, Replaces: replaces}, nil
}

// hostAndPort says that an address has both. Whether anybody is there is not known
// here.
func hostAndPort(address string) bool {
	at := strings.LastIndexByte(address, ':')
	if at < 1 {
		return false
	}
	host := address[:at]
	if strings.ContainsAny(host, ":[]") && (host[0] != '[' || strings.IndexByte(host, ']') != len(host)-1 || len(host) < 4) {
		return false
	}
	port, err := strconv.ParseUint(address[at+1:], 10, 16)
	return err == nil && port > 0 && !strings.ContainsAny(host, " /@")
}

func add(c *op.Ctx, req *api.ClusterAddRequest) (*api.ClusterAddResponse, error) {
	n, err := invite(c, req.NodeID, 0, req.Address)
	if err != nil {
		return nil, err
	}
	if n.Revision == 0 {
		if err := room(c); err != nil {
			return nil, err
		}
		put(c, n)
	}
	return &api.ClusterAddResponse{Node: *n}, nil
}

func remove(c *op.Ctx, req *api.ClusterRemoveRequest) (*api.ClusterRemoveResponse, error) {
	n, err := member(c, req.NodeID)
	if err != nil {
		return nil, err
	}
	if err := notLast(c, n); err != nil {
		return nil, err
	}
	n.State = api.NodeRemoved
	put(c, n)
	return &api.ClusterRemoveResponse{Node: *n}, forgetChoices(c, func(node uint64) bool { return node == n.NodeID })
}

// notLast refuses the removal of the only node that has joined.
func notLast(c *op.Ctx, n *api.ClusterNode) error {
	all, err := All(c.Tx, c.Space.Shard)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].State == api.NodeJoined && all[i].NodeID != n.NodeID {
			return nil
		}
	}
	return fault.New(fault.Conflict, "last_node",
		"node %d is the last one that has joined; the store would be gone with it. Add another one first, and wait until it has joined", n.NodeID)
}

func replace(c *op.Ctx, req *api.ClusterReplaceRequest) (*api.ClusterReplaceResponse, error) {
	n, err := invite(c, req.By, req.NodeID, req.Address)
	if err != nil {
		return nil, err
	}
	if n.Revision > 0 {
		return &api.ClusterReplaceResponse{Node: *n}, nil
	}
	old, err := member(c, req.NodeID)
	if err != nil {
		return nil, err
	}
	if err := notLast(c, old); err != nil {
		return nil, err
	}
	old.State = api.NodeRemoved
	put(c, old)
	put(c, n)
	return &api.ClusterReplaceResponse{Node: *n}, forgetChoices(c, func(node uint64) bool { return node == old.NodeID })
}

func drain(c *op.Ctx, req *api.ClusterDrainRequest) (*api.ClusterDrainResponse, error) {
	n, err := member(c, req.NodeID)
	if err != nil {
		return nil, err
	}
	if n.Draining != req.Draining {
		n.Draining = req.Draining
		put(c, n)
	}
	return &api.ClusterDrainResponse{Node: *n}, nil
}

func transfer(c *op.Ctx, req *api.ClusterTransferRequest) (*api.ClusterTransferResponse, error) {
	key := leaderKey{c.Space.Shard, uint16(req.Shard)}
	resp := &api.ClusterTransferResponse{Shard: req.Shard, NodeID: req.NodeID}
	if req.NodeID == 0 {
		if _, ok, err := chosen.Get(c.Tx, key); err != nil || !ok {
			return resp, err
		}
		chosen.Delete(c.Tx, key)
		return resp, nil
	}
	n, err := member(c, req.NodeID)
	switch {
	case err != nil:
		return nil, err
	case n.State != api.NodeJoined:
		return nil, fault.New(fault.Conflict, "not_joined", "node %d was invited and has not joined yet", n.NodeID)
	case n.Draining:
		return nil, fault.New(fault.Conflict, "draining", "node %d is draining and leads nothing", n.NodeID)
	}
	chosen.Put(c.Tx, key, &choice{req.NodeID})
	return resp, nil
}
