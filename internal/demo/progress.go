package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows how far the run is.
type progress interface {
	feeding(n int)  // deliveries that are in, in this life of the child
	finished(n int) // messages that are finished
	windows(all map[string]window)
	say(format string, args ...any)
	close()
}

func newProgress(o Options, deliveries, messages int) progress {
	if o.Terminal && !o.Plain && !o.JSON {
		return newBars(o.Out, deliveries, messages)
	}
	p := &plainLines{w: o.Out, deliveries: deliveries}
	if o.JSON {
		p.w = o.Err
	}
	p.say("%s", ascii.legend())
	return p
}

// unicodeTerminal says that the terminal shows more than ASCII, as far as the
// environment tells.
func unicodeTerminal() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// plainLines are for files and pipes.
type plainLines struct {
	w          io.Writer
	deliveries int
	last       map[string]window
	due        bool // the next windows are written
}

// plainWidth is how many cells a window has on a line.
const plainWidth = 40

// feeding writes how far it is, and where the groups are, at every quarter of
// the input.
func (p *plainLines) feeding(n int) {
	if quarter := (p.deliveries + 3) / 4; n%quarter == 0 || n == p.deliveries {
		p.say("fed %d of %d", n, p.deliveries)
		p.due = true
	}
}

func (p *plainLines) finished(int) {}

// windows writes those that are due, and that of a group that is at the end.
func (p *plainLines) windows(all map[string]window) {
	end := uint64(p.deliveries)
	for i := range groups {
		name := groups[i].name
		w := all[name]
		if p.due || w.Checkpoint == end && p.last[name].Checkpoint != end {
			p.say("  %-8s %s  %s", name, ascii.draw(&w, end, plainWidth), w.counts())
		}
	}
	p.last, p.due = all, false
}

func (p *plainLines) say(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

func (p *plainLines) close() {}

// bars are for terminals. The one of the feeding begins anew after every kill.
type bars struct {
	all       *mpb.Progress
	fed, done *mpb.Bar
	groups    []*mpb.Bar
	last      atomic.Pointer[map[string]window]
}

func newBars(w io.Writer, deliveries, messages int) *bars {
	b := &bars{all: mpb.New(mpb.WithOutput(w), mpb.WithWidth(72))}
	bar := func(name string, total int) *mpb.Bar {
		// A bar with a total completes at it and cannot go back; this one ends
		// with close.
		x := b.all.AddBar(0,
			mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR)),
			mpb.AppendDecorators(decor.CountersNoUnit("%d of %d")))
		x.SetTotal(int64(total), false)
		return x
	}
	b.fed, b.done = bar("deliveries fed", deliveries), bar("messages finished", messages)
	g := &ascii
	if unicodeTerminal() {
		g = &blocks
	}
	for i := range groups {
		b.groups = append(b.groups, b.all.New(0, mpb.BarFillerBuilder(windowLine{b, groups[i].name, g, uint64(deliveries)}),
			mpb.PrependDecorators(decor.Name("group "+groups[i].name, decor.WCSyncSpaceR))))
	}
	b.say("%s", g.legend())
	return b
}

// windowLine draws the window of one group.
type windowLine struct {
	of    *bars
	name  string
	g     *glyphs
	total uint64
}

// Build is windowLine itself.
func (l windowLine) Build() mpb.BarFiller { return l }

// mostCells is how wide a window is drawn where there is more room.
const mostCells = 48

// Fill writes the window and its numbers, and leaves out what has no room.
func (l windowLine) Fill(w io.Writer, room decor.Statistics) error {
	all := l.of.last.Load()
	if all == nil || room.AvailableWidth < 1 {
		return nil
	}
	x := (*all)[l.name]
	text := fmt.Sprintf(" %-33s", x.where()) // so that the window keeps its width
	cells := room.AvailableWidth - len(text)
	if cells < 1 {
		text, cells = "", room.AvailableWidth
	}
	_, err := io.WriteString(w, l.g.draw(&x, l.total, min(cells, mostCells))+text)
	return err
}

func (b *bars) feeding(n int) { b.fed.SetCurrent(int64(n)) }

func (b *bars) finished(n int) { b.done.SetCurrent(int64(n)) }

func (b *bars) windows(all map[string]window) { b.last.Store(&all) }

func (b *bars) say(format string, args ...any) { fmt.Fprintf(b.all, format+"\n", args...) }

func (b *bars) close() {
	b.fed.Abort(false)
	b.done.Abort(false)
	for _, x := range b.groups {
		x.Abort(false)
	}
	b.all.Wait()
}
