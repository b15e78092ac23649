package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/check"
)

// shownFindings is how many findings people are shown; --json has them all.
const shownFindings = 20

type checkCmd struct {
	Store string `arg:"" optional:"" type:"path" name:"dir" help:"directory of the store; no process may have it open"`
}

// Help is the example.
func (*checkCmd) Help() string {
	return "Reads everything and changes nothing. Exits with 14 when something is wrong. For example:\n\n    keyload check data"
}

// Run checks the store.
func (c *checkCmd) Run(s *session) error {
	dir := c.Store
	if dir == "" {
		dir = s.Dir
	}
	if dir == "" {
		return &badUsage{text: "name the directory of the store"}
	}
	report, err := check.Dir(dir, s.progress("shards checked"))
	if err != nil {
		return err
	}
	if s.JSON {
		err = s.showJSON(report)
	} else {
		err = showReport(s.streams.Out, dir, report)
	}
	if err == nil && len(report.Findings) > 0 {
		err = &refused{fault.Corruption}
	}
	return err
}

// progress writes how far long work is where a person sees it, and keeps to one
// line; nothing elsewhere.
func (s *session) progress(what string) func(done, total int) {
	if !s.streams.Terminal || s.JSON {
		return nil
	}
	return func(done, total int) {
		end := ""
		if done == total {
			end = "\n"
		}
		fmt.Fprintf(s.streams.Err, "\r%d of %d %s%s", done, total, what, end)
	}
}

// showReport writes what was counted, then what is wrong.
func showReport(w io.Writer, dir string, r *check.Report) error {
	out := fmt.Sprintf("%s, incarnation %s, format %d, %d shards: %d rows, %d bytes\n",
		dir, r.Incarnation, r.Format, r.Shards, r.Rows, r.Bytes)
	for _, name := range slices.Sorted(maps.Keys(r.Counts)) {
		out += fmt.Sprintf("  %-24s %d\n", name, r.Counts[name])
	}
	for i, f := range r.Findings {
		if i == shownFindings {
			out += fmt.Sprintf("and %d more; --json lists them\n", len(r.Findings)-i)
			break
		}
		out += fmt.Sprintf("WRONG %s, %s: %s\n", f.Invariant, f.Where, f.Text)
	}
	if len(r.Findings) == 0 {
		out += "sound: every rule holds\n"
	}
	_, err := io.WriteString(w, out)
	return err
}
