package catalog_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/catalog"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
)

// tableRow is a row of the table of tables in docs/storage.md: ids, names, key,
// record, package.
var tableRow = regexp.MustCompile(`(?m)^\| ([0-9, ]+) \| ([A-Za-z, ()]+) \|`)

func TestTheStorageDocumentListsExactlyTheTablesThereAre(t *testing.T) {
	text, err := os.ReadFile("../../docs/storage.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range tableRow.FindAllStringSubmatch(string(text), -1) {
		names := strings.Split(strings.ReplaceAll(row[2], " (hot)", ""), ", ")
		for i, id := range strings.Split(row[1], ", ") {
			if i < len(names) {
				documented[id+" "+names[i]] = true
			}
		}
	}
	for _, r := range append(append([]op.Resource{}, catalog.Resources()...), machine.Resource(api.DurableDisk)) {
		for _, tab := range r.Tables {
			name := fmt.Sprintf("%d %s", tab.ID, tab.Name)
			if !documented[name] {
				t.Errorf("table %s is not in the document", name)
			}
			delete(documented, name)
		}
	}
	for name := range documented {
		t.Errorf("the document lists table %s, which is none", name)
	}
}
