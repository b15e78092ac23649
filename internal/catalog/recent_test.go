package catalog_test

import (
	"fmt"
	"testing"

	"github.com/keyload/keyload/internal/catalog"
)

// Which rows stay in memory after they were written changes no answer, only what a
// receive and an acknowledgement cost.
func TestMessagesLeasesAndWindowsAreKeptInMemoryAfterTheyWereWritten(t *testing.T) {
	var recent []string
	for _, r := range catalog.Resources() {
		for _, tab := range r.Tables {
			if tab.Recent {
				recent = append(recent, tab.Name)
			}
		}
	}
	if got := fmt.Sprint(recent); got != "[message messageBody lease groupRow groupLease groupRunEnd]" {
		t.Errorf("%s are", got)
	}
}
