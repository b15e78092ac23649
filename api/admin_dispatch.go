package api

// AdminDispatch stops or resumes all delivery of the store.
var AdminDispatch = Define[AdminDispatchRequest, AdminDispatchResponse](Operation{
	Name: "admin.dispatch", Number: 43, Kind: Command, Scope: CatalogScope, Capability: CapBackupManage,
	Summary: "Stop or resume every delivery of the store",
	Doc: "While dispatch is paused every receive of a queue or group answers DispatchPaused; acknowledgements, renewals and reads " +
		"go on. With refuseIntake, publish, append and enqueue are refused too. A restored store begins paused, and what is due " +
		"(leases that run out, retries, expiry, retention) then waits as well, until dispatch is resumed. Groups that the restore " +
		"paused are resumed one by one with subscriptions.resume. Administrators only. The same state again changes nothing.",
	Destructive: true,
})

// Dispatch says whether the store delivers.
type Dispatch struct {
	Revision     uint64 `json:"revision" cbor:"1,keyasint" doc:"rises with every change; 0 as long as nobody ever changed it"`
	Paused       bool   `json:"paused" cbor:"2,keyasint" doc:"whether every receive is refused"`
	RefuseIntake bool   `json:"refuseIntake,omitzero" cbor:"3,keyasint,omitempty" doc:"whether publish, append and enqueue are refused too"`
	Restored     bool   `json:"restored,omitzero" cbor:"4,keyasint,omitempty" doc:"it is paused since the store was restored, and what is due waits"`
	Reason       string `json:"reason,omitzero" cbor:"5,keyasint,omitempty" doc:"why, in the words of whoever changed it"`
	ChangedBy    string `json:"changedBy,omitzero" cbor:"6,keyasint,omitempty" doc:"principal that changed it last"`
	ChangedAt    Time   `json:"changedAt,omitzero" cbor:"7,keyasint,omitempty" doc:"when it was changed last"`
}

// DispatchState is whether the store delivers.
type DispatchState string

// The states of dispatch.
const (
	DispatchRunning DispatchState = "running"
	DispatchPaused  DispatchState = "paused"
)

// AdminDispatchRequest is the state that is wanted.
type AdminDispatchRequest struct {
	CommandID        string        `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	State            DispatchState `json:"state" cbor:"2,keyasint" enum:"running,paused" doc:"running delivers, paused refuses every receive"`
	RefuseIntake     bool          `json:"refuseIntake,omitzero" cbor:"3,keyasint,omitempty" doc:"while paused, refuse publish, append and enqueue too"`
	Reason           string        `json:"reason,omitzero" cbor:"4,keyasint,omitempty" maxLength:"256" doc:"why, for whoever asks"`
	ExpectedRevision *uint64       `json:"expectedRevision,omitzero" cbor:"5,keyasint,omitempty" doc:"refuse unless dispatch is at this revision"`
}

// AdminDispatchResponse is the state as it is now.
type AdminDispatchResponse struct {
	Receipt  Receipt  `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Dispatch Dispatch `json:"dispatch" cbor:"2,keyasint" doc:"whether the store delivers now"`
	Changed  bool     `json:"changed,omitzero" cbor:"3,keyasint,omitempty" doc:"it was otherwise before"`
}

// GetCommandID is the caller's identity of the write.
func (r *AdminDispatchRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *AdminDispatchRequest) SetCommandID(id string) { r.CommandID = id }

// TargetDatabase is none: the request speaks of the whole store.
func (r *AdminDispatchRequest) TargetDatabase() (tenant, database string) { return "", "" }
