package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
)

// writing makes a backup out of bytes.
func writing(content []byte, id string, err error) backup.Make {
	return func(_ context.Context, w io.Writer) (string, error) {
		if _, werr := io.Copy(w, bytes.NewReader(content)); werr != nil {
			return "", werr
		}
		return id, err
	}
}

func TestWhatIsKeptThroughARelayIsTheWholeBackup(t *testing.T) {
	content, made := small(t)
	var kept []byte
	b, err := backup.Relay(t.Context(), writing(content, made.ID, nil), func(r io.Reader) (err error) {
		kept, err = io.ReadAll(r)
		return err
	})
	must(t, err)
	if !bytes.Equal(kept, content) || b.ID != made.ID {
		t.Errorf("%d bytes of %d are kept, as %s", len(kept), len(content), b.ID)
	}
}

// Nobody who keeps a backup reads its end when there is anything wrong with it.
func TestARelayEndsWithTheFirstCauseAndKeepNeverSeesAnEnd(t *testing.T) {
	content, made := small(t)
	flipped := bytes.Clone(content)
	flipped[len(flipped)/2] ^= 1
	early := bytes.Clone(content)
	early[60] ^= 1
	closing := fault.New(fault.OwnershipLost, "store_closed", "it is closing")
	ended := context.Canceled
	for what, c := range map[string]struct {
		produce backup.Make
		reads   int64 // of keep, before it fails; 0 is all
		want    error
	}{
		"a bit that changed":          {writing(flipped, made.ID, nil), 0, fault.New(fault.Corruption, "", "")},
		"a bit that changed early":    {writing(early, made.ID, nil), 0, fault.New(fault.Corruption, "", "")},
		"a part":                      {writing(content[:len(content)-7], made.ID, nil), 0, fault.New(fault.Corruption, "damaged_backup", "")},
		"nothing":                     {writing(nil, made.ID, nil), 0, fault.New(fault.Corruption, "", "")},
		"another one than was made":   {writing(content, "another", nil), 0, fault.New(fault.Corruption, "damaged_backup", "")},
		"one that fails at its end":   {writing(content, "", closing), 0, closing},
		"one that fails on its way":   {writing(content[:len(content)/2], "", closing), 0, closing},
		"one that fails at once":      {writing(nil, "", closing), 0, closing},
		"one that ends otherwise":     {writing(content[:100], "", ended), 0, ended},
		"a disk that is full at once": {writing(content, made.ID, nil), 1, errBroken},
		"a disk that is full later":   {writing(content, made.ID, nil), int64(len(content)), errBroken},
	} {
		t.Run(what, func(t *testing.T) {
			sawEnd := false
			_, err := backup.Relay(t.Context(), c.produce, func(r io.Reader) error {
				if c.reads > 0 {
					_, _ = io.CopyN(io.Discard, r, c.reads)
					return errBroken
				}
				_, err := io.Copy(io.Discard, r)
				sawEnd = err == nil
				return fmt.Errorf("not kept: %w", err)
			})
			if !errors.Is(err, c.want) {
				t.Errorf("it ends with %v, want %v", err, c.want)
			}
			if sawEnd {
				t.Error("it looked like a whole one")
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := backup.Relay(ctx, writing(content, made.ID, nil), func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	}); err == nil {
		t.Error("it went on after its context")
	}
}
