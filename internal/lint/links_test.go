package lint

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linked are the packages that a program importing pkg links.
func linked(t *testing.T, pkg string) []string {
	t.Helper()
	list := exec.Command("go", "list", "-deps", pkg)
	list.Dir = repositoryRoot(t)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(out))
}

func TestAProgramThatOnlyCallsAServerLinksNoStorageEngine(t *testing.T) {
	links := func(pkg string) bool {
		return slices.ContainsFunc(linked(t, pkg), func(dep string) bool { return strings.HasPrefix(dep, pebble+"/") })
	}
	if links("./client") {
		t.Error("client links " + pebble)
	}
	if !links(".") {
		t.Error("the embedded store does not link " + pebble + ": this test looks for the wrong name")
	}
}
