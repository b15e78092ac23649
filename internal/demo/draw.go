package demo

import (
	"fmt"
	"strings"

	"github.com/keyload/keyload/api"
)

// mark is what one cell of a drawn window says. Where a cell stands for several
// positions, the highest of their marks shows.
type mark int

const (
	finishedMark mark = iota
	comingMark        // not issued, or not there yet
	leasedMark
	waitingMark
	heldMark
)

// glyphs are the cells by mark; half is half a finished cell.
type glyphs struct {
	cells [5]string
	half  string
}

var (
	blocks = glyphs{[5]string{"█", "·", "░", "~", "!"}, "▌"}
	ascii  = glyphs{[5]string{"#", ".", "o", "~", "!"}, "."}
)

// legend explains the cells.
func (g *glyphs) legend() string {
	return fmt.Sprintf("windows of the groups: %s finished, %s leased, %s waits for another try, %s held, %s to come",
		g.cells[finishedMark], g.cells[leasedMark], g.cells[waitingMark], g.cells[heldMark], g.cells[comingMark])
}

func markOf(s api.PositionState) mark {
	switch s {
	case api.PositionFinished:
		return finishedMark
	case api.PositionLeased:
		return leasedMark
	case api.PositionHeld:
		return heldMark
	}
	return waitingMark
}

// draw is the way to the last of total positions in exactly width cells: the
// finished prefix to scale, unless the window needs its room; the window, a cell
// per position while two thirds of the width are enough for it; and what is to
// come.
func (g *glyphs) draw(w *window, total uint64, width int) string {
	width = max(width, 1)
	cells := w.marks(max(width*2/3, 1))
	rest := width - len(cells)
	halves := 2 * rest
	if w.Checkpoint < total {
		halves = min(halves, int(2*uint64(width)*w.Checkpoint/total))
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(g.cells[finishedMark], halves/2))
	if halves%2 == 1 {
		b.WriteString(g.half)
	}
	for _, m := range cells {
		b.WriteString(g.cells[m])
	}
	b.WriteString(strings.Repeat(g.cells[comingMark], rest-(halves+1)/2))
	return b.String()
}

// marks are the cells of the positions from the checkpoint to the last issued
// one, at most most of them.
func (w *window) marks(most int) []mark {
	n := int(w.Issued - w.Checkpoint)
	if n == 0 {
		return nil
	}
	per := (n + most - 1) / most // positions of one cell
	cells := make([]mark, (n+per-1)/per)
	for _, s := range w.Spans {
		for p := s.From; p <= s.To; p++ {
			cell := int(p-w.Checkpoint-1) / per
			cells[cell] = max(cells[cell], markOf(s.State))
		}
	}
	return cells
}

// where says in numbers where the group stands.
func (w *window) where() string {
	return fmt.Sprintf("checkpoint %3d  tail %3d  %s", w.Checkpoint, w.Tail, many(w.Runs, "gap"))
}

// counts is where with everything that is not finished.
func (w *window) counts() string {
	text := w.where()
	for _, x := range []struct {
		n    int64
		what string
	}{{w.Leased, "leased"}, {w.Waiting, "waiting"}, {w.Held, "held"}} {
		if x.n > 0 {
			text += fmt.Sprintf(", %d %s", x.n, x.what)
		}
	}
	return text
}

// many is a number with its noun.
func many(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
