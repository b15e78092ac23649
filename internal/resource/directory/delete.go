package directory

import (
	"cmp"
	"errors"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
)

// Deleting a resource goes in steps that survive a restart at any point:
//
//  1. freeze: the definition says Deleting and every shard has it, so nothing
//     can be written any more;
//  2. the door looks whether any shard holds rows of it;
//  3. resources.delete removes the name, or refuses and the door thaws it;
//  4. every shard gets the change and removes its rows as due work.
//
// A crash between 1 and 3 leaves a frozen resource; the door thaws those when
// it opens.

// FreezeRequest sets or clears Deleting. Only the door sends it.
type FreezeRequest struct {
	CommandID string `cbor:"1,keyasint" json:"commandId"`
	Tenant    string `cbor:"2,keyasint" json:"tenant"`
	Database  string `cbor:"3,keyasint" json:"database"`
	Name      string `cbor:"4,keyasint" json:"name"`
	Frozen    bool   `cbor:"5,keyasint" json:"frozen"`
}

// FreezeResponse is the definition as it is now.
type FreezeResponse struct {
	Receipt  api.Receipt  `cbor:"1,keyasint" json:"receipt"`
	Resource api.Resource `cbor:"2,keyasint" json:"resource"`
	Fence    uint64       `cbor:"3,keyasint" json:"fence"` // of this freeze; another one has a greater
}

// Freeze is the internal command of steps 1 and 3.
var Freeze = api.Define[FreezeRequest, FreezeResponse](api.Operation{
	Name: "system.freeze", Number: 60001, Kind: api.Command, Scope: api.CatalogScope,
	Summary: "Stop or allow writing to a resource that may be deleted",
})

func freeze(c *op.Ctx, req *FreezeRequest) (*FreezeResponse, error) {
	key := Name{c.Space.Shard, req.Tenant, req.Database, req.Name}
	old, err := byName.Shared(c.Tx, key)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return nil, fault.New(fault.NotFound, "unknown_resource", "there is no resource %q in database %q", req.Name, req.Database)
	}
	r := *old
	if !r.Deleting && !req.Frozen {
		return &FreezeResponse{Resource: r}, nil
	}
	// A second freeze of a frozen resource makes a new fence: what was looked at
	// under the first no longer counts.
	r.Deleting = req.Frozen
	fence, err := store(c, key, &r)
	if err != nil {
		return nil, err
	}
	if req.Frozen {
		n := nameOf(&r)
		n.Fence = fence
		byID.Put(c.Tx, numberKey{key.Shard, r.ID}, &n)
	}
	return &FreezeResponse{Resource: r, Fence: fence}, nil
}

// Deletable refuses a version that is not the expected one.
func Deletable(r *api.Resource, req *api.ResourcesDeleteRequest) error {
	if req.ExpectedVersion != 0 && req.ExpectedVersion != r.Version {
		return fault.New(fault.RevisionConflict, "version", "resource %q has version %d, not %d", r.Name, r.Version, req.ExpectedVersion).
			With("version", "%d", r.Version)
	}
	return nil
}

// NotEmpty is the refusal to delete what holds something.
func NotEmpty(r *api.Resource) error {
	held := "it holds messages"
	switch r.Kind {
	case api.KindCollection:
		held = "it holds documents, or traces of deleted ones"
	case api.KindTopic, api.KindStreamSet:
		held = "it holds events or their ids, or groups follow it"
	}
	return fault.New(fault.Conflict, "not_empty", "%s %q is not empty: %s; purge: true removes that for good, groups and what they have not finished included. Traces of deleted documents and finished messages count until their retention ends", r.Kind, r.Name, held)
}

// remove is step 3: what the door found is in the request.
func remove(c *op.Ctx, req *api.ResourcesDeleteRequest) (*api.ResourcesDeleteResponse, error) {
	key := Name{c.Space.Shard, req.Tenant, req.Database, req.Name}
	r, err := byName.Shared(c.Tx, key)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fault.New(fault.NotFound, "unknown_resource", "there is no resource %q in database %q", req.Name, req.Database)
	}
	if err := Deletable(r, req); err != nil {
		return nil, err
	}
	n, err := byID.Shared(c.Tx, numberKey{key.Shard, r.ID})
	switch {
	case err != nil:
		return nil, err
	case req.HoldsRows && !req.Purge:
		return nil, NotEmpty(r)
	case !r.Deleting || n == nil || n.Fence != req.Fence:
		return nil, fault.New(fault.Conflict, "not_frozen", "resource %q was changed while it was being deleted; delete it again", r.Name)
	}
	// From here on it succeeds.
	id, kind := r.ID, r.Kind
	byName.Delete(c.Tx, key)
	byID.Put(c.Tx, numberKey{key.Shard, id}, &number{Tenant: req.Tenant, Database: req.Database, Name: req.Name, Kind: kind, Gone: true})
	record := table.EncodeCBOR(nil, &forgotten{ID: id, Tenant: req.Tenant, Database: req.Database, Name: req.Name, Kind: kind})
	if _, err := changes.Append(c, changes.Forgotten, record); err != nil {
		return nil, err
	}
	status := api.DeleteDone
	if req.HoldsRows {
		status = api.DeletePurging
	}
	return &api.ResourcesDeleteResponse{Status: status}, nil
}

// forgotten is the change that frees a name and starts the removal of rows.
type forgotten struct {
	ID       uint32           `cbor:"1,keyasint"`
	Tenant   string           `cbor:"2,keyasint"`
	Database string           `cbor:"3,keyasint"`
	Name     string           `cbor:"4,keyasint"`
	Kind     api.ResourceKind `cbor:"5,keyasint"`
}

// deletion is the progress of removing a deleted resource's rows in a shard.
type deletion struct {
	Kind  api.ResourceKind `cbor:"1,keyasint"`
	Next  [16]byte         `cbor:"2,keyasint"` // hash of the partition to go on with
	Armed int64            `cbor:"3,keyasint,omitempty"`
}

var deletions = table.Table[numberKey, deletion]{
	ID: table.ResourcePurge, Name: "resourcePurge",
	Key: func(dst []byte, k numberKey) []byte {
		return codec.AppendUint32(codec.AppendUint16(dst, k.Shard), k.ID)
	},
	ParseKey: func(r *codec.KeyReader) numberKey { return numberKey{r.Uint16(), r.Uint32()} },
	Encode:   table.EncodeCBOR[deletion], Decode: table.DecodeCBOR[deletion],
}

// errNotDeleted says that the rows of a resource that is there would be removed.
var errNotDeleted = errors.New("the resource is not deleted")

// Forget is step 4 in a data shard.
func Forget(c *op.Ctx, record []byte) error {
	var f forgotten
	if err := table.DecodeCBOR(record, &f); err != nil {
		return err
	}
	shard := c.Space.Shard
	byName.Delete(c.Tx, Name{shard, f.Tenant, f.Database, f.Name})
	byID.Put(c.Tx, numberKey{shard, f.ID}, &number{Tenant: f.Tenant, Database: f.Database, Name: f.Name, Kind: f.Kind, Gone: true})
	d := deletion{Kind: f.Kind}
	table.Arm(c.Tx, shard, table.DueDeletion, codec.AppendUint32(nil, f.ID), &d.Armed, c.Now)
	deletions.Put(c.Tx, numberKey{shard, f.ID}, &d)
	return nil
}

// erase is the due handler of step 4: some partitions, some rows, then again.
func erase(c *op.Ctx, owner []byte, budget int) error {
	kr := codec.NewKeyReader(owner)
	k := numberKey{c.Space.Shard, kr.Uint32()}
	d, ok, err := deletions.Get(c.Tx, k)
	if err != nil || !ok {
		return err
	}
	if n, known, err := byID.Get(c.Tx, k); err != nil || !known || !n.Gone || n.Kind != d.Kind {
		return cmp.Or(err, error(&table.Damage{Table: deletions.Name, Key: deletions.Bytes(k), Cause: errNotDeleted}))
	}
	spaces, more, err := nextPartitions(c, d.Next, budget)
	if err != nil {
		return err
	}
	for _, s := range spaces {
		if budget > 0 {
			n, err := c.Registry.Purge(c, d.Kind, table.Owner{Space: s, Resource: k.ID}, budget)
			if err != nil {
				return err
			}
			budget -= n
		}
		if budget <= 0 {
			d.Next, more = s.Partition, true
			break
		}
	}
	if !more {
		deletions.Delete(c.Tx, k)
		return nil
	}
	if budget > 0 {
		d.Next = spaces[len(spaces)-1].Partition
		for i := len(d.Next) - 1; i >= 0; i-- { // the next hash
			if d.Next[i]++; d.Next[i] != 0 {
				break
			}
		}
	}
	d.Armed = 0
	table.Arm(c.Tx, c.Space.Shard, table.DueDeletion, owner, &d.Armed, c.Now)
	deletions.Put(c.Tx, k, &d)
	return nil
}

func nextPartitions(c *op.Ctx, from [16]byte, limit int) (spaces []table.Space, more bool, err error) {
	err = partitions.Each(c.Tx, c.Space.Shard, from, func(s table.Space, _ api.PartitionRef) (bool, error) {
		if len(spaces) == limit {
			more = true
			return false, nil
		}
		spaces = append(spaces, s)
		return true, nil
	})
	return spaces, more, err
}
