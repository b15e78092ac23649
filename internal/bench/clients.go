package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
)

// errDone says that a client has nothing left to do.
var errDone = errors.New("nothing is left to do")

// committing repeats one commit: its mutations are made once and sent again and
// again, each time under a new command id.
type committing struct {
	bed    *bed
	commit api.CommandsCommitRequest
}

func (c *committing) call(ctx context.Context) error {
	resp, err := api.Call(ctx, c.bed.doer, api.CommandsCommit, &c.commit)
	if err == nil && len(resp.Results) != len(c.commit.Mutations) {
		err = fmt.Errorf("a commit of %d mutations answered %d results", len(c.commit.Mutations), len(resp.Results))
	}
	return err
}

// publisher is a client of the workloads A.
type publisher struct {
	committing
	batch int
}

func newPublisher(b *bed, number int) cycler {
	events := make([]api.Event, b.workload.Batch)
	for i := range events {
		events[i] = api.Event{Type: eventType, Payload: b.payload(number, i)}
	}
	p := &publisher{committing{b, api.CommandsCommitRequest{Partition: partition}}, len(events)}
	p.commit.Mutations = []api.Mutation{{Publish: &api.Publish{Topic: topicName, Events: events}}}
	return p
}

// payload picks one by the number of a client and of a message of its cycle.
func (b *bed) payload(client, message int) api.JSON {
	return b.payloads[(client*b.workload.Batch+message)%len(b.payloads)]
}

func (p *publisher) cycle(ctx context.Context, r *recorder) (int, error) {
	start := time.Now()
	if err := p.call(ctx); err != nil {
		return 0, err
	}
	r.since(stepPublish, start)
	r.published += int64(p.batch)
	return p.batch, nil
}

// enqueuing sends batches of messages.
type enqueuing struct{ committing }

func newEnqueuing(b *bed, number, batch int) enqueuing {
	e := enqueuing{committing{b, api.CommandsCommitRequest{Partition: partition}}}
	for i := range batch {
		e.commit.Mutations = append(e.commit.Mutations, api.Mutation{Enqueue: &api.Enqueue{
			Queue: queueName, Message: api.Message{Payload: b.payload(number, i)},
		}})
	}
	return e
}

func (e *enqueuing) send(ctx context.Context, r *recorder) error {
	start := time.Now()
	if err := e.call(ctx); err != nil {
		return err
	}
	r.since(stepEnqueue, start)
	r.enqueued += int64(len(e.commit.Mutations))
	return nil
}

// enqueuer is a client of the workloads AQ.
type enqueuer struct{ enqueuing }

func newEnqueuer(b *bed, number int) cycler {
	return &enqueuer{newEnqueuing(b, number, b.workload.Batch)}
}

func (e *enqueuer) cycle(ctx context.Context, r *recorder) (int, error) {
	return len(e.commit.Mutations), e.send(ctx, r)
}

// receiving claims and acknowledges batches of messages.
type receiving struct {
	bed      *bed
	receive  api.QueuesReceiveRequest
	complete api.QueuesCompleteRequest
}

func newReceiving(b *bed, batch int) receiving {
	return receiving{
		bed:      b,
		receive:  api.QueuesReceiveRequest{Lane: lane, MaxMessages: int64(batch), MaxBytes: limits.ReceiveBytes},
		complete: api.QueuesCompleteRequest{Lane: lane, Items: make([]api.CompleteItem, 0, batch)},
	}
}

// take claims up to most messages; 0 when none waits.
func (c *receiving) take(ctx context.Context, r *recorder, most int) (int, error) {
	start := time.Now()
	c.receive.MaxMessages = int64(most)
	var resp *api.QueuesReceiveResponse
	for {
		var err error
		if resp, err = api.Call(ctx, c.bed.doer, api.QueuesReceive, &c.receive); err != nil {
			return 0, err
		}
		if resp.Reason != api.ReasonScanLimit {
			break
		}
	}
	r.since(stepReceive, start)
	r.received += int64(len(resp.Deliveries))
	c.complete.Items = c.complete.Items[:0]
	for i := range resp.Deliveries {
		d := &resp.Deliveries[i]
		c.complete.Items = append(c.complete.Items, api.CompleteItem{Token: d.Token, Action: api.ActionAck})
		if c.bed.observe != nil {
			c.bed.observe(d.MessageID)
		}
	}
	return len(resp.Deliveries), nil
}

// ack finishes what take claimed.
func (c *receiving) ack(ctx context.Context, r *recorder) error {
	start := time.Now()
	resp, err := api.Call(ctx, c.bed.doer, api.QueuesComplete, &c.complete)
	if err != nil {
		return err
	}
	if len(resp.Results) != len(c.complete.Items) {
		return fmt.Errorf("%d acknowledgements answered %d results", len(c.complete.Items), len(resp.Results))
	}
	for i := range resp.Results {
		if f := resp.Results[i].Error; f != nil {
			return f
		}
	}
	r.since(stepComplete, start)
	r.completed += int64(len(resp.Results))
	return nil
}

// worker is a client of the workloads B and C. Each enqueues before it receives,
// so a receive always finds as much as it asks for, if not of the same worker.
type worker struct {
	enqueuing
	receiving
}

func newWorker(b *bed, number int) cycler {
	return &worker{newEnqueuing(b, number, b.workload.Batch), newReceiving(b, b.workload.Batch)}
}

func (w *worker) cycle(ctx context.Context, r *recorder) (int, error) {
	if err := w.send(ctx, r); err != nil {
		return 0, err
	}
	batch := len(w.commit.Mutations)
	for left := batch; left > 0; {
		n, err := w.take(ctx, r, left)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, fmt.Errorf("a receive found nothing although at least %d messages wait", left)
		}
		if err := w.ack(ctx, r); err != nil {
			return 0, err
		}
		left -= n
	}
	return batch, nil
}

// drainer is the client of the workload D.
type drainer struct {
	receiving
	batch int
}

func newDrainer(b *bed, _ int) cycler {
	return &drainer{newReceiving(b, b.workload.Batch), b.workload.Batch}
}

func (d *drainer) cycle(ctx context.Context, r *recorder) (int, error) {
	n, err := d.take(ctx, r, d.batch)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, errDone
	}
	return n, d.ack(ctx, r)
}
