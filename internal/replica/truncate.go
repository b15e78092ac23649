package replica

import (
	"github.com/keyload/keyload/internal/kv"
)

// retention is what a log keeps behind what is applied.
type retention struct {
	// entries and bytes, so that a node that was away for a moment is not sent a
	// snapshot.
	entries, bytes uint64
	// farEntries and farBytes are what it keeps at most for a node that was heard from
	// within so many ticks.
	farEntries, farBytes, ticks uint64
}

var usual = retention{entries: 4096, bytes: 32 << 20, farEntries: 1 << 16, farBytes: 256 << 20, ticks: 12_000}

// chores are done now and then.
func (l *loop) chores() {
	for _, g := range l.groups {
		tellDigests(g)
	}
	targets := map[*group]uint64{}
	for _, g := range l.groups {
		if to := spare(g); to > 0 {
			targets[g] = to
		}
	}
	if len(targets) == 0 || l.syncing {
		return
	}
	l.syncing = true
	l.h.streams.Add(1)
	go func() { // what is cut off must be in the state, on disk
		defer l.h.streams.Done()
		err := kv.Sync(l.h.cfg.Store)
		l.h.in.call(func(l *loop) {
			l.syncing = false
			if err == nil {
				l.truncate(targets)
			}
		})
	}()
}

func (l *loop) truncate(targets map[*group]uint64) {
	turn := l.journal.Begin()
	for g, to := range targets {
		if !g.idle() {
			turn.Truncate(g.s.number, to)
		}
	}
	if err := turn.Commit(); err != nil {
		l.broken = err
	}
}

// spare is the entry up to which the log of the group is no longer needed; 0 when
// there is nothing worth cutting off.
func spare(g *group) uint64 {
	if g.idle() {
		return 0
	}
	behind := func(entries, bytes uint64) uint64 {
		applied := g.applied.index
		return max(applied-min(applied, entries), min(applied, g.log.Kept(bytes)))
	}
	keep := g.l.retention
	to := behind(keep.entries, keep.bytes)
	if g.leads() {
		to = min(to, max(needed(g), behind(keep.farEntries, keep.farBytes)))
	}
	first, _ := g.log.Truncated()
	if to <= first || to < first+keep.entries/4 && g.log.Bytes() < keep.bytes*5/4 {
		return 0
	}
	return to
}

// needed is the last entry that every node within reach has.
func needed(g *group) uint64 {
	progress := g.node.Status().Progress
	needed := g.applied.index
	for node, pr := range progress {
		if tick, ok := g.roster.heard[node]; ok && g.l.ticks-tick <= g.l.retention.ticks {
			needed = min(needed, pr.Match)
		}
	}
	if index, any := g.sender.lowest(func(node uint64) uint64 { return progress[node].Match }); any {
		needed = min(needed, index)
	}
	return needed
}
