package keyload_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
)

// across asks for one message of each lane; the receives get ids of their own.
func across(queues ...string) *api.QueuesReceiveAcrossLanesRequest {
	req := &api.QueuesReceiveAcrossLanesRequest{RequestID: api.NewCommandID()}
	for _, q := range queues {
		req.Requests = append(req.Requests, api.QueuesReceiveRequest{Lane: api.LaneRef{Queue: q}})
	}
	req.NameParts()
	return req
}

// statuses are the outcomes in short; a refusal has its code.
func statuses(r *api.QueuesReceiveAcrossLanesResponse) (out []string) {
	for _, o := range r.Outcomes {
		s := string(o.Status)
		if o.Error != nil {
			s += " " + string(o.Error.Code)
		}
		out = append(out, s)
	}
	return out
}

func enqueue(t *testing.T, db *keyload.DB, queue string, n int) {
	t.Helper()
	for i := range n {
		_, err := db.Commit(t.Context(), api.PartitionRef{}, keyload.Enqueue(queue, keyload.Message(i)))
		must(t, err)
	}
}

// digests are the digests of every shard, positions its positions.
func digests(t *testing.T, db *keyload.DB) (digests []string, positions []uint64) {
	t.Helper()
	st, err := db.Status(t.Context())
	must(t, err)
	for _, s := range st.Shards {
		digests, positions = append(digests, s.Digest), append(positions, s.Position)
	}
	return digests, positions
}

func TestAReceiveAcrossLanesIsCheckedWholeBeforeTheFirstLane(t *testing.T) {
	db := memory(t)
	for i := range 9 {
		queue(t, db, fmt.Sprint("q", i))
		enqueue(t, db, fmt.Sprint("q", i), 1)
	}
	lanes := func(n int) *api.QueuesReceiveAcrossLanesRequest {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("q", i))
		}
		return across(names...)
	}
	two := func(change func(a, b *api.QueuesReceiveRequest)) *api.QueuesReceiveAcrossLanesRequest {
		r := lanes(2)
		r.Requests[0].MaxBytes, r.Requests[1].MaxBytes = 1_000, 1_000
		change(&r.Requests[0], &r.Requests[1])
		return r
	}
	type parts = *api.QueuesReceiveRequest
	outer := lanes(2)
	outer.Requests[1].RequestID = outer.RequestID
	refused := map[string]*api.QueuesReceiveAcrossLanesRequest{
		"no lane": lanes(0), "nine lanes": lanes(9), "the id of the whole": outer,
		"one lane twice":     two(func(a, b parts) { b.Lane = a.Lane }),
		"one id twice":       two(func(a, b parts) { b.RequestID = a.RequestID }),
		"257 messages":       two(func(a, b parts) { a.MaxMessages, b.MaxMessages = 1, 256 }),
		"8 MiB and a byte":   two(func(a, b parts) { a.MaxBytes, b.MaxBytes = 1, 8<<20 }),
		"20,001 ms":          two(func(a, b parts) { a.WaitMillis, b.WaitMillis = 1, 20_000 }),
		"a part with no sum": two(func(a, b parts) { b.MaxMessages = -1 }),
	}
	_, before := digests(t, db)
	for name, req := range refused {
		if _, err := db.ReceiveAcrossLanes(t.Context(), req); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%s: %v", name, err)
		}
	}
	missing := lanes(2)
	missing.Requests[1].RequestID = ""
	api.ApplyDefaults(missing)
	err := db.Do(t.Context(), api.QueuesReceiveAcrossLanes.Operation, missing, &api.QueuesReceiveAcrossLanesResponse{})
	if fault.CodeOf(err) != fault.Validation {
		t.Errorf("at the door, a receive without an id: %v", err)
	}
	if _, after := digests(t, db); !reflect.DeepEqual(before, after) {
		t.Errorf("refusals of the whole moved the logs from %v to %v", before, after)
	}
	other := two(func(a, b parts) { b.Lane = a.Lane; b.Lane.Partition.Key = "elsewhere" })
	for name, req := range map[string]*api.QueuesReceiveAcrossLanesRequest{
		"one lane": lanes(1), "eight lanes": small(lanes(8)), "one queue of two partitions": other,
		"255 messages": two(func(a, b parts) { a.MaxMessages, b.MaxMessages = 1, 254 }),
		"256 messages": two(func(a, b parts) { a.MaxMessages, b.MaxMessages = 1, 255 }),
		"8 MiB":        two(func(a, b parts) { a.MaxBytes, b.MaxBytes = 1_000, 8<<20-1_000 }),
		"20,000 ms":    two(func(a, b parts) { a.Lane.Queue, a.WaitMillis, b.WaitMillis = "q8", 1, 19_999 }),
	} {
		enqueue(t, db, "q0", 1)
		enqueue(t, db, "q1", 1)
		enqueue(t, db, "q8", 1)
		r, err := db.ReceiveAcrossLanes(t.Context(), req)
		must(t, err)
		for i, s := range statuses(r) {
			if s != "committed" || r.Outcomes[i].RequestID != req.Requests[i].RequestID {
				t.Errorf("%s: outcome %d is %s of %s", name, i, s, r.Outcomes[i].RequestID)
			}
		}
	}
}

// small makes the receives ask for few enough bytes together.
func small(r *api.QueuesReceiveAcrossLanesRequest) *api.QueuesReceiveAcrossLanesRequest {
	for i := range r.Requests {
		r.Requests[i].MaxBytes = 1 << 20
	}
	return r
}

func TestALaneThatMayNotBeReadStopsNoOther(t *testing.T) {
	db := memory(t)
	for _, q := range []string{"a", "b", "c"} {
		queue(t, db, q)
		enqueue(t, db, q, 1)
	}
	grants := []api.Grant{
		{Database: "main", Resource: "a", Capabilities: []api.Capability{api.CapQueuesConsume}},
		{Database: "main", Resource: "c", Capabilities: []api.Capability{api.CapQueuesConsume}},
	}
	_, err := db.ConfigurePrincipal(t.Context(), api.Principal{ID: "w", PolicyEpoch: 1, Grants: grants})
	must(t, err)
	r, err := db.As("default", "w").ReceiveAcrossLanes(t.Context(), across("a", "b", "c", "missing"))
	must(t, err)
	if got, want := statuses(r), []string{"committed", "rejected PermissionDenied", "committed", "rejected PermissionDenied"}; !reflect.DeepEqual(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	for _, i := range []int{0, 2} {
		if len(r.Outcomes[i].Result.Deliveries) != 1 {
			t.Errorf("lane %d gave %+v", i, r.Outcomes[i].Result)
		}
	}
	if d := messageOf(t, db, "b"); d.State != api.StateReady || d.Attempts != 0 {
		t.Errorf("the message of the lane that was refused: %+v", d)
	}
	if _, err := db.As("default", "nobody").ReceiveAcrossLanes(t.Context(), across("a")); err == nil {
		t.Error("a caller whom nobody knows got an answer")
	}
}

// messageOf is the one message of a lane.
func messageOf(t *testing.T, db *keyload.DB, queue string) (out api.MessageInfo) {
	t.Helper()
	for m, err := range db.Messages(t.Context(), api.LaneRef{Queue: queue}, "") {
		must(t, err)
		out = m
	}
	return out
}

func TestRepeatedReceivesAnswerTheSameAndChangeNoByte(t *testing.T) {
	db := memory(t)
	for _, q := range []string{"a", "b", "c"} {
		queue(t, db, q)
	}
	enqueue(t, db, "a", 2)
	enqueue(t, db, "c", 1)
	req := across("a", "b", "c")
	first, err := db.ReceiveAcrossLanes(t.Context(), req)
	must(t, err)
	before, _ := digests(t, db)
	again, err := db.ReceiveAcrossLanes(t.Context(), req)
	must(t, err)
	if !reflect.DeepEqual(first, again) {
		t.Errorf("first %+v\nagain %+v", first, again)
	}
	for i := range req.Requests {
		alone, err := db.Receive(t.Context(), &req.Requests[i])
		must(t, err)
		if !reflect.DeepEqual(alone, first.Outcomes[i].Result) {
			t.Errorf("receive %d alone: %+v, together %+v", i, alone, first.Outcomes[i].Result)
		}
	}
	if after, _ := digests(t, db); !reflect.DeepEqual(before, after) {
		t.Errorf("the repeats changed the digests from %v to %v", before, after)
	}
}

func TestACallThatIsCancelledWhileItsFirstLaneIsInTheLogLeavesTheSecondAlone(t *testing.T) {
	var hold atomic.Bool
	held, goOn := make(chan struct{}), make(chan struct{})
	store, err := kv.Open("store", kv.Options{FS: vfs.NewMem(), Stage: func(name string) {
		if name == kv.StageEncoded && hold.CompareAndSwap(true, false) {
			close(held)
			<-goOn
		}
	}})
	must(t, err)
	db, err := keyload.OpenStore(store, keyload.Options{Shards: 1})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	for _, q := range []string{"a", "b"} {
		queue(t, db, q)
		enqueue(t, db, q, 1)
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	req := across("a", "b")
	if _, err := db.ReceiveAcrossLanes(gone, req); fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("cancelled before the first lane: %v", err)
	}
	if m := messageOf(t, db, "a"); m.State != api.StateReady {
		t.Errorf("and the first lane's message is %+v", m)
	}

	ctx, cancel := context.WithCancel(t.Context())
	hold.Store(true)
	ended := make(chan error, 1)
	go func() {
		_, err := db.ReceiveAcrossLanes(ctx, req)
		ended <- err
	}()
	<-held
	cancel()
	err = <-ended
	close(goOn)
	if !errors.Is(err, &fault.Error{Code: fault.UnknownWriteOutcome, Reason: "caller_left"}) || fault.From(err).CommandID != req.RequestID {
		t.Errorf("cancelled with the first lane submitted: %v", err)
	}
	first, err := db.Receive(t.Context(), &req.Requests[0])
	must(t, err)
	again, err := db.Receive(t.Context(), &req.Requests[0])
	must(t, err)
	if len(first.Deliveries) != 1 || first.Deliveries[0].Attempt != 1 || !reflect.DeepEqual(first, again) {
		t.Errorf("the first receive repeated: %+v, then %+v", first, again)
	}
	if m := messageOf(t, db, "b"); m.State != api.StateReady || m.Attempts != 0 {
		t.Errorf("the second lane's message is %+v", m)
	}
	if o, err := db.Outcome(t.Context(), api.PartitionRef{}, req.Requests[1].RequestID); err != nil || o.Status != api.CommandUnknown {
		t.Errorf("the second receive is %+v, %v", o, err)
	}
}

func TestALaneWhoseOutcomeIsUnknownStopsThoseAfterIt(t *testing.T) {
	var broken atomic.Bool
	fs := vfs.NewMem()
	open := func() *keyload.DB {
		store, err := kv.Open("store", kv.Options{FS: errorfs.Wrap(fs, errorfs.InjectorFunc(func(o errorfs.Op) error {
			if broken.Load() && o.Kind == errorfs.OpFileSyncData {
				return errors.New("the disk is broken")
			}
			return nil
		}))})
		must(t, err)
		db, err := keyload.OpenStore(store, keyload.Options{Shards: 1})
		must(t, err)
		return db
	}
	db := open()
	for _, q := range []string{"empty", "a", "b", "c"} {
		queue(t, db, q)
	}
	for _, q := range []string{"a", "b", "c"} {
		enqueue(t, db, q, 1)
	}
	broken.Store(true)
	req := across("empty", "a", "b", "c")
	r, err := db.ReceiveAcrossLanes(t.Context(), req)
	must(t, err)
	want := []string{"committed", "unknown UnknownWriteOutcome", "notAttempted", "notAttempted"}
	if got := statuses(r); !reflect.DeepEqual(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	_ = db.Close() // the disk is broken
	broken.Store(false)
	db = open()
	t.Cleanup(func() { must(t, db.Close()) })
	r, err = db.ReceiveAcrossLanes(t.Context(), req)
	must(t, err)
	for i, s := range statuses(r) {
		if n := len(r.Outcomes[i].Result.Deliveries); s != "committed" || n != min(i, 1) {
			t.Errorf("repeated on a disk that works, lane %d is %s with %d deliveries", i, s, n)
		}
	}
}
