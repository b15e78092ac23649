package dispatch

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/table"
)

func openTx(t *testing.T) *kv.Tx {
	t.Helper()
	s, err := kv.Open("db", kv.Options{FS: vfs.NewMem(), NoSync: true, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	tx := s.NewTx()
	tx.Begin()
	t.Cleanup(func() {
		if err := errors.Join(tx.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return tx
}

func ctx(tx *kv.Tx, shard uint16) *op.Ctx {
	s := op.Scope{Space: table.Space{Shard: shard}, Now: 1000, Principal: &api.Principal{ID: "ann", Administrator: true}}
	return op.NewCtx(s, tx, [16]byte{1}, 1, 1, 1)
}

func reason(err error) string {
	if f := fault.From(err); f != nil {
		return string(f.Code) + "/" + f.Reason
	}
	return ""
}

// states checks what a shard lets through.
func states(t *testing.T, tx *kv.Tx, shard uint16, deliver, take string) {
	t.Helper()
	c := ctx(tx, shard)
	if got := reason(MayDeliver(&c.Scope)); got != deliver {
		t.Errorf("shard %d: a receive answers %q, want %q", shard, got, deliver)
	}
	if got := reason(MayTake(&c.Scope)); got != take {
		t.Errorf("shard %d: intake answers %q, want %q", shard, got, take)
	}
}

func TestDispatchIsStoppedAndResumedAndTheSameStateAgainChangesNothing(t *testing.T) {
	const stopped, refused = "DispatchPaused/dispatch_paused", "DispatchPaused/intake_refused"
	tx := openTx(t)
	states(t, tx, 0, "", "")
	zero, one := uint64(0), uint64(1)
	for i, step := range []struct {
		req           api.AdminDispatchRequest
		err           string
		changed       bool
		revision      uint64
		deliver, take string
	}{
		{api.AdminDispatchRequest{State: api.DispatchRunning}, "", false, 0, "", ""},
		{api.AdminDispatchRequest{State: api.DispatchRunning, RefuseIntake: true}, "Validation/invalid_field", false, 0, "", ""},
		{api.AdminDispatchRequest{State: api.DispatchPaused, ExpectedRevision: &one}, "RevisionConflict/dispatch_revision", false, 0, "", ""},
		{api.AdminDispatchRequest{State: api.DispatchPaused, ExpectedRevision: &zero}, "", true, 1, stopped, ""},
		{api.AdminDispatchRequest{State: api.DispatchPaused}, "", false, 1, stopped, ""},
		{api.AdminDispatchRequest{State: api.DispatchPaused, Reason: "why"}, "", true, 2, stopped, ""},
		{api.AdminDispatchRequest{State: api.DispatchPaused, Reason: "why", RefuseIntake: true}, "", true, 3, stopped, refused},
		{api.AdminDispatchRequest{State: api.DispatchRunning, Reason: "done"}, "", true, 4, "", ""},
		{api.AdminDispatchRequest{State: api.DispatchRunning}, "", false, 4, "", ""},
	} {
		resp, err := apply(ctx(tx, 0), &step.req)
		if reason(err) != step.err {
			t.Fatalf("step %d: %v, want %s", i, err, step.err)
		}
		if err == nil && (resp.Changed != step.changed || resp.Dispatch.Revision != step.revision || step.changed && (resp.Dispatch.ChangedBy != "ann" || resp.Dispatch.ChangedAt != 1000)) {
			t.Errorf("step %d: %+v", i, resp)
		}
		states(t, tx, 0, step.deliver, step.take)
	}
	if n, err := changes.Revision(tx, 0); n != 4 || err != nil {
		t.Errorf("the other shards get %d changes (%v)", n, err)
	}
}

func TestWhatARestorePausedWaitsWithAllThatIsDueUntilItIsResumed(t *testing.T) {
	tx := openTx(t)
	if err := PauseRestored(ctx(tx, 0), true); err != nil {
		t.Fatal(err)
	}
	states(t, tx, 0, "DispatchPaused/restored", "DispatchPaused/intake_refused")
	for _, step := range []struct {
		state    api.DispatchState
		restored bool
	}{{api.DispatchPaused, true}, {api.DispatchRunning, false}, {api.DispatchPaused, false}} {
		resp, err := apply(ctx(tx, 0), &api.AdminDispatchRequest{State: step.state})
		if err != nil || resp.Dispatch.Restored != step.restored {
			t.Errorf("%s: %+v, %v", step.state, resp, err)
		}
	}
	states(t, tx, 0, "DispatchPaused/dispatch_paused", "")
}

func TestADataShardDecidesByWhatWasInstalled(t *testing.T) {
	tx := openTx(t)
	if err := Install(ctx(tx, 3), table.EncodeCBOR(nil, &api.Dispatch{Revision: 1, Paused: true, RefuseIntake: true})); err != nil {
		t.Fatal(err)
	}
	states(t, tx, 3, "DispatchPaused/dispatch_paused", "DispatchPaused/intake_refused")
	states(t, tx, 4, "", "")
	if err := Install(ctx(tx, 3), []byte{0xff}); err == nil {
		t.Error("a record that is none was installed")
	}
}
