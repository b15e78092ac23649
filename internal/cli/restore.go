package cli

import (
	"cmp"
	"fmt"
	"io"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/backup"
)

type restoreCmd struct {
	Make   restoreMakeCmd   `cmd:"" default:"withargs" help:"Make a store out of a backup."`
	Status restoreStatusCmd `cmd:"" help:"Say what still waits for a person after a restore."`
}

// Help is what a restore does.
func (*restoreCmd) Help() string {
	return "keyload restore FROM DIR makes a store; it is short for keyload restore make FROM DIR, whose --help has its flags " +
		"(--expect, --allow-intake, --no-check). " + restoreHelp + restoreExamples
}

const restoreHelp = "The whole backup is verified before anything is written. Until the last step nothing in DIR opens as a store, " +
	"whatever happens, and the same command can be repeated.\n\nThe new store has a history of its own. It delivers nothing, and every group " +
	"is paused, until a person lets them go on; tokens, cursors and receipts from before hold no more. API keys are those of the " +
	"backup: one that was revoked after it works again."

const restoreExamples = " For example:\n\n    keyload restore monday.klb data\n" +
	"    keyload restore s3://backups/daily/monday.klb data --expect ID\n    keyload restore status --dir data"

type restoreMakeCmd struct {
	From        string `arg:"" name:"from" help:"location of the backup"`
	To          string `arg:"" type:"path" name:"dir" help:"directory of the new store; it must be missing or empty"`
	AllowIntake bool   `name:"allow-intake" help:"let publish, append and enqueue go on while nothing is delivered"`
	Expect      string `placeholder:"ID" help:"the id that backup create printed; any other backup is refused"`
	NoCheck     bool   `name:"no-check" help:"leave out the proof that every rule of the restored store holds"`
}

// Help is the example.
func (*restoreMakeCmd) Help() string {
	return restoreHelp + "\n\n" + whereHelp + restoreExamples
}

// Run restores.
func (c *restoreMakeCmd) Run(s *session) error {
	if s.Dir != "" {
		return &badUsage{text: "--dir cannot be given here: the new store's directory is the second argument"}
	}
	place, err := s.source(c.From)
	if err != nil {
		return err
	}
	o := backup.RestoreOptions{Expect: c.Expect, AllowIntake: c.AllowIntake, SkipCheck: c.NoCheck, Progress: s.steps()}
	done, err := backup.Restore(s.ctx, place.Open, c.To, o)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.showJSON(done)
	}
	return c.tell(s, done)
}

// tell shows people what was made and what to do next.
func (c *restoreMakeCmd) tell(s *session, done *backup.Restored) error {
	checked, intake := "every rule holds", "and neither publish nor enqueue is taken"
	if !done.Checked {
		checked = "not checked; " + s.name.command("check", c.To) + " does it"
	}
	if c.AllowIntake {
		intake = "publish and enqueue are taken"
	}
	replaced := ""
	if id := done.Replaced; id != "" && id != done.Backup.ID {
		replaced = "replaced     an unfinished restore of ANOTHER backup, " + id + "\n"
	}
	_, err := fmt.Fprintf(s.streams.Out, `restored a store in %s
%s%s
incarnation  %s
paused       every delivery, %s; groups: %d
checked      %s

Look at what waits for a person, let each group go on or seek it first, then let the store deliver. Next:
  %s
`, done.Dir, replaced, describeBackup(done.Backup, 0), done.Incarnation, intake, done.PausedGroups, checked,
		s.name.command("restore", "status", "--dir", c.To))
	return err
}

type restoreStatusCmd struct {
	Store  string `arg:"" optional:"" type:"path" name:"dir" help:"directory of the store, the same as --dir"`
	Limit  int64  `placeholder:"N" default:"100" help:"most groups to list (default 100)"`
	Cursor string `placeholder:"CURSOR" help:"where the last page ended"`
}

// Help is the example.
func (*restoreStatusCmd) Help() string {
	return "Works at any time, on a server or with --dir. Groups that were paused before the restore are listed apart: they wait for " +
		"something else. For example:\n\n    keyload restore status\n    keyload restore status --dir data"
}

// Run asks.
func (c *restoreStatusCmd) Run(s *session) error {
	if c.Store != "" && s.Dir != "" && c.Store != s.Dir {
		return &badUsage{text: "name the directory once"}
	}
	s.Dir = cmp.Or(c.Store, s.Dir)
	response, err := call(s, api.AdminRestoreStatus, &api.AdminRestoreStatusRequest{Limit: c.Limit, Cursor: c.Cursor})
	if err != nil {
		return err
	}
	if err := s.show(response); err != nil || s.JSON {
		return err
	}
	return s.tellWaiting(response)
}

// tellWaiting shows people the commands that end what waits for them because of a
// restore; what waits for another reason is not theirs to end here.
func (s *session) tellWaiting(st *api.AdminRestoreStatusResponse) error {
	var next, others []string
	move := ""
	for _, g := range st.Groups {
		about := subject{request: &api.SubscriptionsResumeRequest{Group: g.Group, ExpectedGeneration: g.Generation}, site: s.site()}
		if g.FailureCode == api.PausedByRestore {
			next = append(next, about.onGroup("resume", about.atGeneration("")...))
			move = cmp.Or(move, about.onGroup("seek", append([]string{"beginning"}, about.atGeneration("")...)...))
			continue
		}
		others = append(others, about.onGroup("status"))
	}
	if st.Dispatch.Paused {
		next = append(next, s.site().command("admin", "dispatch", "running"))
	}
	out := "nothing waits because of a restore\n"
	if len(next) > 0 {
		out = "\nTo let them go on, each group from its checkpoint:\n" + s.lines(next)
	}
	if move != "" {
		out += "\nTo begin elsewhere, seek a group before it goes on, for example:\n" + s.lines([]string{move})
	}
	if st.Dispatch.Restored {
		out += "\nThe API keys are those of the backup: revoke again what was revoked since. See them:\n" +
			s.lines([]string{s.site().command("api-keys", "list")})
	}
	if len(others) > 0 {
		out += "\nPaused for another reason, by a person or by what failed in them; see which:\n" + s.lines(others)
	}
	if st.Cursor != "" {
		out += "\nThere are more groups:\n" + s.lines([]string{s.site().command("restore", "status", "--cursor", st.Cursor)})
	}
	_, err := io.WriteString(s.streams.Out, out)
	return err
}

// lines writes commands, as they can be typed, one a line.
func (s *session) lines(commands []string) (out string) {
	for _, c := range commands {
		out += "  " + s.name.in(c) + "\n"
	}
	return out
}
