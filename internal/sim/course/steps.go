package course

import (
	"slices"

	"github.com/keyload/keyload/api"
)

const (
	second = int64(1_000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

var (
	// here and there are the partitions of the course.
	here  = api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}
	there = api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "elsewhere"}

	jobs  = api.LaneRef{Partition: here, Queue: "jobs"}
	news  = api.SourceRef{Partition: here, Resource: "news"}
	trail = api.SourceRef{Partition: here, Resource: "log", Kind: api.SourceStream, StreamID: "trail"}
)

// Steps is the whole course. A kind of command that is added to the program is
// added here: a test counts them.
func Steps() []Step {
	return slices.Concat(
		making(), documents(), messages(), leases(), deadMessages(),
		events(), deliveries(), deadEvents(), moves(),
		inputs(), []Step{look("before policies")}, policies(), nodes(), removals(), []Step{look("before much time passes")}, ages(),
	)
}

// making configures what the rest of the course works with.
func making() []Step {
	resource := func(name string, kind api.ResourceKind, change func(*api.ResourcesConfigureRequest)) Step {
		return is("configure "+name, api.ResourcesConfigure.Operation, func() api.CommandRequest {
			req := &api.ResourcesConfigureRequest{Name: name, Kind: kind}
			if change != nil {
				change(req)
			}
			return req
		})
	}
	retry := api.RetryPolicy{BaseMillis: second, MaxMillis: minute, Factor: 2, Jitter: api.JitterNone}
	return []Step{
		resource("docs", api.KindCollection, func(r *api.ResourcesConfigureRequest) {
			r.Collection = &api.CollectionPolicy{Indexes: []api.IndexDefinition{
				{Name: "byName", Paths: []string{"/name"}, Unique: true}, {Name: "byAge", Paths: []string{"/age"}},
			}}
		}),
		resource("log", api.KindStreamSet, nil),
		resource("news", api.KindTopic, func(r *api.ResourcesConfigureRequest) {
			r.Source = &api.SourcePolicy{EventIDRetentionSeconds: 3600}
		}),
		resource("brief", api.KindTopic, func(r *api.ResourcesConfigureRequest) {
			r.Source = &api.SourcePolicy{MaxAgeSeconds: 120}
		}),
		resource("jobs", api.KindQueue, func(r *api.ResourcesConfigureRequest) {
			r.Queue = &api.QueuePolicy{MaxAttempts: 4, Retry: retry, DeadLetter: api.DeadLetterPolicy{MaxMessages: 1}}
		}),
		resource("old", api.KindQueue, nil),
		resource("past", api.KindTopic, nil),
		resource("spare", api.KindCollection, nil),
		resource("docs", api.KindTopic, nil).refusedFor("kind_is_fixed"),
		reopen(),
	}
}

// documents puts, patches and deletes, and is refused.
func documents() []Step {
	return []Step{
		commit("put documents", func(*Memory) []api.Mutation {
			return []api.Mutation{
				put("docs", "a", `{"name":"a","age":1}`), put("docs", "b", `{"name":"b","age":1}`),
				put("docs", "c", `{"name":"c","age":1.50}`), put("docs", "all", `{"name":"all","n":0}`),
			}
		}),
		commit("patch and delete", func(*Memory) []api.Mutation {
			return []api.Mutation{
				{PatchDocument: &api.PatchDocument{Collection: "docs", ID: "a", Patches: []api.Patch{
					{Op: api.PatchSet, Path: "/age", Value: api.JSON("2")}, {Op: api.PatchSet, Path: "/gone", Value: api.JSON("1")}, {Op: api.PatchRemove, Path: "/gone"},
				}}},
				{DeleteDocument: &api.DeleteDocument{Collection: "docs", ID: "b"}},
				count("one more"),
			}
		}),
		commit("a name that is taken", func(*Memory) []api.Mutation {
			return []api.Mutation{count("never"), put("docs", "d", `{"name":"a"}`)}
		}).refusedFor("unique_clash"),
		commit("a revision that is past", func(*Memory) []api.Mutation {
			old := put("docs", "a", `{"name":"a"}`)
			revision := uint64(1)
			old.PutDocument.ExpectedRevision = &revision
			return []api.Mutation{count("never"), old}
		}).refusedFor("revision"),
		is("documents elsewhere", api.CommandsCommit.Operation, func() api.CommandRequest {
			return &api.CommandsCommitRequest{Partition: there, Mutations: []api.Mutation{put("docs", "a", `{"name":"a","here":false}`), put("spare", "x", `{}`)}}
		}),
		flush(),
	}
}

func put(collection, id, document string) api.Mutation {
	return api.Mutation{PutDocument: &api.PutDocument{Collection: collection, ID: id, Document: api.JSON(document)}}
}

// count leaves a trace that shows when it was carried out twice.
func count(why string) api.Mutation {
	return api.Mutation{PatchDocument: &api.PatchDocument{Collection: "docs", ID: "all", Patches: []api.Patch{
		{Op: api.PatchIncrement, Path: "/n", Value: api.JSON("1")}, {Op: api.PatchSet, Path: "/last", Value: api.Of(why)},
	}}}
}

// inputs commits what comes from elsewhere once, however often it comes.
func inputs() []Step {
	input := func(name, id string, effects ...api.Mutation) Step {
		return is(name, api.CommandsInbox.Operation, func() api.CommandRequest {
			return &api.CommandsInboxRequest{Partition: here, Source: "elsewhere", InputID: id, HandlerScope: "course", Effects: effects}
		})
	}
	return []Step{
		input("an input", "one", count("input one"), enqueue("from-input", "")),
		input("the same input", "one", count("input one"), enqueue("from-input", "")),
		input("the same input with other effects", "one", count("something else")).refusedFor("processed_differently"),
		input("an input that asks for nothing", "two"),
	}
}
