package backup_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/kv"
)

// refuses fails unless verifying and restoring an archive both end with
// Corruption, and nothing is at the target.
func refuses(t *testing.T, what string, content []byte) {
	t.Helper()
	_, err := backup.Verify(t.Context(), bytes.NewReader(content), "", nil)
	if fault.CodeOf(err) != fault.Corruption {
		t.Errorf("%s: verify says %v", what, err)
	}
	files := vfs.NewMem()
	_, err = backup.Restore(t.Context(), from(content), "to", backup.RestoreOptions{Files: kv.Options{FS: files}})
	if fault.CodeOf(err) != fault.Corruption {
		t.Errorf("%s: restore says %v", what, err)
	}
	absent(t, what, files, "to")
}

func TestAnArchiveThatIsCutAnywhereIsRefusedAndNothingIsRestored(t *testing.T) {
	content, _ := small(t)
	rng := rand.New(rand.NewPCG(1, 1))
	cuts := []int{0, 1, 3, 4, 5, len(content) - 1, len(content) - 39, len(content) - 40, len(content) - 41, len(content) - 44}
	for at := 4096; at < len(content); at += 4096 {
		cuts = append(cuts, at)
	}
	for range 600 {
		cuts = append(cuts, rng.IntN(len(content)))
	}
	for _, at := range cuts {
		refuses(t, fmt.Sprintf("cut to %d of %d bytes", at, len(content)), content[:at])
	}
}

func TestAnArchiveWithAnyChangedBitIsRefusedAndNothingIsRestored(t *testing.T) {
	content, _ := small(t)
	rng := rand.New(rand.NewPCG(2, 2))
	flip := func(at int) {
		changed := bytes.Clone(content)
		changed[at] ^= 1 << rng.IntN(8)
		refuses(t, fmt.Sprintf("byte %d of %d changed", at, len(content)), changed)
	}
	for at := range 64 { // headers
		flip(at)
		flip(len(content) - 1 - at)
	}
	for range 2000 {
		flip(rng.IntN(len(content)))
	}
}

func TestAnArchiveWithMoreBehindItsEndIsRefused(t *testing.T) {
	content, _ := small(t)
	for what, more := range map[string][]byte{
		"a byte": {0}, "zeros": make([]byte, 1024), "itself again": content,
		"a frame that is passed over": {0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0},
	} {
		refuses(t, what, append(bytes.Clone(content), more...))
	}
}

// counting counts what is read.
type counting struct {
	r io.Reader
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func TestInspectReadsTheManifestAndNoMore(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range 400 {
		noise := make([]byte, 3000)
		for j := range noise {
			noise[j] = byte(rng.Uint32())
		}
		_, err := b.db.Commit(t.Context(), partition("one"), keyload.Put("docs", fmt.Sprint(i), map[string]any{"noise": noise}))
		must(t, err)
	}
	content, made := b.archive()
	if len(content) < 1<<20 {
		t.Fatalf("the archive has %d bytes: the test tests nothing", len(content))
	}
	r := &counting{r: bytes.NewReader(content)}
	got, err := backup.Inspect(t.Context(), r)
	must(t, err)
	if got.ID != made.ID || got.Rows != made.Rows || len(got.Files) != len(made.Files) {
		t.Errorf("it says %+v, want %+v", got, made)
	}
	if r.n > 300<<10 {
		t.Errorf("%d of %d bytes were read", r.n, len(content))
	}
	rest := bytes.Clone(content)
	clear(rest[len(rest)/2:])
	if _, err := backup.Inspect(t.Context(), bytes.NewReader(rest)); err != nil {
		t.Errorf("with a damaged rest it says: %v", err)
	}
	for at := 20; at < 400; at += 7 { // the frame of the manifest
		changed := bytes.Clone(content)
		changed[at] ^= 4
		got, err := backup.Inspect(t.Context(), bytes.NewReader(changed))
		if err == nil && got.ID != made.ID || err != nil && fault.CodeOf(err) != fault.Corruption {
			t.Errorf("byte %d changed: %v, %v", at, got, err)
		}
	}
}

func TestASourceThatFailsIsNotTakenForADamagedArchive(t *testing.T) {
	content, _ := small(t)
	for _, at := range []int{0, 10, 2000, len(content) / 2, len(content) - 1, len(content)} {
		r := io.MultiReader(bytes.NewReader(content[:at]), &failing{})
		_, err := backup.Verify(t.Context(), r, "", nil)
		wants(t, fmt.Sprintf("a source that fails at %d of %d", at, len(content)), err, fault.RecoveryRequired, "backup_unreadable")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := backup.Verify(ctx, bytes.NewReader(content), "", nil)
	wants(t, "after its context", err, fault.Cancelled, "cancelled")
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBroken }
