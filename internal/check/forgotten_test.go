package check_test

import (
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/table"
)

// The record of an input and the receipt of a command are lost. What orders them by
// time still tells of both: no repair may make a check call this store sound, since
// input and command would take effect again.
func TestARepairForgetsNeitherAnInputNorACommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	db, err := keyload.Open(dir, keyload.Options{Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t}
	_, err = db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: "emails", Kind: api.KindQueue})
	w.must(err)
	effect := func() []api.Mutation {
		return []api.Mutation{keyload.Enqueue("emails", api.Message{Payload: api.Of("x")})}
	}
	_, err = db.ProcessInput(ctx, &api.CommandsInboxRequest{Source: "hook", InputID: "i", HandlerScope: "mail", Effects: effect()})
	w.must(err)
	id := uuid.New()
	_, err = db.CommitAs(ctx, id.String(), api.PartitionRef{}, effect()...)
	w.must(err)
	w.must(db.Close())
	for _, lost := range []table.ID{table.Inbox, table.Receipt} {
		var was row
		change(t, dir, func(w *world) {
			for k, v := range w.rows() {
				if table.ID(k[0]) == lost && (lost == table.Inbox || k[len(k)-len(id):] == string(id[:])) {
					was = row{[]byte(k), []byte(v)}
				}
			}
			w.write(row{was.key, nil})
		})
		for range 2 { // a second repair hides no more than the first
			done, err := check.Repair(t.Context(), dir, nil)
			w.must(err)
			if len(done.Tables) != 0 || len(done.Findings) == 0 || done.Derived() {
				t.Errorf("table %d: the repair wrote %+v and leaves %+v", lost, done.Tables, done.Findings)
			}
		}
		change(t, dir, func(w *world) { w.write(was) }) // nothing else was lost
		if report, err := check.Dir(t.Context(), dir, nil); err != nil || len(report.Findings) != 0 {
			t.Errorf("table %d, with the row again: %+v, %v", lost, report, err)
		}
	}
}
