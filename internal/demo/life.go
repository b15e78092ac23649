package demo

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// run is the parent's view of one demo.
type run struct {
	identity
	options  Options
	dir      string
	input    []delivery
	show     progress
	finished map[string]bool  // messages whose processing was reported
	maxRuns  map[string]int64 // most gap runs seen, by group
	summary  Summary
}

// lives starts the child again after every kill until it is done, and has a
// fresh one read everything back.
func (r *run) lives(ctx context.Context) (*found, error) {
	r.show.say("%d deliveries, %d of them make a message; a queue and %s with %d workers each; seed %d",
		len(r.input), messages(r.input), many(int64(len(groups)), "group"), r.options.Workers, r.seed)
	k := newKiller(r.seed, r.options.Workers, r.input)
	for r.summary.Kills < r.options.Kills {
		m := k.next(len(r.finished))
		killed, err := r.life(ctx, &m)
		if err != nil {
			return nil, err
		}
		if !killed {
			return nil, fmt.Errorf("kill %d was to come while %s, and the job was done before", r.summary.Kills+1, m.phase)
		}
		r.show.say("starting it again: it feeds the input from delivery 1 again, and receipts answer for what is committed already")
	}
	if _, err := r.life(ctx, nil); err != nil {
		return nil, err
	}
	r.show.say("everything is done; reading it back in a fresh process")
	return r.readBack(ctx)
}

// life is one child from its start to its end: at its moment, or when it is
// done.
func (r *run) life(ctx context.Context, m *moment) (killed bool, err error) {
	p, err := startChild(ctx, "--dir", r.dir, "--seed", strconv.FormatUint(r.seed, 10),
		"--started", strconv.FormatInt(r.started, 10), "--workers", strconv.Itoa(r.options.Workers))
	if err != nil {
		return false, err
	}
	now := &tally{}
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	var due <-chan time.Time
	for {
		select {
		case l, ok := <-p.lines:
			quiet.Reset(silence)
			switch {
			case !ok:
				err = p.rest(nil)
				if ctx.Err() != nil {
					return false, ctx.Err()
				}
				return false, p.died(err)
			case l.Kind == lineFailed:
				p.rest(func(line) {})
				return false, fmt.Errorf("the process that owns the store gave up: %s", l.Text)
			case l.Kind == lineDone:
				// A report that a kill cut off is made up for: everything is finished.
				r.show.finished(messages(r.input))
				return false, p.finish()
			}
			r.see(now, l)
			if m != nil && due == nil && m.reached(now) {
				due = time.After(m.delay)
			}
		case <-due:
			return true, r.killIt(p, now, m)
		case <-quiet.C:
			p.kill()
			p.rest(func(line) {})
			return false, fmt.Errorf("the process that owns the store reported nothing for %v", silence)
		}
	}
}

// tally is what one life has reported.
type tally struct {
	fed, replayed, finished int
	windows                 map[string]window // by group, when they were reported last
}

// gap says that a group has one; an empty name is any group.
func (t *tally) gap(group string) bool {
	for name, w := range t.windows {
		if (name == group || group == "") && w.gap() {
			return true
		}
	}
	return false
}

// see takes note of a report.
func (r *run) see(now *tally, l line) {
	switch l.Kind {
	case lineOpened:
		if r.summary.Kills > 0 {
			r.leftBehind(l.Windows)
		}
		r.seeWindows(now, l.Windows)
	case lineFed:
		now.fed = l.Index + 1
		if l.Replayed {
			now.replayed++
			r.summary.ReplayedReceipts++
		}
		r.show.feeding(now.fed)
	case lineProcessed:
		if l.Group == "" {
			now.finished++
			r.finished[l.ID] = true
			r.show.finished(len(r.finished))
		}
	case lineRefused:
		r.summary.LateRefused++
	case lineRenewed:
		r.summary.Renewals++
	case lineWindows:
		r.seeWindows(now, l.Windows)
	}
}

func (r *run) seeWindows(now *tally, all map[string]window) {
	now.windows = all
	for name, w := range all {
		r.maxRuns[name] = max(r.maxRuns[name], w.Runs)
	}
	r.show.windows(all)
}

// leftBehind tells what the killed process left: its successor has looked before
// any worker began. A gap is there until a worker closes it, but how many leases
// of the dead still run depends on how long the successor took to open.
func (r *run) leftBehind(all map[string]window) {
	gap := false
	for i := range groups {
		w := all[groups[i].name]
		gap = gap || w.Runs > 0
		r.show.say("kill %d left %s at %s", r.summary.Kills, groups[i].name, w.counts())
	}
	if gap {
		r.summary.KillsInGaps++
	}
}

// killIt kills the child and reads what it had still reported.
func (r *run) killIt(p *process, now *tally, m *moment) error {
	if err := p.kill(); err != nil {
		return p.died(err)
	}
	ended := false
	err := p.rest(func(l line) {
		ended = ended || l.Kind == lineDone || l.Kind == lineFailed
		r.see(now, l)
	})
	if err == nil || ended {
		return fmt.Errorf("the process that owns the store ended before kill %d", r.summary.Kills+1)
	}
	r.summary.Kills++
	r.show.say("kill %d, while %s: delivery %d of %d was in (%d of them by receipt), %d of %d messages were finished",
		r.summary.Kills, m.phase, now.fed, len(r.input), now.replayed, len(r.finished), messages(r.input))
	return nil
}
