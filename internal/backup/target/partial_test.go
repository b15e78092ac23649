//go:build unix

package target

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyload/keyload/fault"
)

func TestWhatAKilledProcessLeftOfABackupIsListedAndRemovedByTheNextOne(t *testing.T) {
	dir := t.TempDir()
	p, err := Locate(dir)
	must(t, err)
	own := []string{".a.klb.1.partial.txt", ".a.klb.partial", "a.klb.17.partial", ".notes", ".x.partial", ".b.klb.12x.partial"}
	for _, name := range append(own, ".monday.klb.123.partial") {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600))
	}
	must(t, os.Mkdir(filepath.Join(dir, ".d.klb.5.partial"), 0o700))
	must(t, os.Symlink(filepath.Join(dir, ".notes"), filepath.Join(dir, ".l.klb.6.partial")))
	list, err := p.List(t.Context())
	must(t, err)
	if len(list) != 1 || !list[0].Partial || list[0].Name != ".monday.klb.123.partial" || list[0].Bytes != 4 {
		t.Errorf("listed: %+v", list)
	}
	// One that is being made is left alone by another, and so is what is not ours.
	_, err = p.Put(t.Context(), "slow.klb", io.MultiReader(strings.NewReader("slow"), &once{do: func() {
		_, err := p.Put(t.Context(), "quick.klb", strings.NewReader("quick"))
		must(t, err)
		list, err := p.List(t.Context())
		must(t, err)
		if len(list) != 2 || !list[0].Partial || !strings.HasPrefix(list[0].Name, ".slow.klb.") || list[1].Name != "quick.klb" {
			t.Errorf("meanwhile listed: %+v", list)
		}
	}}))
	must(t, err)
	if got := string(p.read(t, "slow.klb")); got != "slow" {
		t.Errorf("what was slow is %q", got)
	}
	list, err = p.List(t.Context())
	must(t, err)
	if len(list) != 2 || list[0].Name != "quick.klb" || list[1].Name != "slow.klb" {
		t.Errorf("afterwards listed: %+v", list)
	}
	for _, name := range append(own, ".d.klb.5.partial", ".l.klb.6.partial") {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
}

// A file that is removed before it is held is not one to write a backup to.
func TestAFileIsTidiedUpOnlyWhileNobodyHoldsIt(t *testing.T) {
	d := directory(t.TempDir())
	f, err := d.begin("a.klb")
	must(t, err)
	d.tidy()
	if !hasName(f.File) {
		t.Error("it was removed while it was held")
	}
	must(t, f.held.Close())
	d.tidy()
	if hasName(f.File) {
		t.Error("it was not removed when nobody held it")
	}
	must(t, f.Close())
}

func TestWhereABackupMayGoAndWhereManyAre(t *testing.T) {
	newS3(t)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(in("file.klb"), nil, 0o600))
	for _, location := range []string{dir, in("new.klb"), in("missing") + "/", "s3://backups/", "s3://backups/x/a.klb"} {
		if _, err := LocateNew(location); err != nil {
			t.Errorf("%s: %v", location, err)
		}
	}
	for _, location := range []string{"-", "", in("new"), in("new.zip"), "s3://backups/daily"} {
		_, err := LocateNew(location)
		wants(t, location, err, fault.Validation, "location")
	}
	for _, location := range []string{dir, dir + "/", "s3://backups/", "s3://backups"} {
		if _, err := LocateMany(location); err != nil {
			t.Errorf("%s: %v", location, err)
		}
	}
	for _, location := range []string{in("file.klb"), "s3://backups/daily"} {
		_, err := LocateMany(location)
		wants(t, location, err, fault.Validation, "location")
	}
	_, err := LocateMany(in("missing"))
	wants(t, "a directory that is not there", err, fault.NotFound, "no_place")
}
