package system

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/resource/group"
	"github.com/keyload/keyload/internal/resource/lineage"
	"github.com/keyload/keyload/internal/resource/members"
)

// RestoreRequest ends the present history in one shard. The catalog shard comes
// first; its change of dispatch is then installed in the others.
type RestoreRequest struct {
	CommandID    string `cbor:"1,keyasint" json:"commandId"`
	RefuseIntake bool   `cbor:"2,keyasint" json:"refuseIntake"`
	// After is where the step before ended; nil in the first.
	After []byte `cbor:"3,keyasint,omitempty" json:"after"`
}

// RestoreResponse says how far it came.
type RestoreResponse struct {
	Receipt api.Receipt `cbor:"1,keyasint" json:"receipt"`
	Next    []byte      `cbor:"2,keyasint,omitempty" json:"next"` // nil when the shard is done
	Paused  int         `cbor:"3,keyasint" json:"paused"`         // groups paused by this step
}

// GetCommandID and SetCommandID make the request a command's.
func (r *RestoreRequest) GetCommandID() string   { return r.CommandID }
func (r *RestoreRequest) SetCommandID(id string) { r.CommandID = id }

// Restore is the internal command: the last ones of a history. The new one
// begins when the identity of the store is written anew.
var Restore = api.Define[RestoreRequest, RestoreResponse](api.Operation{
	Name: "system.restore", Number: 60003, Kind: api.Command, Scope: api.PartitionScope,
	Summary: "End a shard's history, and pause what it delivers",
})

// groupsPerStep bounds one step.
const groupsPerStep = 256

// restore pauses the shard's groups step by step; the last step ends the history
// at its own position. Nothing else changes: positions, leases, due rows and
// receipts stay as the backup has them.
func restore(c *op.Ctx, req *RestoreRequest) (*RestoreResponse, error) {
	if c.Space.Shard == CatalogShard {
		if err := dispatch.PauseRestored(c, req.RefuseIntake); err != nil {
			return nil, err
		}
		if err := members.Forget(c); err != nil {
			return nil, err
		}
		return &RestoreResponse{}, lineage.End(c)
	}
	next, paused, err := group.PauseRestored(c, req.After, groupsPerStep)
	if err != nil {
		return nil, err
	}
	if next == nil {
		err = lineage.End(c)
	}
	return &RestoreResponse{Next: next, Paused: paused}, err
}
