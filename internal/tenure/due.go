package tenure

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
)

const (
	// backoff is how long a shard whose tick failed is left alone.
	backoff = time.Second
	// look is how often the clock is looked at while nothing is due: it may have
	// been set, or the machine may have slept.
	look = 5 * time.Second
)

// Service proposes ticks until it is closed.
type Service struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// Start begins to serve every shard of the engine.
func Start(e *engine.Engine, logger *slog.Logger) *Service {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Service{cancel: cancel}
	for shard := uint16(0); shard <= e.Shards(); shard++ {
		s.wg.Go(func() { serve(ctx, engine.Chores{Engine: e}, shard, logger) })
	}
	return s
}

// Close stops and waits; a tick under way ends first.
func (s *Service) Close() {
	s.cancel()
	s.wg.Wait()
}

// serve sleeps until the shard's next due instant, or until that moved earlier.
func serve(ctx context.Context, e engine.Chores, shard uint16, logger *slog.Logger) {
	for {
		due, changed := e.NextDue(shard)
		wait := look
		if due != 0 {
			wait = min(look, time.Duration(max(due-e.Millis(), 0))*time.Millisecond)
		}
		if wait > 0 {
			if !sleep(ctx, wait, changed) {
				return
			}
			continue
		}
		if _, err := e.Tick(context.WithoutCancel(ctx), shard); err != nil {
			if fault.CodeOf(err) == fault.RecoveryRequired {
				logger.Error("due work ends: the shard has stopped", "shard", shard, "error", err.Error())
				return
			}
			logger.Warn("a tick failed and will be tried again", "shard", shard, "error", err.Error())
			if !sleep(ctx, backoff, nil) {
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-ctx.Done():
		return false
	}
	return true
}
