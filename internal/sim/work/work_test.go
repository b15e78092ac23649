package work

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) *keyload.DB {
	t.Helper()
	store, err := kv.Open("store", kv.Options{FS: vfs.NewMem(), NoSync: true})
	must(t, err)
	db, err := keyload.OpenStore(store, keyload.Options{Shards: 2})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// notCallers are the commands that no caller sends: callers work on clusters, too, of
// which the nodes are the test's own to add and to remove. The course has them.
var notCallers = []string{
	api.ClusterAdd.Name, api.ClusterRemove.Name, api.ClusterReplace.Name, api.ClusterDrain.Name, api.ClusterTransfer.Name,
}

func TestCallersNeedEveryCommandAndTheBookAgreesWithAStoreThatIsNotInterrupted(t *testing.T) {
	const callers = 4
	db, book := open(t), NewBook()
	must(t, Setup(t.Context(), db, callers))
	missing := func() (names []string) {
		for _, o := range api.Operations() {
			if o.Kind == api.Command && book.CarriedOut(o.Name) == 0 && !slices.Contains(notCallers, o.Name) {
				names = append(names, o.Name)
			}
		}
		return names
	}
	for life := uint64(0); life == 0 || len(missing()) > 0; life++ {
		if life == 8 {
			t.Fatalf("no caller had a %q that was carried out: add it to an action", missing())
		}
		Run(t.Context(), db, book.Write, Options{Callers: callers, Seed: life, Life: fmt.Sprint(life), Actions: 300})
	}
	for _, name := range notCallers {
		if book.CarriedOut(name) > 0 {
			t.Errorf("callers send %s: take it out of notCallers", name)
		}
	}
	if n := book.Repeat(t.Context(), db, 0); n < 1500 {
		t.Errorf("%d commands were sent", n)
	}
	book.Judge(t.Context(), db)
	for i, w := range book.Wrong() {
		if i < 10 {
			t.Error(w)
		}
	}
}

// Whatever is done behind the book's back is noticed.
func TestTheBookNoticesEveryThingThatItDoesNotKnow(t *testing.T) {
	const callers = 2
	db, book := open(t), NewBook()
	must(t, Setup(t.Context(), db, callers))
	Run(t.Context(), db, book.Write, Options{Callers: callers, Seed: 2, Life: "a", Actions: 300})
	ctx, shared := t.Context(), api.LaneRef{Queue: "jobs"}
	commit := func(m api.Mutation) error {
		_, err := db.Commit(ctx, api.PartitionRef{}, m)
		return err
	}
	judged := func() []string {
		now := book.Frozen(func() {})
		now.Judge(ctx, db)
		return now.Wrong()
	}
	if w := judged(); len(w) > 0 {
		t.Fatalf("before anything: %q", w)
	}
	for _, behind := range []struct {
		what string
		do   func() error
	}{
		{"a finished message", func() error { return finishOne(db, shared) }},
		{"a followed event", func() error { return followOne(db) }},
		{"an effect", func() error { return commit(trace("all")) }},
		{"a document", func() error { return commit(keyload.Put("docs", anyDocument(book), map[string]int{"n": 5000})) }},
		{"an event", func() error {
			return commit(keyload.Append("log", "all", api.Event{Type: "x", Payload: api.JSON("1")}))
		}},
		{"a publication", func() error { return commit(keyload.Publish("news", api.Event{Type: "x", Payload: api.JSON("1")})) }},
		{"a message", func() error { return commit(keyload.Enqueue("jobs", api.Message{Payload: api.JSON("1")})) }},
		{"dispatch", func() error {
			_, err := db.PauseDispatch(ctx, false, "behind")
			return err
		}},
		{"a principal", func() error {
			_, err := db.ConfigurePrincipal(ctx, api.Principal{ID: "principal-caller-0", Tenant: "default", PolicyEpoch: 1_000})
			return err
		}},
		{"a key", func() error {
			_, err := db.CreateAPIKey(ctx, &api.APIKeysCreateRequest{PrincipalID: "principal-caller-0"})
			return err
		}},
	} {
		before := judged()
		must(t, behind.do())
		if now := judged(); slices.Equal(now, before) || len(now) == 0 {
			t.Errorf("%s was not noticed: %q", behind.what, now)
		}
	}
}

// anyDocument is one that the book says is there.
func anyDocument(b *Book) string {
	for id, text := range b.holds.docs {
		if text != "" {
			return id
		}
	}
	return "none"
}

func finishOne(db *keyload.DB, lane api.LaneRef) error {
	got, err := db.Receive(context.Background(), &api.QueuesReceiveRequest{Lane: lane, WaitMillis: 5_000})
	if err == nil {
		_, err = db.Complete(context.Background(), lane, api.CompleteItem{Token: got.Deliveries[0].Token, Action: api.ActionAck})
	}
	return err
}

func followOne(db *keyload.DB) error {
	got, err := db.ReceiveEvents(context.Background(), &api.SubscriptionsReceiveRequest{Group: followers(), WaitMillis: 5_000})
	if err == nil {
		_, err = db.CompleteEvents(context.Background(), followers(), api.CompleteItem{Token: got.Deliveries[0].Token, Action: api.ActionAck})
	}
	return err
}

func TestTheBookNoticesWhatIsDeliveredAgainOrFinishedTwice(t *testing.T) {
	b := NewBook()
	line := func(id, operation, request, reply string) {
		b.Write(Line{Sent: &Call{ID: id, Operation: operation, Request: request}})
		b.Write(Line{Answered: &Answer{ID: id, Reply: reply, Stored: true}})
	}
	wants := func(n int, what string) {
		t.Helper()
		if len(b.Wrong()) != n {
			t.Errorf("after %s: %q", what, b.Wrong())
		}
	}
	ack := `{"lane":{"partition":{"key":"main"},"queue":"jobs"},"items":[{"token":"t","action":"ack"}]}`
	receive := `{"requestId":"r","lane":{"partition":{"key":"main"},"queue":"jobs"}}`
	delivered := `{"receipt":{},"deliveries":[{"messageId":"m","token":"t"}]}`
	line("1", api.QueuesReceive.Name, receive, delivered)
	line("2", api.QueuesComplete.Name, ack, `{"receipt":{},"results":[{"messageId":"m","state":"acked"}]}`)
	wants(0, "one acknowledgement")
	line("3", api.QueuesComplete.Name, ack, `{"receipt":{},"results":[{"messageId":"m","error":{"code":"StaleLease"}}]}`)
	wants(0, "an acknowledgement that was refused")
	line("4", api.QueuesReceive.Name, receive, delivered)
	wants(1, "another delivery")
	line("5", api.QueuesComplete.Name, ack, `{"receipt":{},"results":[{"messageId":"m","state":"acked"}]}`)
	wants(2, "another acknowledgement")
	line("6", api.QueuesProcess.Name, `{"lane":{"partition":{"key":"main"},"queue":"jobs"},"token":"t"}`, `{"receipt":{},"messageId":"m"}`)
	wants(3, "a processing as well")
	b.Write(Line{Answered: &Answer{ID: "7"}})
	wants(4, "an answer to nobody")
}
