package course

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/table"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// whole runs the course to its end.
func whole(t *testing.T) *Run {
	t.Helper()
	r := Start(kv.Options{FS: vfs.NewMem()})
	must(t, r.Open())
	t.Cleanup(func() { must(t, r.Close()) })
	must(t, r.Finish(t.Context()))
	return r
}

func TestTheCourseNeedsEveryCommandEveryMutationAndEveryKindOfDueWork(t *testing.T) {
	r := whole(t)
	commands, mutations := map[string]bool{}, map[string]bool{}
	for _, a := range r.State().Answers {
		if r.steps[a.Step].refused == "" {
			commands[a.operation.Name] = true
			for _, m := range Mutations(a.request) {
				mutations[m.Kind()] = true
			}
		}
	}
	registry, err := engine.Registry(api.DurableDisk)
	must(t, err)
	dues := []table.DueKind{table.DueReceipts}
	for _, res := range registry.Resources() {
		for _, h := range res.Handlers {
			if o := h.Op; o.Kind == api.Command && o.Number < 60_000 && !commands[o.Name] {
				t.Errorf("no step of the course is a %s that succeeds: add one", o.Name)
			}
		}
		for _, d := range res.Dues {
			dues = append(dues, d.Kind)
		}
	}
	for _, k := range api.MutationKinds() {
		if !mutations[k.Name] {
			t.Errorf("no step of the course has the mutation %s: add one", k.Name)
		}
	}
	for _, k := range dues {
		if !r.Dues()[k] {
			t.Errorf("nothing of kind %d becomes due in the course: add a step", k)
		}
	}
	report, err := check.Store(context.Background(), r.Store(), nil)
	must(t, err)
	for _, f := range report.Findings {
		t.Errorf("check: %s %s: %s", f.Invariant, f.Where, f.Text)
	}
}

func TestTwoRunsOfTheCourseLookTheSame(t *testing.T) {
	was, is := whole(t).State().Views, whole(t).State().Views
	if len(was) != 3 || len(is) != 3 {
		t.Fatalf("%d looks and %d", len(was), len(is))
	}
	for step, lines := range was {
		if d := Difference(lines, is[step]); d != "" || len(lines) < 50 {
			t.Errorf("step %d: %d lines; the difference:\n%s", step, len(lines), d)
		}
	}
}
