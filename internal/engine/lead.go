package engine

import (
	"context"
	"time"

	"github.com/keyload/keyload/internal/resource/members"
	"github.com/keyload/keyload/internal/resource/system"
)

// leadAgain is how long a new leader of the catalog lets go by between attempts.
const leadAgain = 200 * time.Millisecond

// led is told when this node begins to lead a shard. The leader of the catalog brings
// to an end what the one before it had begun.
func (e spread) led(shard uint16, term uint64) {
	if shard != system.CatalogShard {
		return
	}
	e.gate.Lock()
	defer e.gate.Unlock()
	if e.closed {
		return
	}
	e.leading.Go(func() { e.takeOver(term) })
}

func (e spread) takeOver(term uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-e.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	select {
	case <-e.cluster.opened:
	case <-e.closing:
		return
	}
	for {
		err := e.thaw(ctx)
		if st := e.log.Status(system.CatalogShard); err == nil || !st.Here || st.Term != term {
			return
		}
		e.logger.Warn("the catalog's changes have not reached every shard; it is tried again", "error", err.Error())
		if e.cluster.wait(ctx, leadAgain) != nil {
			return
		}
	}
}

// Announce puts a node into the list of members, or tells where it is now, with the
// command id of the request or a new one. Errors are *fault.Error.
func Announce(ctx context.Context, e *Engine, req members.JoinRequest) error {
	if err := e.enter(); err != nil {
		return e.public(err, "")
	}
	defer e.calls.Done()
	s := spread{e}
	if req.CommandID == "" {
		req.CommandID = s.commandID()
	}
	if _, err := s.internal(ctx, system.CatalogShard, members.Join.Operation, req.CommandID, &req); err != nil {
		return e.public(err, "")
	}
	return nil
}
