package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/backup/target"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/kv"
)

type backupCmd struct {
	Create  backupCreateCmd  `cmd:"" help:"Copy the whole store, while it works, into one file."`
	Inspect backupInspectCmd `cmd:"" help:"Say what a backup holds, by its manifest alone."`
	Verify  backupVerifyCmd  `cmd:"" help:"Read every byte of a backup and prove that it is whole."`
	List    backupListCmd    `cmd:"" help:"List the backups in a directory or bucket."`
}

// Help is what a backup is.
func (*backupCmd) Help() string {
	return "A backup is the whole store at one moment: all data of all tenants, and the hashes of all API keys. " +
		"Whoever can read it knows all of it: keep it as you keep the store. It is one file, compressed with zstd; " +
		"its id, which create prints, stands for every byte of it. keyload restore makes a store of it.\n\n" + whereHelp
}

const whereHelp = "A location is a file, a directory, s3://bucket/key or s3://bucket/prefix/. For S3 the environment has " +
	"AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION, and KEYLOAD_S3_ENDPOINT, " +
	"such as https://minio.example.org:9000, for a server other than Amazon's."

type backupCreateCmd struct {
	To string `arg:"" name:"to" help:"where the backup goes: a new file, or a directory or s3://bucket/prefix/ in which it gets a name of its own"`
}

// Help is the example.
func (*backupCreateCmd) Help() string {
	return "Writers go on meanwhile. The backup gets its name only when all of it is there and was verified, and never replaces another one. " +
		"With a server (--url) it needs an administrator's key; --dir is for a store that no process has open. " +
		"Note the id that is printed: verify and restore compare it.\n\n" + whereHelp + " For example:\n\n" +
		"    keyload backup create /backups/\n    keyload backup create monday.klb --dir data\n    keyload backup create s3://backups/daily/"
}

// Run makes the backup.
func (c *backupCreateCmd) Run(s *session) error {
	place, err := target.LocateNew(c.To)
	if err != nil {
		return err
	}
	if err := apartFromStores(place); err != nil {
		return err
	}
	produce, incarnation, closeStore, err := s.backups()
	if err != nil {
		return err
	}
	kept := keptBackup{}
	if kept.name = place.Name; kept.name == "" {
		of, err := incarnation()
		if err != nil {
			return errors.Join(err, closeStore())
		}
		kept.name = target.NewName(time.Now(), of)
	}
	b, err := backup.Relay(s.ctx, produce, func(content io.Reader) (err error) {
		kept.Stored, err = place.Put(s.ctx, kept.name, content)
		return err
	})
	if closeErr := closeStore(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	kept.Location, kept.Backup = place.Path(kept.name), *b
	if s.JSON {
		return s.showJSON(kept)
	}
	_, err = fmt.Fprintf(s.streams.Out, "made a backup, and verified it: %s\n%s\nIt holds all data and the hashes of all keys: keep it as you keep the store. Note its id. Next:\n  %s\n",
		kept.Location, describeBackup(b, kept.Stored), s.name.command("backup", "verify", kept.Location, "--expect", b.ID))
	return err
}

// apartFromStores refuses a place in the directory of a store: a store removes what
// has a name like those it gives, or takes it for its own.
func apartFromStores(place target.Place) error {
	dir, ok := place.Directory()
	if !ok {
		return nil
	}
	if store, inside := kv.StoreAround(dir, kv.Options{}); inside {
		return fault.New(fault.Validation, "inside_store", "%s is in %s, which is the directory of a store; a backup there would be in its way, and would be lost with it. Nothing was written", dir, store)
	}
	return nil
}

// source finds the backup that a command reads, which works on no store.
func (s *session) source(location string) (target.Place, error) {
	if err := s.elsewhere("this reads a backup and asks no store", "--url", "--api-key", "--dir", "--as"); err != nil {
		return target.Place{}, err
	}
	place, err := target.Locate(location)
	if err != nil || place.Name != "" {
		return place, err
	}
	if dir, ok := place.Directory(); ok {
		if _, inside := kv.StoreAround(dir, kv.Options{}); inside {
			return place, fault.New(fault.Validation, "location", "%s is the directory of a store, and no backup; keyload backup create makes one of it", dir)
		}
	}
	return place, nil
}

// keptBackup is a backup and where it is.
type keptBackup struct {
	Location string `json:"location"`
	Stored   int64  `json:"storedBytes"` // of the compressed file
	backup.Backup
	name string
}

// backups is what makes backups of the server, or of the store of --dir, and how
// to learn which store that is.
func (s *session) backups() (produce backup.Make, incarnation func() (string, error), closeStore func() error, err error) {
	if s.As != "" {
		return nil, nil, nil, &badUsage{text: "--as cannot be given here: a backup reaches everything"}
	}
	if s.Dir == "" {
		c := client.New(s.servers(), s.APIKey)
		received := s.steps()
		produce = func(ctx context.Context, w io.Writer) (string, error) {
			return c.Backup(ctx, &counted{w: w, report: received})
		}
		return produce, func() (string, error) {
			st, err := api.Call(s.ctx, c, api.AdminStatus, &api.AdminStatusRequest{})
			if err != nil {
				return "", err
			}
			return st.Incarnation, nil
		}, c.Close, nil
	}
	log := slog.New(slog.NewTextHandler(s.streams.Err, &slog.HandlerOptions{Level: slog.LevelError}))
	store, err := backup.OpenRest(s.Dir, keyload.Version, log)
	if err != nil {
		return nil, nil, nil, err
	}
	produce = func(ctx context.Context, w io.Writer) (string, error) {
		b, err := store.Create(ctx, w, s.steps())
		if err != nil {
			return "", err
		}
		return b.ID, nil
	}
	return produce, func() (string, error) { return store.Incarnation(), nil }, store.Close, nil
}

// counted reports what is written.
type counted struct {
	w      io.Writer
	n      int64
	report check.Progress
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if c.n += int64(n); c.report != nil {
		c.report(check.Step{Done: "received", Unit: check.Bytes}, c.n, 0)
	}
	return n, err
}

type backupInspectCmd struct {
	From string `arg:"" name:"from" help:"location of the backup"`
}

// Help is the example.
func (*backupInspectCmd) Help() string {
	return "Reads the first part of the backup only, so it proves nothing about the rest. " + whereHelp +
		" For example:\n\n    keyload backup inspect monday.klb\n    keyload backup inspect monday.klb --json"
}

// Run shows the manifest.
func (c *backupInspectCmd) Run(s *session) error {
	place, err := s.source(c.From)
	if err != nil {
		return err
	}
	b, err := inspect(s.ctx, place)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.showJSON(b)
	}
	_, err = fmt.Fprintf(s.streams.Out, "%s\n%s", describeBackup(b, 0), describeShards(b))
	return err
}

func inspect(ctx context.Context, place target.Place) (*backup.Backup, error) {
	r, err := place.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close() // it is only read
	return backup.Inspect(ctx, r)
}

type backupVerifyCmd struct {
	From   string `arg:"" name:"from" help:"location of the backup"`
	Expect string `placeholder:"ID" help:"the id that create printed; without it a backup that somebody put in its place is taken too"`
}

// Help is the example.
func (*backupVerifyCmd) Help() string {
	return "Changes nothing. Exits with 14 when the backup is damaged. " + whereHelp +
		" For example:\n\n    keyload backup verify monday.klb\n    keyload backup verify s3://backups/daily/monday.klb"
}

// Run reads everything.
func (c *backupVerifyCmd) Run(s *session) error {
	place, err := s.source(c.From)
	if err != nil {
		return err
	}
	r, err := place.Open(s.ctx)
	if err != nil {
		return err
	}
	defer r.Close() // it is only read
	b, err := backup.Verify(s.ctx, r, c.Expect, s.steps())
	if err != nil {
		return err
	}
	if s.JSON {
		return s.showJSON(b)
	}
	_, err = fmt.Fprintf(s.streams.Out, "%s\nsound: every byte is what its manifest says\n", describeBackup(b, 0))
	return err
}

type backupListCmd struct {
	Where string `arg:"" name:"where" help:"a directory, or s3://bucket/prefix/"`
}

// Help is the example.
func (*backupListCmd) Help() string {
	return "Reads the manifest of each, and exits with 14 where one is damaged. What is partial is being made, or was left by a process that was killed; " +
		"the next backup that is made in that directory removes the latter. " + whereHelp + " For example:\n\n    keyload backup list /backups\n    keyload backup list s3://backups/daily/"
}

// listedBackup is one backup of a list.
type listedBackup struct {
	Name      string   `json:"name"`
	Bytes     int64    `json:"bytes"`
	CreatedAt api.Time `json:"createdAt,omitzero"`
	ID        string   `json:"id,omitempty"`
	Of        string   `json:"incarnation,omitempty"`
	Failure   string   `json:"failure,omitempty"` // why its manifest cannot be read
}

// partialBackup is what is no backup yet, or will never be one.
type partialBackup struct {
	Name     string    `json:"name"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
}

// Run lists them.
func (c *backupListCmd) Run(s *session) error {
	if err := s.elsewhere("this lists files and asks no store", "--url", "--api-key", "--dir", "--as"); err != nil {
		return err
	}
	place, err := target.LocateMany(c.Where)
	if err != nil {
		return err
	}
	found, err := place.List(s.ctx)
	if err != nil {
		return err
	}
	var out struct {
		Backups []listedBackup  `json:"backups"`
		Partial []partialBackup `json:"partial,omitempty"`
	}
	out.Backups = []listedBackup{}
	var failed error
	for _, e := range found {
		if e.Partial {
			out.Partial = append(out.Partial, partialBackup{e.Name, e.Bytes, e.Modified})
			continue
		}
		row := listedBackup{Name: e.Name, Bytes: e.Bytes}
		place.Name = e.Name
		if b, err := inspect(s.ctx, place); err == nil {
			row.CreatedAt, row.ID, row.Of = b.CreatedAt, b.ID, b.Incarnation
		} else {
			row.Failure, failed = err.Error(), &refused{fault.CodeOf(err)}
		}
		out.Backups = append(out.Backups, row)
	}
	if s.JSON {
		err = s.showJSON(out)
	} else {
		p := printer{w: s.streams.Out, terminal: s.streams.OutTerminal, name: s.name}
		err = p.print(&out)
	}
	return cmp.Or(err, failed)
}

// describeBackup sums a backup up for people; stored is the size of its file, 0
// when it is not known.
func describeBackup(b *backup.Backup, stored int64) string {
	file := ""
	if stored > 0 {
		file = fmt.Sprintf(", %s in the file", size(stored))
	}
	return fmt.Sprintf(`id           %s
of           %s
made         %s, by keyload %s
holds        %d rows in %d files, %s%s
format       %d, in the form %d`,
		b.ID, b.Incarnation, b.CreatedAt, b.Program, b.Rows, len(b.Files), size(b.Bytes), file, b.StoreFormat, b.Form)
}

func describeShards(b *backup.Backup) string {
	out := fmt.Sprintf("catalog      revision %d, position %d\n", b.CatalogRevision, b.Shards[0].Position)
	for _, sh := range b.Shards[1:] {
		out += fmt.Sprintf("shard %-6d position %d, digest %s, %s\n", sh.Shard, sh.Position, sh.Digest, sh.LoggedTime)
	}
	return out
}
