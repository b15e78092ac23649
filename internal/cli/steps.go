package cli

import (
	"fmt"
	"strings"

	"github.com/keyload/keyload/internal/backup"
)

// size writes bytes for people.
func size(n int64) string {
	const step = 1024
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < step {
		return fmt.Sprintf("%d bytes", n)
	}
	v, unit := float64(n)/step, 0
	for v >= step && unit < len(units)-1 {
		v, unit = v/step, unit+1
	}
	return fmt.Sprintf("%.1f %s", v, units[unit])
}

// steps shows how far the steps of long work are where a person sees it, each on
// a line of its own; nothing elsewhere.
func (s *session) steps() backup.Progress {
	if !s.streams.Terminal || s.JSON {
		return nil
	}
	var last, shown string
	return func(step string, done, total int64) {
		if last != "" && last != step {
			fmt.Fprintln(s.streams.Err)
			shown = ""
		}
		last = step
		line := stepLine(step, done, total)
		if line == shown {
			return
		}
		fmt.Fprintf(s.streams.Err, "\r%s%s", line, strings.Repeat(" ", max(0, len(shown)-len(line))))
		if shown = line; total > 0 && done == total {
			fmt.Fprintln(s.streams.Err)
			last, shown = "", ""
		}
	}
}

// stepLine changes a hundred times at most where the end is known.
func stepLine(step string, done, total int64) string {
	what, bytes := strings.CutPrefix(step, "bytes ")
	switch {
	case total > 0:
		return fmt.Sprintf("%-9s %3d%% of %s", what, done*100/total, size(total))
	case bytes:
		return fmt.Sprintf("%-9s %s", what, size(done))
	}
	return fmt.Sprintf("%s: %d", step, done)
}
