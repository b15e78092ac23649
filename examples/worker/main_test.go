package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// The lines are compared without their order: how long a retry waits is for the
// queue's policy, which spreads retries.
func TestTheWorkerPrintsWhatItsReaderExpects(t *testing.T) {
	const want = `mailing ann, attempt 1
mailing bob, attempt 1
failed: mail-bob, attempt 1: the mail server is busy
mailing nobody, attempt 1
failed: mail-nobody, attempt 1: no such address
mailing eve, attempt 1
failed: mail-eve, attempt 1: panic: a bug
mailing bob, attempt 2
mailing eve, attempt 2
o-1: CustomerMailed
o-1: PostageBilled
o-2: CustomerMailed
o-2: PostageBilled
o-4: CustomerMailed
o-4: PostageBilled
mail-nobody is a dead letter: no such address
`
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run(t.Context(), dir, &out); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(lines(out.String()), lines(want)) {
		t.Errorf("got\n%s\nwant, in some order\n%s", out.String(), want)
	}
}

func lines(text string) []string {
	out := strings.Split(text, "\n")
	slices.Sort(out)
	return out
}
