package keyload_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
)

func TestAStoreKeepsWhatOneCommitSaidAfterItIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	db, err := keyload.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for name, kind := range map[string]api.ResourceKind{"jobs": api.KindQueue, "news": api.KindTopic} {
		if _, err := api.Call(ctx, db, api.ResourcesConfigure, &api.ResourcesConfigureRequest{Name: name, Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := api.Call(ctx, db, api.CommandsCommit, &api.CommandsCommitRequest{Mutations: []api.Mutation{
		keyload.Enqueue("jobs", keyload.Message(map[string]int{"n": 1})),
		keyload.Publish("news", keyload.Event("added", map[string]int{"n": 1})),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Results) != 2 || r.Receipt.Token.Position == 0 {
		t.Fatalf("%+v", r)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = keyload.Open(dir); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got, err := api.Call(ctx, db, api.QueuesReceive, &api.QueuesReceiveRequest{Lane: api.LaneRef{Queue: "jobs"}, MaxMessages: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Deliveries) != 1 || string(got.Deliveries[0].Payload) != `{"n":1}` {
		t.Fatalf("%+v", got)
	}
	done, err := api.Call(ctx, db, api.QueuesComplete, &api.QueuesCompleteRequest{
		Lane: api.LaneRef{Queue: "jobs"}, Items: []api.CompleteItem{{Token: got.Deliveries[0].Token, Action: api.ActionAck}},
	})
	if err != nil || done.Results[0].Error != nil {
		t.Fatalf("%v %+v", err, done)
	}
	page, err := api.Call(ctx, db, api.EventsRead, &api.EventsReadRequest{Source: api.SourceRef{Resource: "news"}})
	if err != nil || len(page.Events) != 1 {
		t.Fatalf("%v %+v", err, page)
	}
	empty, err := api.Call(ctx, db, api.QueuesReceive, &api.QueuesReceiveRequest{Lane: api.LaneRef{Queue: "jobs"}, WaitMillis: 50})
	if err != nil || empty.Reason != "waitElapsed" {
		t.Fatalf("%v %+v", err, empty)
	}
}

func TestTheConstructorsHereAreThoseOfTheClient(t *testing.T) {
	p := keyload.Partition("t", "d", "o", "k")
	e, m := keyload.Event("e", 1), keyload.Message(2)
	for name, same := range map[string][2]any{
		"Partition":    {p, client.Partition("t", "d", "o", "k")},
		"Lane":         {keyload.Lane(p, "q"), client.Lane(p, "q")},
		"Topic":        {keyload.Topic(p, "t"), client.Topic(p, "t")},
		"Stream":       {keyload.Stream(p, "s", "i"), client.Stream(p, "s", "i")},
		"StreamSource": {keyload.StreamSource(p, "s", "i"), client.StreamSource(p, "s", "i")},
		"Group":        {keyload.Group(keyload.Topic(p, "t"), "g"), client.Group(client.Topic(p, "t"), "g")},
		"Patch":        {keyload.Patch("c", "i", api.Patch{Path: "/a"}), client.Patch("c", "i", api.Patch{Path: "/a"})},
		"PurgeTopic":   {keyload.PurgeTopic("t", 3), client.PurgeTopic("t", 3)},
		"Put":          {keyload.Put("c", "i", map[string]int{}), client.Put("c", "i", map[string]int{})},
		"PutAt":        {keyload.PutAt("c", "i", 3, map[string]int{}), client.PutAt("c", "i", 3, map[string]int{})},
		"Delete":       {keyload.Delete("c", "i"), client.Delete("c", "i")},
		"Append":       {keyload.Append("s", "i", e), client.Append("s", "i", e)},
		"Publish":      {keyload.Publish("t", e), client.Publish("t", e)},
		"Enqueue":      {keyload.Enqueue("q", m), client.Enqueue("q", m)},
		"Event":        {e, client.Event("e", 1)},
		"Message":      {m, client.Message(2)},
	} {
		if !reflect.DeepEqual(same[0], same[1]) {
			t.Errorf("%s: %+v, the client's is %+v", name, same[0], same[1])
		}
	}
}
