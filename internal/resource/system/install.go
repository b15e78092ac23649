package system

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/table"
)

// InstallRequest carries catalog changes to a data shard, in revision order.
type InstallRequest struct {
	CommandID string           `cbor:"1,keyasint" json:"commandId"`
	Changes   []changes.Change `cbor:"2,keyasint" json:"changes"`
}

// InstallResponse says where the shard is now.
type InstallResponse struct {
	Receipt  api.Receipt `cbor:"1,keyasint" json:"receipt"`
	Revision uint64      `cbor:"2,keyasint" json:"revision"`
}

// GetCommandID and SetCommandID make the request a command's.
func (r *InstallRequest) GetCommandID() string   { return r.CommandID }
func (r *InstallRequest) SetCommandID(id string) { r.CommandID = id }

// Install is the internal command.
var Install = api.Define[InstallRequest, InstallResponse](api.Operation{
	Name: "system.install", Number: 60000, Kind: api.Command, Scope: api.PartitionScope,
	Summary: "Bring catalog changes to a shard",
})

// install applies the changes the shard lacks. One it has is passed over, so the
// command can be repeated and needs no receipt.
func install(c *op.Ctx, req *InstallRequest) (*InstallResponse, error) {
	for i := range req.Changes {
		ch := &req.Changes[i]
		due, err := changes.Installed(c, ch.Revision)
		if err != nil {
			return nil, err
		}
		if !due {
			continue
		}
		switch ch.Kind {
		case changes.Resource:
			err = directory.Install(c, ch.Record)
		case changes.Principal:
			err = access.Install(c, ch.Record)
		case changes.Dispatch:
			err = dispatch.Install(c, ch.Record)
		case changes.Forgotten:
			err = directory.Forget(c, ch.Record)
		default:
			err = fmt.Errorf("catalog change %d is of kind %d, which this program does not know", ch.Revision, ch.Kind)
		}
		if err != nil {
			return nil, err
		}
	}
	revision, err := changes.Revision(c.Tx, c.Space.Shard)
	return &InstallResponse{Revision: revision}, err
}

// Resource is what this package brings to the registry.
func Resource() op.Resource {
	return op.Resource{
		Name:   "system",
		Tables: append([]table.Info{identities.Info()}, changes.Tables()...),
		Check:  check,
		Handlers: []op.Handler{
			op.Handle(Install, op.Command[InstallRequest, InstallResponse]{
				Apply: install, Transient: func(*InstallResponse) bool { return true },
			}),
			op.Handle(Restore, op.Command[RestoreRequest, RestoreResponse]{
				Apply: restore, Transient: func(*RestoreResponse) bool { return true },
			}),
			op.Ask(api.AdminRestoreStatus, op.Query[api.AdminRestoreStatusRequest, api.AdminRestoreStatusResponse]{Run: restoreStatus}),
		},
	}
}
