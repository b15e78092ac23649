package directory_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/directory"
)

func TestConfiguringCreatesAnswersUnchangedOrUpdatesByExactVersion(t *testing.T) {
	n := newNode(t)
	queue := func(attempts int64, expected uint64) api.ResourcesConfigureRequest {
		return api.ResourcesConfigureRequest{Name: "work", Kind: api.KindQueue, Queue: &api.QueuePolicy{MaxAttempts: attempts}, ExpectedVersion: expected}
	}
	for i, c := range []struct {
		req              api.ResourcesConfigureRequest
		version          uint64
		created, changed bool
		reason           string
	}{
		{queue(3, 1), 0, false, false, "unknown_resource"}, // nothing to update
		{queue(3, 0), 1, true, true, ""},
		{queue(3, 0), 1, false, false, ""}, // the same again
		{queue(3, 7), 1, false, false, ""}, // equal: the version is not even compared
		{queue(4, 0), 0, false, false, "exists"},
		{queue(4, 2), 0, false, false, "version"},
		{queue(4, 1), 2, false, true, ""},
		{queue(5, 1), 0, false, false, "version"},
		{queue(3, 2), 3, false, true, ""},
	} {
		resp, err := n.configure(c.req)
		if c.reason != "" {
			n.is(err, fault.RevisionConflict, c.reason)
			continue
		}
		n.must(err)
		r := resp.Resource
		if r.Version != c.version || resp.Created != c.created || resp.Changed != c.changed || r.Queue.MaxAttempts != c.req.Queue.MaxAttempts {
			t.Errorf("step %d: version %d, created %v, changed %v", i, r.Version, resp.Created, resp.Changed)
		}
		if r.CreatedAt != api.TimeOf(n.now) || r.Queue.MaxMessages == 0 {
			t.Errorf("step %d: times or defaults are missing: %+v", i, r)
		}
	}
}

func TestAnEqualConfigurationChangesNoByteAndNoRevision(t *testing.T) {
	n := newNode(t)
	n.make("work", api.KindQueue)
	revision := func() uint64 {
		s := n.store.NewSnapshot()
		defer s.Close()
		r, err := changes.Revision(s, 0)
		n.must(err)
		return r
	}
	before := revision()
	n.make("work", api.KindQueue)
	if after := revision(); after != before {
		t.Errorf("the catalog went from revision %d to %d", before, after)
	}
}

func TestKindDomainAndIndexesNeverChange(t *testing.T) {
	n := newNode(t)
	people := api.ResourcesConfigureRequest{Name: "people", Kind: api.KindCollection, Collection: &api.CollectionPolicy{
		Indexes: []api.IndexDefinition{{Name: "byAge", Paths: []string{"/age"}}},
	}}
	_, err := n.configure(people)
	n.must(err)
	other := people
	other.ExpectedVersion, other.Kind, other.Collection = 1, api.KindQueue, nil
	_, err = n.configure(other)
	n.is(err, fault.Conflict, "kind_is_fixed")
	other = people
	other.ExpectedVersion, other.Domain = 1, "elsewhere"
	_, err = n.configure(other)
	n.is(err, fault.Conflict, "domain_is_fixed")
	for _, indexes := range [][]api.IndexDefinition{nil, {{Name: "byAge", Paths: []string{"/years"}}}, {{Name: "byAge", Paths: []string{"/age"}, Unique: true}}} {
		other = people
		other.ExpectedVersion, other.Collection = 1, &api.CollectionPolicy{Indexes: indexes}
		_, err = n.configure(other)
		n.is(err, fault.UnsupportedCapability, "indexes_are_fixed")
	}
	other = people
	other.ExpectedVersion, other.Collection = 1, &api.CollectionPolicy{Indexes: people.Collection.Indexes, TombstoneRetentionSeconds: 5}
	_, err = n.configure(other)
	n.must(err)
}

func TestAPolicyThatItsKindRefusesIsNotStored(t *testing.T) {
	n := newNode(t)
	_, err := n.configure(api.ResourcesConfigureRequest{Name: "people", Kind: api.KindCollection, Collection: &api.CollectionPolicy{Schema: api.JSON(`{"type":12}`)}})
	if fault.CodeOf(err) != fault.Validation {
		t.Errorf("a schema that does not compile was answered with %v", err)
	}
	_, err = call(n, api.ResourcesGet, api.ResourcesGetRequest{Name: "people"})
	n.is(err, fault.NotFound, "unknown_resource")
}

func TestEveryShardHasADefinitionWhenTheCallReturns(t *testing.T) {
	n := newNode(t)
	for i := range 3 {
		want := n.make(fmt.Sprint("queue", i), api.KindQueue)
		s := n.store.NewSnapshot()
		for shard := range n.e.Shards() + 1 {
			got, err := directory.Lookup(s, shard, "default", "main", want.Name)
			n.must(err)
			byNumber, err := directory.ByID(s, shard, want.ID)
			n.must(err)
			if got == nil || got.ID != want.ID || got.Version != want.Version || byNumber == nil || byNumber.Name != want.Name {
				t.Errorf("shard %d has %+v", shard, got)
			}
		}
		n.must(s.Close())
	}
}

func TestResourcesAreListedPageByPageByKind(t *testing.T) {
	n := newNode(t)
	kinds := []api.ResourceKind{api.KindCollection, api.KindQueue, api.KindTopic}
	var all []string
	for i := range 12 {
		name := fmt.Sprintf("r%02d", i)
		all = append(all, name)
		n.make(name, kinds[i%3])
	}
	list := func(kind api.ResourceKind, limit int64) (names []string, pages int) {
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			resp, err := call(n, api.ResourcesList, api.ResourcesListRequest{Kind: kind, Limit: limit, Cursor: cursor})
			n.must(err)
			for _, r := range resp.Resources {
				names = append(names, r.Name)
			}
			cursor = resp.Cursor
		}
		return names, pages
	}
	if names, pages := list("", 5); !slices.Equal(names, all) || pages != 3 {
		t.Errorf("listed %v in %d pages", names, pages)
	}
	if names, _ := list(api.KindTopic, 2); !slices.Equal(names, []string{"r02", "r05", "r08", "r11"}) {
		t.Errorf("listed topics %v", names)
	}
	resp, err := call(n, api.ResourcesList, api.ResourcesListRequest{Database: "another"})
	n.must(err)
	if len(resp.Resources) != 0 {
		t.Errorf("another database has %v", resp.Resources)
	}
}

func TestANameInAPartitionResolvesToItsOwnKindAndDomainOnly(t *testing.T) {
	n := newNode(t)
	n.make("work", api.KindQueue)
	_, err := n.configure(api.ResourcesConfigureRequest{Name: "far", Kind: api.KindQueue, Domain: "elsewhere"})
	n.must(err)
	n.is(n.commit("p", something("nothing", api.KindQueue, 0)), fault.NotFound, "unknown_resource")
	n.is(n.commit("p", something("far", api.KindQueue, 0)), fault.Conflict, "foreign_domain")
	n.is(n.commit("p", something("work", api.KindCollection, 0)), fault.Validation, "wrong_kind")
	n.must(n.commit("p", something("work", api.KindQueue, 0)))
	_, err = n.configure(api.ResourcesConfigureRequest{Name: "work", Database: "second", Kind: api.KindTopic})
	n.must(err) // another database has names of its own
}
