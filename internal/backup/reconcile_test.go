package backup_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/kv"
)

// A backup with the topic at 100 and two groups, one behind: restored, it delivers
// nothing; reconciled by public operations, the next event has the position after
// the last one, every group receives it, and nothing is delivered that was
// finished.
func TestARestoredStoreIsReconciledAndGoesOnWhereItsBackupEnded(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	p, ctx := partition("one"), t.Context()
	groups := map[string]uint64{"ahead": 100, "behind": 40}
	for i := range 100 {
		b.write("one", i)
	}
	for name, done := range groups {
		g := keyload.Group(keyload.Topic(p, "news"), name)
		_, err := b.db.ConfigureGroup(ctx, &api.SubscriptionsConfigureRequest{Group: g})
		must(t, err)
		finish(t, b.db, g, done)
	}
	held, err := b.db.Receive(ctx, &api.QueuesReceiveRequest{Lane: keyload.Lane(p, "jobs"), MaxMessages: 1})
	must(t, err)
	content, made := b.archive()
	// What comes after the backup is in nothing of it.
	b.write("one", 100)

	for _, intake := range []bool{false, true} {
		files := vfs.NewMem()
		_, err = backup.Restore(ctx, from(content), "to", backup.RestoreOptions{
			Files: kv.Options{FS: files}, Expect: made.ID, AllowIntake: intake,
		})
		must(t, err)
		db := restored(t, files, "to")
		_, err = db.Receive(ctx, &api.QueuesReceiveRequest{Lane: keyload.Lane(p, "jobs")})
		wants(t, "a receive", err, fault.DispatchPaused, "restored")
		_, err = db.Commit(ctx, p, keyload.Publish("news", keyload.Event("Written", 101)))
		if intake {
			must(t, err)
		} else {
			wants(t, "a publish", err, fault.DispatchPaused, "intake_refused")
		}
		late, err := db.Complete(ctx, keyload.Lane(p, "jobs"), api.CompleteItem{Token: held.Deliveries[0].Token, Action: api.ActionAck})
		must(t, err)
		wants(t, "a token of before", late.Results[0].Error, fault.TokenInvalidated, "other_incarnation")

		st, err := db.RestoreStatus(ctx)
		must(t, err)
		if !st.Dispatch.Paused || st.PausedGroups != 2 || len(st.Earlier) != 1 || st.Earlier[0].Incarnation != made.Incarnation {
			t.Fatalf("what waits: %+v", st)
		}
		for _, g := range st.Groups {
			if want := groups[g.Group.Group]; g.Checkpoint != want {
				t.Errorf("group %s has the checkpoint %d, want %d", g.Group.Group, g.Checkpoint, want)
			}
			_, err := db.ResumeGroup(ctx, g.Group, g.Generation)
			must(t, err)
		}
		_, err = db.ResumeDispatch(ctx)
		must(t, err)
		if !intake {
			_, err = db.Commit(ctx, p, keyload.Publish("news", keyload.Event("Written", 101)))
			must(t, err)
		}
		for name, done := range groups {
			g := keyload.Group(keyload.Topic(p, "news"), name)
			if last := finish(t, db, g, 101); last != 101 {
				t.Errorf("group %s with %d finished ends at %d", name, done, last)
			}
		}
		again, err := db.Receive(ctx, &api.QueuesReceiveRequest{Lane: keyload.Lane(p, "jobs"), MaxMessages: 100})
		must(t, err)
		if n := len(again.Deliveries); n != 99 { // one is held until its lease ends
			t.Errorf("%d messages are delivered, want 99", n)
		}
	}
}

// finish acknowledges events of a group up to a position and says where it ended.
// Each event comes once, and in its order.
func finish(t *testing.T, db *keyload.DB, g api.GroupRef, upTo uint64) (last uint64) {
	t.Helper()
	for last < upTo {
		got, err := db.ReceiveEvents(t.Context(), &api.SubscriptionsReceiveRequest{Group: g, MaxEvents: 1})
		must(t, err)
		if len(got.Deliveries) == 0 {
			t.Fatalf("group %s delivers nothing after %d: %+v", g.Group, last, got)
		}
		d := got.Deliveries[0]
		if last > 0 && d.Event.Position != last+1 {
			t.Errorf("group %s: %d follows %d", g.Group, d.Event.Position, last)
		}
		last = d.Event.Position
		done, err := db.CompleteEvents(t.Context(), g, api.CompleteItem{Token: d.Token, Action: api.ActionAck})
		must(t, err)
		if f := done.Results[0].Error; f != nil {
			t.Fatal(fmt.Sprint(f))
		}
	}
	return last
}
