package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keyload/keyload/api"
)

// pool is the competing workers of one place in one process.
type pool struct {
	place place
	group string // the group's name; empty for the queue
	fates map[string]fate
	lines *lineWriter
	fed   <-chan struct{} // closed when nothing further will come

	workers, late sync.WaitGroup
	end           context.CancelFunc // ends receiving
	mu            sync.Mutex
	err           error // the first error that is not part of the show
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

// drain waits until the place is empty and every latecomer was refused.
func (p *pool) drain() error {
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
		jobs, err := p.place.receive(receiving)
		switch {
		case receiving.Err() != nil:
			return nil
		case gone(err):
			continue // its answer was lost, and asked for again when the leases had run out
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		}
		for i := range jobs {
			if err := p.handle(ctx, &jobs[i]); err != nil {
				return fmt.Errorf("%s: %w", jobs[i].id, err)
			}
		}
		if len(jobs) > 0 {
			continue
		}
		if finished, err := p.finished(ctx); err != nil || finished {
			return err
		}
	}
	return nil
}

// finished says that everything is fed and nothing is left to wait for.
func (p *pool) finished(ctx context.Context) (bool, error) {
	select {
	case <-p.fed:
		return p.place.empty(ctx)
	default:
		return false, nil
	}
}

// handle does what the fate of the delivery says about this attempt.
func (p *pool) handle(ctx context.Context, j *job) error {
	f := p.fates[j.id]
	//keyload:sleep stands for the handler's own work; nothing is waited for
	time.Sleep(f.work)
	switch first := j.attempt == 1; {
	case first && f.crash:
		return nil // as if it died here; another worker gets the delivery when the lease has run out
	case first && f.late:
		p.late.Go(func() {
			if err := p.comeBack(ctx, j); err != nil {
				p.fail(err)
			}
		})
		return nil
	case j.attempt <= f.failures:
		return p.giveBack(ctx, j)
	case f.long && j.attempt <= longTries:
		if held, err := p.prolong(ctx, j); err != nil || !held {
			return err
		}
	}
	_, err := p.place.process(ctx, j)
	switch {
	case gone(err):
		return nil // too slow, on a busy machine: another worker has it
	case err != nil:
		return err
	}
	return p.lines.write(line{Kind: lineProcessed, Group: p.group, ID: j.id})
}

// giveBack fails an attempt: the delivery is due again after a short delay.
func (p *pool) giveBack(ctx context.Context, j *job) error {
	delay := int64(100)
	_, err := p.place.complete(ctx, api.CompleteItem{
		Token: j.token, Action: api.ActionNack, DelayMillis: &delay, Failure: "the mail server did not answer",
	})
	if gone(err) {
		return nil
	}
	return err
}

// prolong works longer than a lease lasts and renews it meanwhile. It is not
// held any more when the machine was too busy to renew in time.
func (p *pool) prolong(ctx context.Context, j *job) (held bool, err error) {
	for range longRenewals {
		//keyload:sleep stands for the handler's own work; nothing is waited for
		time.Sleep(longPause)
		renewed, err := p.place.complete(ctx, api.CompleteItem{Token: j.token, Action: api.ActionRenew, LeaseSeconds: leaseSeconds})
		if gone(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		j.lease = renewed
		if err := p.lines.write(line{Kind: lineRenewed, Group: p.group, ID: j.id}); err != nil {
			return false, err
		}
	}
	return true, nil
}

// comeBack processes a delivery after its lease has run out. It must change
// nothing: either the lease is refused, or another worker has processed the
// delivery and the inbox says so.
func (p *pool) comeBack(ctx context.Context, j *job) error {
	select {
	case <-time.After(j.remaining() + 20*time.Millisecond):
	case <-ctx.Done():
		return nil
	}
	already, err := p.place.process(ctx, j)
	switch {
	case ctx.Err() != nil:
		return nil
	case gone(err), err == nil && already:
		return p.lines.write(line{Kind: lineRefused, Group: p.group, ID: j.id})
	case err != nil:
		return fmt.Errorf("a worker that came back after its lease: %w", err)
	}
	return fmt.Errorf("%s was processed with a lease that had run out", j.id)
}
