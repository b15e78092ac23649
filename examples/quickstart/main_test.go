package main

import (
	"bytes"
	"testing"
)

func TestTheQuickstartPrintsWhatItsReaderExpects(t *testing.T) {
	const want = `committed 4 changes together
attempt 1: mailing ann about o-1
no more messages: empty
order o-1, revision 2: {Customer:ann Total:40 Mailed:true}
history 1: OrderPlaced
history 2: CustomerMailed
`
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run(t.Context(), dir, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
