package replica

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/keyload/keyload/internal/replica/journal"
)

const (
	electionTicks  = 10
	heartbeatTicks = 1
	// doubtTicks is how long the caller of an entry whose fate is open waits after the
	// lead was lost: long enough for a new leader to settle it, as a rule.
	doubtTicks = 4 * electionTicks
	// chores are done every so many ticks: truncation and digests.
	choreTicks = 20
)

// loop is the goroutine that owns every raft group of the node.
type loop struct {
	h       *host
	journal *journal.Journal
	groups  []*group
	ticks   uint64
	failed  error // every group is stopped then
	broken  error // what a call came upon that must end all of them
	done    chan struct{}

	retention retention
	streaming int  // snapshots on their way out
	syncing   bool // the state is being synced, before a truncation
}

func (l *loop) run() {
	defer close(l.done)
	ticker := time.NewTicker(l.h.cfg.Tick)
	defer ticker.Stop()
	for {
		ticked := false
		select {
		case <-l.h.in.wake:
		case <-ticker.C:
			ticked = true
		case <-l.h.life.Done():
			l.h.in.close()
			l.turn(false) // answers what is left, and starts nothing
			return
		}
		l.turn(ticked)
	}
}

// turn handles everything that waits. A journal that cannot be written, or a raft
// group that finds itself in an impossible state, ends all of them: nothing is sent
// any more, so that other nodes take over.
func (l *loop) turn(ticked bool) {
	m := l.h.in.take()
	err := l.safely(func() error { return l.handle(&m, ticked) })
	if err == nil {
		return
	}
	if l.failed == nil {
		l.failed = err
		l.h.cfg.Logger.Error("replication has stopped", "error", err.Error())
	}
	for _, g := range l.groups {
		g.stop(err)
	}
	for len(m.calls) > 0 { // somebody waits for each
		l.safely(func() error { l.next(&m); return nil })
	}
}

// safely makes an error of a panic.
func (l *loop) safely(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			l.h.cfg.Logger.Error("the replication loop panicked", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = fmt.Errorf("replication has come to an impossible state: %v", r)
		}
	}()
	return fn()
}

// next runs the first call that is left.
func (l *loop) next(m *mail) {
	fn := m.calls[0]
	m.calls = m.calls[1:]
	fn(l)
}

func (l *loop) handle(m *mail, ticked bool) error {
	for len(m.calls) > 0 {
		l.next(m)
	}
	if ticked {
		l.ticks++
		for _, g := range l.groups {
			g.tick()
		}
		if l.ticks%choreTicks == 0 {
			l.chores()
		}
	}
	for _, in := range m.messages {
		l.groups[in.shard].step(in.message)
	}
	for _, f := range m.flights {
		f.proposals.s.group.propose(f)
	}
	if l.broken != nil {
		return l.broken
	}
	err := l.drive()
	for _, g := range l.groups {
		g.installer.discard()
		g.changes.settle()
		g.publish()
	}
	return err
}

// drive lets the groups write, send and hand on until none has anything left.
func (l *loop) drive() error {
	for {
		turn := l.journal.Begin()
		var written []*saving
		for _, g := range l.groups {
			g.rounds.start()
			if g.idle() || !g.node.HasReady() {
				continue
			}
			if s := g.ready(turn); s != nil {
				written = append(written, s)
			}
		}
		if err := turn.Commit(); err != nil {
			return fmt.Errorf("the journal cannot be written: %w", err)
		}
		if len(written) == 0 && !l.more() {
			return nil
		}
		for _, s := range written {
			s.saved()
		}
	}
}

// more says whether any group has something to do.
func (l *loop) more() bool {
	for _, g := range l.groups {
		if !g.idle() && g.node.HasReady() {
			return true
		}
	}
	return false
}
