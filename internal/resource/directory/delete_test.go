package directory_test

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

var kinds = []api.ResourceKind{api.KindCollection, api.KindStreamSet, api.KindTopic, api.KindQueue}

func TestAnEmptyResourceIsDeletedAtOnceAndItsNumberNeverUsedAgain(t *testing.T) {
	n := newNode(t)
	for _, kind := range kinds {
		first := n.make("thing", kind)
		resp, err := call(n, api.ResourcesDelete, api.ResourcesDeleteRequest{Name: "thing"})
		n.must(err)
		if resp.Status != api.DeleteDone {
			t.Errorf("%s: the status is %s", kind, resp.Status)
		}
		n.is(n.commit("p", something("thing", kind, 0)), fault.NotFound, "unknown_resource")
		_, err = call(n, api.ResourcesGet, api.ResourcesGetRequest{Name: "thing"})
		n.is(err, fault.NotFound, "unknown_resource")
		if second := n.make("thing", kind); second.ID <= first.ID || second.Version != 1 {
			t.Errorf("%s: made again it has number %d after %d", kind, second.ID, first.ID)
		}
		_, err = call(n, api.ResourcesDelete, api.ResourcesDeleteRequest{Name: "thing"})
		n.must(err)
	}
	_, err := call(n, api.ResourcesDelete, api.ResourcesDeleteRequest{Name: "thing"})
	n.is(err, fault.NotFound, "unknown_resource")
}

func TestAResourceThatHoldsSomethingIsNotDeletedWithoutPurgeAndGoesOnWorking(t *testing.T) {
	n := newNode(t)
	for _, kind := range kinds {
		name := string(kind)
		r := n.make(name, kind)
		n.fill(name, kind, 1, 1)
		_, err := call(n, api.ResourcesDelete, api.ResourcesDeleteRequest{Name: name})
		n.is(err, fault.Conflict, "not_empty")
		got, err := call(n, api.ResourcesGet, api.ResourcesGetRequest{Name: name})
		n.must(err)
		if got.Resource.Deleting || got.Resource.ID != r.ID {
			t.Errorf("%s: left as %+v", kind, got.Resource)
		}
		n.must(n.commit("p", something(name, kind, 1)))
	}
}

func TestADeletionNamesTheVersionItMeans(t *testing.T) {
	n := newNode(t)
	r := n.make("work", api.KindQueue)
	_, err := call(n, api.ResourcesDelete, api.ResourcesDeleteRequest{Name: "work", ExpectedVersion: r.Version + 1})
	n.is(err, fault.RevisionConflict, "version")
	n.must(n.commit("p", something("work", api.KindQueue, 0))) // thawed
	_, err = call(n, api.ResourcesDelete, api.ResourcesDeleteRequest{Name: "work", ExpectedVersion: r.Version, Purge: true})
	n.must(err)
}

func TestADeletionIsAnsweredFromItsReceiptWhenRepeated(t *testing.T) {
	n := newNode(t)
	n.make("work", api.KindQueue)
	n.fill("work", api.KindQueue, 2, 2)
	req := api.ResourcesDeleteRequest{CommandID: api.NewCommandID(), Name: "work", Purge: true}
	first, err := call(n, api.ResourcesDelete, req)
	n.must(err)
	n.make("work", api.KindQueue) // a new one of the name must not be touched
	again, err := call(n, api.ResourcesDelete, req)
	n.must(err)
	if again.Receipt != first.Receipt || again.Status != first.Status {
		t.Errorf("answered %+v, before %+v", again, first)
	}
	n.must(n.commit("p", something("work", api.KindQueue, 0)))
}

// The rows of a purged resource go in bounded steps, in every partition and
// shard, whatever restarts in between; a new resource of the name lives beside
// them at once and loses nothing.
func TestAPurgeRemovesEveryRowInBoundedStepsAndSurvivesRestarts(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			n := newNode(t)
			old := n.make("thing", kind)
			bystander := n.make("bystander", kind)
			n.fill("thing", kind, 12, 40)
			n.fill("bystander", kind, 3, 3)
			rows, other := n.held(old), n.held(bystander)
			if rows < 12*40 {
				t.Fatalf("%d rows are held", rows)
			}
			resp, err := call(n, api.ResourcesDelete, api.ResourcesDeleteRequest{Name: "thing", Purge: true})
			n.must(err)
			if resp.Status != api.DeletePurging {
				t.Errorf("the status is %s", resp.Status)
			}
			n.is(n.commit("part0", something("thing", kind, 0)), fault.NotFound, "unknown_resource")
			fresh := n.make("thing", kind)
			n.fill("thing", kind, 2, 3)
			own := n.held(fresh)
			steps := 0
			for more := true; more; steps++ {
				before := n.held(old)
				more = n.tick()
				if took := before - n.held(old); took > 2*2*256+16 {
					t.Fatalf("step %d took %d rows", steps, took)
				}
				if steps%2 == 0 {
					n.close()
					n.open()
				}
				if steps > 100 {
					t.Fatal("the purge never ends")
				}
			}
			if left := n.held(old); left != 0 {
				t.Errorf("%d of %d rows are left", left, rows)
			}
			if steps < 2 {
				t.Errorf("%d rows went in %d step", rows, steps)
			}
			if n.held(bystander) != other || n.held(fresh) != own {
				t.Error("rows of another resource went too")
			}
		})
	}
}

// A process that dies between freezing a resource and deleting it leaves it
// frozen; the next one thaws it.
func TestAFrozenResourceIsThawedWhenTheStoreOpens(t *testing.T) {
	n := newNode(t)
	n.make("work", api.KindQueue)
	n.fill("work", api.KindQueue, 2, 2)
	n.freeze("work")
	n.open()
	got, err := call(n, api.ResourcesGet, api.ResourcesGetRequest{Name: "work"})
	n.must(err)
	if got.Resource.Deleting {
		t.Error("it is still frozen")
	}
	n.must(n.commit("part0", something("work", api.KindQueue, 0)))
	_, err = call(n, api.ResourcesDelete, api.ResourcesDeleteRequest{Name: "work", Purge: true})
	n.must(err)
	for n.tick() {
	}
}
