package bench

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows what is going on: bars on a terminal, a line for each result
// elsewhere. A nil progress shows nothing.
type progress struct {
	out  io.Writer
	bars *mpb.Progress // nil when out is no terminal
}

// newProgress shows on w; nil shows nothing.
func newProgress(w io.Writer, terminal bool) *progress {
	if w == nil {
		return nil
	}
	p := &progress{out: w}
	if terminal {
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
	}
	return p
}

const (
	barSteps   = 1000
	barRefresh = 100 * time.Millisecond
)

// watch shows a bar that follows share, from 0 to 1, until the returned
// function is called.
func (p *progress) watch(name string, share func() float64) (stop func()) {
	if p == nil || p.bars == nil {
		return func() {}
	}
	bar := p.bars.AddBar(barSteps, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(name+" ")), mpb.AppendDecorators(decor.Percentage()))
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(barRefresh)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				bar.SetCurrent(int64(min(share(), 0.999) * barSteps))
			}
		}
	})
	return func() {
		close(quit)
		wg.Wait()
		bar.Abort(true)
		bar.Wait()
	}
}

// line writes one line above the bars.
func (p *progress) line(text string) {
	switch {
	case p == nil:
	case p.bars != nil:
		fmt.Fprintln(p.bars, text)
	default:
		fmt.Fprintln(p.out, text)
	}
}

// close leaves the terminal as it was.
func (p *progress) close() {
	if p != nil && p.bars != nil {
		p.bars.Wait()
	}
}
