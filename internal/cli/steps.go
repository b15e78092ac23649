package cli

import (
	"fmt"
	"strings"

	"github.com/keyload/keyload/internal/check"
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
func (s *session) steps() check.Progress {
	if !s.streams.ErrTerminal || s.JSON {
		return nil
	}
	var last check.Step
	shown := ""
	s.endLine = func() {
		if shown != "" {
			fmt.Fprintln(s.streams.Err)
			shown = ""
		}
	}
	return func(step check.Step, done, total int64) {
		if last != step {
			s.endLine()
		}
		last = step
		line := stepLine(step, done, total)
		if line == shown {
			return
		}
		fmt.Fprintf(s.streams.Err, "\r%s%s", line, strings.Repeat(" ", max(0, len(shown)-len(line))))
		if shown = line; total > 0 && done == total {
			s.endLine()
		}
	}
}

// units are the names of what is counted.
var units = map[check.Unit]string{check.Rows: "rows", check.Shards: "shards"}

// stepLine changes a hundred times at most where the end is known.
func stepLine(step check.Step, done, total int64) string {
	count := func(n int64) string { return fmt.Sprintf("%d %s", n, units[step.Unit]) }
	if step.Unit == check.Bytes {
		count = size
	}
	switch {
	case total > 0 && done < total && step.Unit == check.Rows: // of an estimate
		return fmt.Sprintf("%-9s %3d%% of the rows", step.Done, done*100/total)
	case total > 0:
		return fmt.Sprintf("%-9s %3d%% of %s", step.Done, done*100/total, count(total))
	}
	return fmt.Sprintf("%-9s %s", step.Done, count(done))
}
