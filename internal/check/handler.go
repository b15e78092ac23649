package check

import (
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/system"
)

// listedFindings bounds one answer: who wants more puts these right first, or checks
// the directory.
const listedFindings = 100

// heldRows bounds what a check holds on a node that serves: damage may be of any
// extent, and must not take the memory of everybody else's work.
const heldRows = 100_000

// Handler answers admin.check: one shard a call, on one snapshot, and one call at a
// time on a node, since each reads a whole shard.
func Handler() op.Handler {
	var running sync.Mutex
	return op.Ask(api.AdminCheck, op.Query[api.AdminCheckRequest, api.AdminCheckResponse]{
		Run: func(v *op.View, req *api.AdminCheckRequest) (*api.AdminCheckResponse, error) {
			if !v.Principal.Administrator {
				return nil, fault.New(fault.PermissionDenied, "administrator_only", "a check reads what belongs to every tenant, so only an administrator may ask for it")
			}
			if !running.TryLock() {
				f := fault.New(fault.ResourceExhausted, "check_running", "this node is checking a shard for another caller; nothing was read. Try again when that check has ended")
				return nil, f.WithRetry(fault.RetryAfterChange)
			}
			defer running.Unlock()
			return shard(v, uint16(req.Shard))
		},
	})
}

func shard(v *op.View, number uint16) (*api.AdminCheckResponse, error) {
	s, ok := v.R.(*kv.Snapshot)
	if !ok {
		return nil, fault.New(fault.UnsupportedCapability, "no_snapshot", "a check needs a snapshot of the whole store")
	}
	id, _, err := system.ReadIdentity(s)
	if err != nil {
		return nil, err
	}
	a, err := audit(s, v.Registry, id, number, heldRows, func(int64) error {
		runtime.Gosched() // who commits goes first
		return nil
	})
	if err != nil {
		return nil, err
	}
	resp := &api.AdminCheckResponse{
		Incarnation: uuid.UUID(id.Incarnation).String(), Format: id.Format, Shard: int64(number), Shards: int64(id.Shards) + 1,
		Position: a.Position, Rows: a.Rows, Bytes: a.Bytes, MoreFindings: a.Left + int64(max(0, len(a.Findings)-listedFindings)),
		Counts: []api.CheckCount{}, Findings: []api.CheckFinding{},
	}
	for _, name := range slices.Sorted(maps.Keys(a.Counts)) {
		resp.Counts = append(resp.Counts, api.CheckCount{Name: name, Count: a.Counts[name]})
	}
	for _, f := range a.Findings[:min(len(a.Findings), listedFindings)] {
		resp.Findings = append(resp.Findings, api.CheckFinding{Invariant: f.Invariant, Where: f.Where, Text: f.Text, Derived: f.Derived})
	}
	return resp, nil
}
