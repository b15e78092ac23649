package backup_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
)

// FuzzAnyBytesAreABackupOrAnErrorThatSaysWhy seals what it is given, so that it
// reaches what stands behind the seal.
func FuzzAnyBytesAreABackupOrAnErrorThatSaysWhy(f *testing.F) {
	content, made := small(f)
	body := content[:len(content)-40]
	f.Add(body)
	f.Add(body[:len(body)/2])
	f.Add([]byte{})
	f.Add([]byte("{}"))
	forged := takeApart(f, content)
	forged.entries = nil
	f.Add(forged.put())
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, archive := range [][]byte{b, sealed(bytes.Clone(b))} {
			got, err := backup.Verify(t.Context(), bytes.NewReader(archive), "", nil)
			switch code := fault.CodeOf(err); {
			case err == nil:
				if got.ID != made.ID && !bytes.Equal(archive, b) && len(got.Files) == 0 {
					t.Errorf("it was taken for %+v", got.Manifest)
				}
			case code != fault.Corruption && code != fault.FormatUnsupported:
				t.Errorf("it says %v", err)
			case strings.TrimSpace(fault.From(err).Detail) == "":
				t.Error("it does not say why")
			}
			if _, err := backup.Inspect(t.Context(), bytes.NewReader(archive)); err != nil && fault.From(err) == nil {
				t.Errorf("inspect says %v", err)
			}
		}
	})
}
