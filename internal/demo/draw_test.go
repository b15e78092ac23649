package demo

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vbauerster/mpb/v8/decor"
	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
)

// windowOf makes a window above a checkpoint from one letter for each position:
// f finished, l leased, r ready, w waiting, b blocked, h held.
func windowOf(checkpoint uint64, positions string) window {
	states := map[byte]api.PositionState{
		'f': api.PositionFinished, 'l': api.PositionLeased, 'r': api.PositionReady,
		'w': api.PositionWaiting, 'b': api.PositionBlocked, 'h': api.PositionHeld,
	}
	w := window{Checkpoint: checkpoint, Issued: checkpoint + uint64(len(positions)), Tail: checkpoint + uint64(len(positions))}
	for i := range len(positions) {
		at, s := checkpoint+uint64(i+1), states[positions[i]]
		if n := len(w.Spans); i > 0 && positions[i] == 'f' && positions[i-1] == 'f' {
			w.Spans[n-1].To = at
			continue
		}
		w.Spans = append(w.Spans, span{at, at, s})
	}
	return w
}

func TestAWindowIsDrawnAsItStands(t *testing.T) {
	for _, c := range []struct {
		name       string
		checkpoint uint64
		positions  string
		total      uint64
		width      int
		blocks     string
	}{
		{"nothing yet", 0, "", 100, 10, "··········"},
		{"a tenth", 10, "", 100, 10, "█·········"},
		{"a fifteenth and a half", 15, "", 100, 10, "█▌········"},
		{"one before the end", 99, "", 100, 10, "█████████▌"},
		{"the end", 100, "", 100, 10, "██████████"},
		{"every state", 10, "lfwrbh", 100, 10, "█░█~~~!···"},
		{"a window that fills its room", 50, "lffffl", 100, 9, "███░████░"},
		{"a window with two positions in a cell", 50, "lfffffl", 100, 9, "████▌░██░"},
		{"the last position alone", 99, "l", 100, 10, "█████████░"},
		{"one cell", 50, "lfl", 100, 1, "░"},
	} {
		w := windowOf(c.checkpoint, c.positions)
		if got := blocks.draw(&w, c.total, c.width); got != c.blocks {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.blocks)
		}
	}
	w := windowOf(15, "lfwh")
	if got, want := ascii.draw(&w, 100, 12), "#.o#~!......"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestADrawingHasItsWidthAndHidesNoHole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := uint64(rapid.IntRange(1, 400).Draw(t, "total"))
		checkpoint := uint64(rapid.IntRange(0, int(total)).Draw(t, "checkpoint"))
		positions := ""
		// The checkpoint stands where it does because what follows is not finished.
		if room := int(total - checkpoint); room > 0 && rapid.Bool().Draw(t, "window") {
			positions = "l" + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"f", "f", "f", "l", "w"}), 0, room-1).Draw(t, "positions"), "")
		}
		width := rapid.IntRange(1, 60).Draw(t, "width")
		w := windowOf(checkpoint, positions)
		for _, g := range []*glyphs{&blocks, &ascii} {
			got := g.draw(&w, total, width)
			if n := utf8.RuneCountInString(got); n != width || !utf8.ValidString(got) {
				t.Fatalf("%q has %d cells, not %d", got, n, width)
			}
			holes := strings.ContainsAny(got, g.cells[leasedMark]+g.cells[waitingMark])
			if want := positions != ""; holes != want {
				t.Fatalf("%q of %q", got, positions)
			}
		}
		for cell, m := range w.marks(max(width*2/3, 1)) {
			per := (len(positions) + max(width*2/3, 1) - 1) / max(width*2/3, 1)
			covered := positions[cell*per : min((cell+1)*per, len(positions))]
			if finished := strings.Trim(covered, "f") == ""; finished != (m == finishedMark) {
				t.Fatalf("cell %d of %q covers %q and is mark %d", cell, positions, covered, m)
			}
		}
	})
}

func TestLinesForFilesAreFewAndASCII(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(Options{Out: &out}, 8, 3)
	show := func(audit, reviews window) { p.windows(map[string]window{"audit": audit, "reviews": reviews}) }
	one := windowOf(1, "lf")
	one.Runs, one.Leased = 1, 1
	show(one, one)
	p.feeding(1)
	show(one, one)
	p.feeding(2)
	show(one, windowOf(3, ""))
	show(one, windowOf(3, ""))
	p.feeding(3)
	end := windowOf(8, "")
	show(one, end)
	show(end, end)
	show(end, end)
	want := ascii.legend() + `
fed 2 of 8
  audit    #####o#.................................  checkpoint   1  tail   3  1 gap, 1 leased
  reviews  ###############.........................  checkpoint   3  tail   3  0 gaps
  reviews  ########################################  checkpoint   8  tail   8  0 gaps
  audit    ########################################  checkpoint   8  tail   8  0 gaps
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestThePictureIsWhatTheTerminalCanShow(t *testing.T) {
	for _, c := range []struct {
		all, kind, lang string
		want            bool
	}{
		{"", "", "", false}, {"", "", "en_US.UTF-8", true}, {"", "", "de_DE.utf8", true}, {"C", "", "en_US.UTF-8", false},
		{"", "POSIX", "en_US.UTF-8", false}, {"C.UTF-8", "POSIX", "C", true},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", c.kind)
		t.Setenv("LANG", c.lang)
		if got := unicodeTerminal(); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

func TestAWindowLineFitsTheTerminal(t *testing.T) {
	b := &bars{}
	l := windowLine{of: b, name: "audit", g: &blocks, total: 329}
	line := func(width int) string {
		var out bytes.Buffer
		if err := l.Fill(&out, decor.Statistics{AvailableWidth: width}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := line(80); got != "" {
		t.Errorf("%q before anything is known", got)
	}
	w := windowOf(212, "lflf")
	w.Tail, w.Runs = 329, 2
	b.windows(map[string]window{"audit": w})
	numbers := "checkpoint 212  tail 329  2 gaps"
	for _, c := range []struct{ width, cells int }{{200, mostCells}, {83, mostCells}, {82, mostCells}, {81, 47}, {36, 2}, {35, 1}} {
		got := line(c.width)
		drawn, text, _ := strings.Cut(got, " ")
		if utf8.RuneCountInString(drawn) != c.cells || strings.TrimSpace(text) != numbers || utf8.RuneCountInString(got) > c.width {
			t.Errorf("%d: %q", c.width, got)
		}
	}
	for _, width := range []int{34, 20, 1, 0} {
		if got := strings.TrimSpace(line(width)); utf8.RuneCountInString(got) != max(width, 0) || strings.Contains(got, "checkpoint") {
			t.Errorf("%d: %q", width, got)
		}
	}
}
