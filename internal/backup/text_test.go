package backup_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
)

// Whoever reads it must know whether to look for another file or for what has
// damaged this one.
func TestADamagedBackupIsToldFromAFileThatIsNone(t *testing.T) {
	content, _ := small(t)
	for what, c := range map[string]struct {
		content      []byte
		reason, says string
	}{
		"a short text":    {[]byte("hello\n"), "not_a_backup", "no backup"},
		"a long text":     {bytes.Repeat([]byte("hello\n"), 1<<16), "not_a_backup", "no backup"},
		"one letter":      {[]byte("h"), "not_a_backup", "no backup"},
		"nothing":         {nil, "damaged_backup", "it is empty"},
		"its first byte":  {content[:1], "damaged_backup", "after 1 bytes it ends"},
		"its first bytes": {content[:100], "damaged_backup", "after 100 bytes it ends"},
		"no last byte":    {content[:len(content)-1], "damaged_backup", "it was cut off, or something was added"},
		"a byte too much": {append(slices.Clip(content), 'x'), "damaged_backup", "it was cut off, or something was added"},
		"it twice":        {slices.Concat(content, content), "damaged_backup", "something follows its end"},
	} {
		_, err := backup.Verify(t.Context(), bytes.NewReader(c.content), "", nil)
		wants(t, what, err, fault.Corruption, c.reason)
		if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "manifest") {
			t.Errorf("%s: it says %v", what, err)
		}
	}
}

func TestWhatCanBeTheIdOfNoBackupIsRefusedBeforeAnythingIsRead(t *testing.T) {
	content, made := small(t)
	for _, id := range []string{"abc", made.ID[1:], made.ID + "0", strings.ToUpper(made.ID), made.ID[1:] + "g", made.ID + "\n"} {
		_, err := backup.Verify(t.Context(), bytes.NewReader(content), id, nil)
		wants(t, "verify "+id, err, fault.Validation, "backup_id")
		_, err = backup.Restore(t.Context(), turns(), t.TempDir(), backup.RestoreOptions{Expect: id})
		wants(t, "restore "+id, err, fault.Validation, "backup_id")
	}
	_, err := backup.Verify(t.Context(), bytes.NewReader(content), made.ID, nil)
	must(t, err)
}
