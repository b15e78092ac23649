package demo

import (
	"fmt"
	"io"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows how far the run is.
type progress interface {
	feeding(n int)  // deliveries that are in, in this life of the child
	finished(n int) // messages that are finished
	say(format string, args ...any)
	close()
}

func newProgress(o Options, deliveries, messages int) progress {
	switch {
	case o.JSON:
		return &plainLines{w: o.Err, deliveries: deliveries}
	case o.Terminal:
		return newBars(o.Out, deliveries, messages)
	}
	return &plainLines{w: o.Out, deliveries: deliveries}
}

// plainLines are for files and pipes.
type plainLines struct {
	w          io.Writer
	deliveries int
}

// feeding writes a line every quarter of the input.
func (p *plainLines) feeding(n int) {
	if quarter := (p.deliveries + 3) / 4; n%quarter == 0 || n == p.deliveries {
		p.say("fed %d of %d", n, p.deliveries)
	}
}

func (p *plainLines) finished(int) {}

func (p *plainLines) say(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

func (p *plainLines) close() {}

// bars are for terminals. The one of the feeding begins anew after every kill.
type bars struct {
	all       *mpb.Progress
	fed, done *mpb.Bar
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
	return b
}

func (b *bars) feeding(n int) { b.fed.SetCurrent(int64(n)) }

func (b *bars) finished(n int) { b.done.SetCurrent(int64(n)) }

func (b *bars) say(format string, args ...any) { fmt.Fprintf(b.all, format+"\n", args...) }

func (b *bars) close() {
	b.fed.Abort(false)
	b.done.Abort(false)
	b.all.Wait()
}
