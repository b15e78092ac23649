package worker_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/worker"
)

func Example() {
	dir, err := os.MkdirTemp("", "keyload-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := keyload.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for name, kind := range map[string]api.ResourceKind{"emails": api.KindQueue, "history": api.KindStreamSet} {
		if _, err := db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: name, Kind: kind}); err != nil {
			log.Fatal(err)
		}
	}
	p := client.Partition("default", "main", "main", "customer-42")
	if _, err := db.Commit(ctx, p, client.Enqueue("emails", client.Message(map[string]string{"order": "o-1"}))); err != nil {
		log.Fatal(err)
	}

	w := worker.Queue(db, client.Lane(p, "emails"),
		func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			var job struct{ Order string }
			if err := m.Decode(&job); err != nil {
				return worker.Terminal(err) // no retry can help
			}
			fmt.Println("mailing about", job.Order)
			tx.Append("history", job.Order, client.Event("CustomerMailed", nil))
			stop() // a worker of your own goes on
			return nil
		}, worker.Options{Concurrency: 16})
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	for e, err := range db.Stream(context.Background(), api.StreamRef{Partition: p, StreamSet: "history", StreamID: "o-1"}, 0) {
		fmt.Println(e.Type, err)
	}
	// Output:
	// mailing about o-1
	// CustomerMailed <nil>
}
