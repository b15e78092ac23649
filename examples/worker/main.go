package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/worker"
)

func main() {
	// Ctrl-C ends the worker: it finishes what it holds and claims nothing more.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "keyload-worker-")
	if err == nil {
		err = run(ctx, dir, os.Stdout)
		_ = os.RemoveAll(dir) // only the example's own data
	}
	if err != nil {
		log.Fatal(err)
	}
}

// mail is the payload of a message.
type mail struct {
	To    string `json:"to"`
	Order string `json:"order"`
}

func run(ctx context.Context, dir string, out io.Writer) error {
	db, err := keyload.Open(dir)
	if err != nil {
		return err
	}
	defer db.Close()
	p := keyload.Partition("default", "main", "main", "shop")
	if err := prepare(ctx, db, p); err != nil {
		return err
	}

	working, stop := context.WithCancel(ctx)
	defer stop()
	m := &mailer{out: out, open: 4, finished: stop}

	// With client.New(url, key) in place of db it works for a server.
	w := worker.Queue(db, keyload.Lane(p, "mails"), m.handle, worker.Options{
		Concurrency: 1, // the default is 16; one prints in order
		OnError:     func(err error) { fmt.Fprintln(out, "failed:", err) },
	})
	if err := w.Run(working); err != nil { // until working ends
		return err
	}
	if err := follow(ctx, db, p); err != nil {
		return err
	}
	return report(context.WithoutCancel(ctx), db, p, out)
}

// prepare makes the resources and four messages.
func prepare(ctx context.Context, db *keyload.DB, p api.PartitionRef) error {
	for name, kind := range map[string]api.ResourceKind{
		"mails": api.KindQueue, "history": api.KindStreamSet, "mailed": api.KindTopic,
	} {
		if _, err := db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: name, Kind: kind}); err != nil {
			return err
		}
	}
	for i, to := range []string{"ann", "bob", "nobody", "eve"} {
		message := keyload.Message(mail{To: to, Order: fmt.Sprintf("o-%d", i+1)})
		message.MessageID = "mail-" + to
		if _, err := db.Commit(ctx, p, keyload.Enqueue("mails", message)); err != nil {
			return err
		}
	}
	return nil
}

// mailer is the handler and what it needs.
type mailer struct {
	out      io.Writer
	open     int    // messages that are not done with; a real worker does not count
	finished func() // called when none is
}

// handle works on one message. Nothing of tx happens unless it returns nil; then
// it all commits with the acknowledgement.
func (h *mailer) handle(_ context.Context, tx *worker.Tx, m *worker.Message) error {
	var job mail
	if err := m.Decode(&job); err != nil {
		return worker.Terminal(err) // no retry can help
	}
	if err := h.send(job, m.Attempt); err != nil {
		return err
	}
	tx.Append("history", job.Order, keyload.Event("CustomerMailed", job))
	tx.Publish("mailed", keyload.Event("CustomerMailed", job))
	h.done()
	return nil
}

// send stands for a mail server that knows no "nobody" and has no time for bob
// at first, and for a bug that eve meets once.
func (h *mailer) send(job mail, attempt int64) error {
	fmt.Fprintf(h.out, "mailing %s, attempt %d\n", job.To, attempt)
	switch {
	case job.To == "nobody":
		h.done()
		return worker.Terminal(errors.New("no such address")) // a dead letter, for a person
	case job.To == "bob" && attempt == 1:
		return worker.Retry(200*time.Millisecond, errors.New("the mail server is busy"))
	case job.To == "eve" && attempt == 1:
		panic("a bug") // fails the attempt, not the worker; the queue's policy says when it is tried again
	}
	return nil
}

func (h *mailer) done() {
	if h.open--; h.open == 0 {
		h.finished()
	}
}

// follow lets a group read what was published. Every group of a topic gets every
// event; the workers of one group share them.
func follow(ctx context.Context, db *keyload.DB, p api.PartitionRef) error {
	group := keyload.Group(keyload.Topic(p, "mailed"), "billing")
	if _, err := db.ConfigureGroup(ctx, &api.SubscriptionsConfigureRequest{Group: group}); err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	open := 3
	w := worker.Group(db, group, func(_ context.Context, tx *worker.Tx, e *worker.Event) error {
		var job mail
		if err := e.Decode(&job); err != nil {
			return worker.Terminal(err)
		}
		tx.Append("history", job.Order, keyload.Event("PostageBilled", job))
		if open--; open == 0 {
			stop()
		}
		return nil
	}, worker.Options{Concurrency: 1})
	return w.Run(working)
}

// report shows what is stored now.
func report(ctx context.Context, db *keyload.DB, p api.PartitionRef, out io.Writer) error {
	for _, order := range []string{"o-1", "o-2", "o-4"} {
		for e, err := range db.Stream(ctx, keyload.Stream(p, "history", order), 0) {
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: %s\n", order, e.Type)
		}
	}
	for m, err := range db.Messages(ctx, keyload.Lane(p, "mails"), api.StateDeadLettered) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s is a dead letter: %s\n", m.MessageID, m.LastFailure)
	}
	return nil
}
