package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/check"
)

// shownFindings is how many findings people are shown; --json has them all.
const shownFindings = 20

type checkCmd struct {
	Store  string `arg:"" optional:"" name:"dir-or-url" help:"directory of a store that no process has open, or URL of a server"`
	Repair bool   `name:"repair-indexes" help:"make rows that follow from others (index entries, due rows, copies of the catalog) what these imply; never touches anything else. For a directory only"`
}

// Help says what is read and changed, and how a script tells.
func (*checkCmd) Help() string {
	return `Reads every row and verifies every rule between them. Changes nothing, unless --repair-indexes is given. ` +
		`A directory is read at once; no process may have it open. A server is read shard by shard while it goes on, which needs an administrator's key. ` +
		`Exits with 14 when something is wrong, and says where. For example:

    keyload check data
    keyload check http://127.0.0.1:7600
    keyload check data --repair-indexes

What only indexes say is safe to make anew, and a repair that was interrupted can be run again. ` +
		`What else is wrong is left as it is: restore a backup, or keep a copy of the directory and ask for help.`
}

// Run checks the store.
func (c *checkCmd) Run(s *session) error {
	dir, url := c.Store, ""
	if strings.HasPrefix(dir, "http://") || strings.HasPrefix(dir, "https://") {
		dir, url = "", dir
	}
	if err := mistaken(dir, url); err != nil {
		return err
	}
	switch {
	case dir != "":
		dir = kong.ExpandPath(dir)
		s.Dir = dir // what is advised is about it
	case url != "" && s.Dir != "":
		return &badUsage{text: "name a directory or a server, not both"}
	case url == "":
		if dir = s.Dir; dir == "" {
			url = strings.Join(s.URL, ",")
		}
	}
	switch {
	case dir == "" && url == "":
		return &badUsage{text: "name the directory of a store, as it is or with --dir, or the URL of a server, as it is or with --url"}
	case url != "" && c.Repair:
		return &badUsage{text: "--repair-indexes is for a directory: stop the server and name its directory"}
	case c.Repair:
		return c.repair(s, dir)
	}
	var report *check.Report
	var err error
	subject := dir
	if url != "" {
		subject = url
		report, err = c.remote(s, url)
	} else {
		report, err = check.Dir(s.ctx, dir, s.steps())
	}
	if err != nil {
		return err
	}
	if s.JSON {
		err = s.showJSON(report)
	} else {
		err = showReport(s.streams.Out, s.name, subject, report, url == "")
	}
	return unsound(report, err)
}

// address matches a host and a port.
var address = regexp.MustCompile(`^[^/\\]*:\d+(/.*)?$`)

// mistaken refuses what is meant for a server and is not the URL of one.
func mistaken(dir, url string) error {
	if url != "" {
		rest := strings.TrimSuffix(url[strings.Index(url, "://")+len("://"):], "/")
		if at := strings.IndexByte(rest, '/'); at >= 0 {
			return &badUsage{text: "give the URL of the server alone: " + strings.TrimSuffix(strings.TrimSuffix(url, "/"), rest[at:])}
		}
		return nil
	}
	if _, err := os.Stat(dir); err != nil && address.MatchString(dir) {
		return &badUsage{text: "there is no directory " + dir + "; if it is the address of a server, write http://" + dir}
	}
	return nil
}

// remote checks a server.
func (c *checkCmd) remote(s *session, url string) (*check.Report, error) {
	s.Dir, s.URL = "", []string{url}
	d, closeClient, err := s.open()
	if err != nil {
		return nil, err
	}
	report, err := check.Remote(s.ctx, d, s.steps())
	if closeErr := closeClient(); err == nil {
		err = closeErr
	}
	return report, err
}

// repair rebuilds what follows from other rows.
func (c *checkCmd) repair(s *session, dir string) error {
	out, err := check.Repair(s.ctx, dir, s.steps())
	if err != nil {
		return err
	}
	if s.JSON {
		return unsound(&out.Report, s.showJSON(out))
	}
	text := ""
	for _, t := range out.Tables {
		text += fmt.Sprintf("repaired %-16s %d rows added, %d removed, %d replaced\n", t.Table, t.Added, t.Removed, t.Replaced)
	}
	if len(out.Tables) == 0 {
		text = "nothing to repair: no row was written\n"
	}
	if _, err = io.WriteString(s.streams.Out, text); err == nil {
		err = showReport(s.streams.Out, s.name, dir, &out.Report, false)
	}
	return unsound(&out.Report, err)
}

// unsound makes findings the exit code.
func unsound(r *check.Report, err error) error {
	if err == nil && len(r.Findings) > 0 {
		err = &refused{fault.Corruption}
	}
	return err
}

// showReport writes what was counted, then what is wrong.
func showReport(w io.Writer, name typedName, subject string, r *check.Report, mayRepair bool) error {
	out := fmt.Sprintf("%s, incarnation %s, format %d, %d shards: %d rows, %d bytes\n",
		subject, r.Incarnation, r.Format, r.Shards, r.Rows, r.Bytes)
	for _, name := range slices.Sorted(maps.Keys(r.Counts)) {
		out += fmt.Sprintf("  %-24s %d\n", name, r.Counts[name])
	}
	for i, f := range r.Findings {
		if i == shownFindings {
			out += fmt.Sprintf("and %d more; --json lists them\n", int64(len(r.Findings)-i)+r.More)
			break
		}
		out += fmt.Sprintf("WRONG %s, %s: %s\n", f.Invariant, f.Where, f.Text)
	}
	switch {
	case len(r.Findings) == 0:
		out += "sound: every rule holds\n"
	case mayRepair && r.Derived():
		what := "some of it follows from other rows; make that anew with: "
		if r.Repairable() {
			what = "only rows that follow from others are wrong; make them anew with: "
		}
		out += what + name.command("check", subject, "--repair-indexes") + "\n"
	}
	_, err := io.WriteString(w, out)
	return err
}
