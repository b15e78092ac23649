package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
)

// order is a document of ours: any value that encodes to a JSON object.
type order struct {
	Customer string `json:"customer"`
	Total    int    `json:"total"`
	Mailed   bool   `json:"mailed"`
}

func main() {
	dir, err := os.MkdirTemp("", "keyload-quickstart-")
	if err == nil {
		err = run(context.Background(), dir, os.Stdout)
		_ = os.RemoveAll(dir) // only the example's own data
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string, out io.Writer) error {
	db, err := keyload.Open(dir)
	if err != nil {
		return err
	}
	defer db.Close()

	// Resources are made once; doing it again changes nothing.
	for name, kind := range map[string]api.ResourceKind{
		"orders": api.KindCollection, "history": api.KindStreamSet, "placed": api.KindTopic, "emails": api.KindQueue,
	} {
		if _, err := db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: name, Kind: kind}); err != nil {
			return err
		}
	}

	// Everything of one customer lives in one partition and commits together.
	p := keyload.Partition("default", "main", "main", "customer-42")
	o := order{Customer: "ann", Total: 40}
	done, err := db.Commit(ctx, p,
		keyload.Put("orders", "o-1", o),
		keyload.Append("history", "o-1", keyload.Event("OrderPlaced", o)),
		keyload.Publish("placed", keyload.Event("OrderPlaced", o)),
		keyload.Enqueue("emails", keyload.Message(map[string]string{"order": "o-1"})))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "committed %d changes together\n", len(done.Results))

	// A worker of another process would do the same through package client.
	if err := work(ctx, db, keyload.Lane(p, "emails"), out); err != nil {
		return err
	}
	return report(ctx, db, p, out)
}

// work handles messages until the queue is empty.
func work(ctx context.Context, db *keyload.DB, lane api.LaneRef, out io.Writer) error {
	for {
		got, err := db.Receive(ctx, &api.QueuesReceiveRequest{Lane: lane, MaxMessages: 10})
		if err != nil {
			return err
		}
		if len(got.Deliveries) == 0 {
			fmt.Fprintf(out, "no more messages: %s\n", got.Reason)
			return nil
		}
		for _, m := range got.Deliveries {
			if err := handle(ctx, db, lane, m, out); err != nil {
				return err
			}
		}
	}
}

// handle does the work of one message and commits what it did.
func handle(ctx context.Context, db *keyload.DB, lane api.LaneRef, m api.Delivery, out io.Writer) error {
	var job struct{ Order string }
	if err := json.Unmarshal(m.Payload, &job); err != nil {
		return err
	}
	o, _, err := load(ctx, db, lane.Partition, job.Order)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "attempt %d: mailing %s about %s\n", m.Attempt, o.Customer, job.Order)
	o.Mailed = true

	// The effects, the record that this handler has seen the message, and the
	// acknowledgement commit together. After a crash before this point the
	// message comes again; after it, never.
	_, err = db.Process(ctx, &api.QueuesProcessRequest{
		Lane: lane, Token: m.Token, HandlerScope: "mailer",
		Effects: []api.Mutation{
			keyload.Put("orders", job.Order, o),
			keyload.Append("history", job.Order, keyload.Event("CustomerMailed", nil)),
		},
	})
	return err
}

// load reads an order and its revision.
func load(ctx context.Context, db *keyload.DB, p api.PartitionRef, id string) (o order, revision uint64, err error) {
	doc, err := db.Get(ctx, p, "orders", id)
	if err != nil {
		return o, 0, err
	}
	return o, doc.Revision, json.Unmarshal(doc.Document, &o)
}

// report shows what is stored now.
func report(ctx context.Context, db *keyload.DB, p api.PartitionRef, out io.Writer) error {
	o, revision, err := load(ctx, db, p, "o-1")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "order o-1, revision %d: %+v\n", revision, o)
	for e, err := range db.Stream(ctx, api.StreamRef{Partition: p, StreamSet: "history", StreamID: "o-1"}, 0) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "history %d: %s\n", e.Position, e.Type)
	}
	return nil
}
