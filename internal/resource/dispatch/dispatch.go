package dispatch

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/table"
)

// records holds the state: in the catalog shard the ruling copy, in every data
// shard the one its commands are decided by. A shard without one delivers.
var records = table.Table[uint16, api.Dispatch]{
	ID: table.Dispatch, Name: "dispatch", Hot: true,
	Key:      func(dst []byte, shard uint16) []byte { return codec.AppendUint16(dst, shard) },
	ParseKey: func(r *codec.KeyReader) uint16 { return r.Uint16() },
	Encode:   table.EncodeCBOR[api.Dispatch], Decode: table.DecodeCBOR[api.Dispatch],
}

// Resource is what this package brings to the registry.
func Resource() op.Resource {
	return op.Resource{
		Name:   "dispatch",
		Tables: []table.Info{records.Info()},
		Handlers: []op.Handler{
			op.Handle(api.AdminDispatch, op.Command[api.AdminDispatchRequest, api.AdminDispatchResponse]{Apply: apply, Urgent: true}),
		},
		Check: check,
	}
}

// State is whether a shard delivers. The zero value delivers.
func State(r kv.Reader, shard uint16) (api.Dispatch, error) {
	d, err := records.Shared(r, shard)
	if err != nil || d == nil {
		return api.Dispatch{}, err
	}
	return *d, nil
}

// MayDeliver refuses a receive while dispatch is paused. It costs one hot read.
// Error: DispatchPaused.
func MayDeliver(s *op.Scope) error {
	d, err := records.Shared(s.R, s.Space.Shard)
	if err != nil || d == nil || !d.Paused {
		return err
	}
	if d.Restored {
		return fault.New(fault.DispatchPaused, "restored",
			"the store was restored and delivers nothing until an administrator has looked (restore status) and resumes it with admin.dispatch")
	}
	return fault.New(fault.DispatchPaused, "dispatch_paused",
		"the whole store is paused: nothing is delivered until an administrator resumes it with admin.dispatch; acknowledgements and renewals go on")
}

// MayTake refuses what brings in new events and messages while intake is
// refused. It costs one hot read. Error: DispatchPaused.
func MayTake(s *op.Scope) error {
	d, err := records.Shared(s.R, s.Space.Shard)
	if err != nil || d == nil || !d.Paused || !d.RefuseIntake {
		return err
	}
	return fault.New(fault.DispatchPaused, "intake_refused",
		"the store takes no new events and messages until an administrator allows it with admin.dispatch; nothing happened, and the same command may be sent again then")
}

// apply replaces the state in the catalog shard and records the change for the
// others.
func apply(c *op.Ctx, req *api.AdminDispatchRequest) (*api.AdminDispatchResponse, error) {
	old, err := State(c.Tx, c.Space.Shard)
	if err != nil {
		return nil, err
	}
	paused := req.State == api.DispatchPaused
	if req.RefuseIntake && !paused {
		return nil, fault.Invalid("/refuseIntake", "goes with state paused; a store that delivers also takes")
	}
	if req.ExpectedRevision != nil && *req.ExpectedRevision != old.Revision {
		return nil, fault.New(fault.RevisionConflict, "dispatch_revision", "dispatch is at revision %d, not %d", old.Revision, *req.ExpectedRevision).
			With("revision", "%d", old.Revision)
	}
	if old.Paused == paused && old.RefuseIntake == req.RefuseIntake && (old.Reason == req.Reason || !old.Paused) {
		return &api.AdminDispatchResponse{Dispatch: old}, nil
	}
	d := api.Dispatch{
		Paused: paused, RefuseIntake: req.RefuseIntake, Reason: req.Reason,
		Restored: old.Restored && paused, // what is due waits on until the store delivers
	}
	err = set(c, &d, old.Revision)
	return &api.AdminDispatchResponse{Dispatch: d, Changed: true}, err
}

// set stores a state and hands it to the other shards.
func set(c *op.Ctx, d *api.Dispatch, before uint64) error {
	d.Revision, d.ChangedBy, d.ChangedAt = before+1, c.Principal.ID, api.Time(c.Now)
	records.Put(c.Tx, c.Space.Shard, d)
	_, err := changes.Append(c, changes.Dispatch, table.EncodeCBOR(nil, d))
	return err
}

// PauseRestored pauses a store that is being restored, in its catalog shard.
func PauseRestored(c *op.Ctx, refuseIntake bool) error {
	old, err := State(c.Tx, c.Space.Shard)
	if err != nil {
		return err
	}
	return set(c, &api.Dispatch{Paused: true, RefuseIntake: refuseIntake, Restored: true, Reason: "the store was restored from a backup"}, old.Revision)
}

// Install writes a changed state into a data shard.
func Install(c *op.Ctx, record []byte) error {
	var d api.Dispatch
	if err := table.DecodeCBOR(record, &d); err != nil {
		return err
	}
	records.Put(c.Tx, c.Space.Shard, &d)
	return nil
}
