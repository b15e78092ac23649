package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
)

const (
	leaseSeconds = 1   // short, so that what a killed process held comes back soon
	waitMillis   = 250 // how long a receive waits for a message
)

// pool is the competing workers of one process.
type pool struct {
	calls client.Calls
	fates map[string]fate
	lines *lineWriter

	workers, late sync.WaitGroup
	end           context.CancelFunc // ends receiving
	fed           chan struct{}      // closed when no further message will come
	mu            sync.Mutex
	err           error // the first error that is not part of the show
}

func newPool(d api.Doer, run identity, input []delivery, w *lineWriter) *pool {
	return &pool{calls: client.CallsOf(d), fates: run.fates(input), lines: w, fed: make(chan struct{})}
}

func (p *pool) start(ctx context.Context, workers int) {
	receiving, end := context.WithCancel(ctx)
	p.end = end
	for range workers {
		p.workers.Go(func() {
			if err := p.work(ctx, receiving); err != nil {
				p.fail(err)
			}
		})
	}
}

func (p *pool) fail(err error) {
	p.mu.Lock()
	p.err = errors.Join(p.err, err)
	p.mu.Unlock()
	p.end()
}

// drain waits until the queue is empty and every latecomer was refused.
func (p *pool) drain() error {
	close(p.fed)
	p.workers.Wait()
	p.end()
	p.late.Wait()
	return p.err
}

// stop ends the workers where they are.
func (p *pool) stop() {
	p.end()
	p.workers.Wait()
	p.late.Wait()
}

// work is one worker: it receives, handles, and receives again.
func (p *pool) work(ctx, receiving context.Context) error {
	for receiving.Err() == nil {
		got, err := p.calls.Receive(receiving, &api.QueuesReceiveRequest{Lane: lane(), LeaseSeconds: leaseSeconds, WaitMillis: waitMillis})
		switch {
		case receiving.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		}
		for i := range got.Deliveries {
			if err := p.handle(ctx, &got.Deliveries[i]); err != nil {
				return fmt.Errorf("%s: %w", got.Deliveries[i].MessageID, err)
			}
		}
		if len(got.Deliveries) > 0 {
			continue
		}
		if finished, err := p.finished(ctx); err != nil || finished {
			return err
		}
	}
	return nil
}

// finished says that everything is fed and no message is left to wait for.
func (p *pool) finished(ctx context.Context) (bool, error) {
	select {
	case <-p.fed:
	default:
		return false, nil
	}
	s, err := p.calls.QueueStatus(ctx, lane())
	if err != nil {
		return false, err
	}
	return s.Counts.Ready+s.Counts.Scheduled+s.Counts.Leased == 0, nil
}

// handle does what the fate of the message says about this attempt.
func (p *pool) handle(ctx context.Context, d *api.Delivery) error {
	f := p.fates[d.MessageID]
	//keyload:sleep stands for the handler's own work; nothing is waited for
	time.Sleep(f.work)
	switch first := d.Attempt == 1; {
	case first && f.crash:
		return nil // as if it died here; another worker gets the message when the lease has run out
	case first && f.late:
		p.late.Go(func() {
			if err := p.comeBack(ctx, d); err != nil {
				p.fail(err)
			}
		})
		return nil
	case d.Attempt <= f.failures:
		return p.giveBack(ctx, d)
	}
	_, err := p.process(ctx, d)
	switch code := fault.CodeOf(err); {
	case code == fault.LeaseExpired || code == fault.StaleLease:
		return nil // too slow, on a busy machine: another worker has it
	case err != nil:
		return err
	}
	return p.lines.write(line{Kind: lineProcessed, Message: d.MessageID})
}

// giveBack fails an attempt: the message is due again after a short delay.
func (p *pool) giveBack(ctx context.Context, d *api.Delivery) error {
	delay := int64(100)
	got, err := p.calls.Complete(ctx, lane(), api.CompleteItem{
		Token: d.Token, Action: api.ActionNack, DelayMillis: &delay, Failure: "the mail server did not answer",
	})
	if err != nil {
		return err
	}
	if e := got.Results[0].Error; e != nil && e.Code != fault.LeaseExpired && e.Code != fault.StaleLease {
		return e
	}
	return nil
}

// comeBack processes a delivery after its lease has run out. It must change
// nothing: either the lease is refused, or another worker has processed the
// message and the inbox says so.
func (p *pool) comeBack(ctx context.Context, d *api.Delivery) error {
	select {
	case <-time.After(time.Until(d.LeaseUntil.Time()) + 20*time.Millisecond):
	case <-ctx.Done():
		return nil
	}
	got, err := p.process(ctx, d)
	code := fault.CodeOf(err)
	switch {
	case ctx.Err() != nil:
		return nil
	case code == fault.LeaseExpired || code == fault.StaleLease, err == nil && got.AlreadyProcessed:
		return p.lines.write(line{Kind: lineRefused, Message: d.MessageID})
	case err != nil:
		return fmt.Errorf("a worker that came back after its lease: %w", err)
	}
	return fmt.Errorf("%s was processed with a lease that had run out", d.MessageID)
}

// process commits the effects of a message with its acknowledgement. The effects
// depend on the message alone. None of them is protected by itself against being
// applied twice: each would show it.
func (p *pool) process(ctx context.Context, d *api.Delivery) (*api.QueuesProcessResponse, error) {
	var n notice
	if err := json.Unmarshal(d.Payload, &n); err != nil {
		return nil, err
	}
	text := n.text()
	return p.calls.Process(ctx, &api.QueuesProcessRequest{
		Lane: lane(), Token: d.Token, HandlerScope: handlerScope,
		Effects: []api.Mutation{
			keyload.Put(notified, d.MessageID, noticeDocument{n.Repository, n.Event, text}),
			keyload.Append(effects, effectsStream, keyload.Event(effectType, effectPayload{d.MessageID, text})),
			{PatchDocument: &api.PatchDocument{Collection: totals, ID: totalsID, Patches: []api.Patch{
				{Op: api.PatchIncrement, Path: "/" + n.Event, Value: api.Of(1)},
			}}},
		},
	})
}

// noticeDocument is the document a message leaves.
type noticeDocument struct {
	Repository string `json:"repository"`
	Event      string `json:"event"`
	Text       string `json:"text"`
}

// effectPayload is the payload of the event a message leaves.
type effectPayload struct {
	Message string `json:"message"`
	Text    string `json:"text"`
}
