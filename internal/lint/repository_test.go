package lint

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// foreign are paths of one machine and hosts of one network; they mean nothing
// to anybody else. Written so that this file does not match itself.
var foreign = regexp.MustCompile(`[/](?:work|root)[/]|(?:proxy|sum)[.]golang|registry[.]npm|deb[.]debian`)

func TestNoFileNamesAMachinePathOrARegistryHost(t *testing.T) {
	root := repositoryRoot(t)
	files := trackedFiles(t, root)
	if !slices.Contains(files, "go.mod") {
		t.Fatalf("%d files listed, go.mod not among them", len(files))
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range checkForeign(name, text) {
			t.Error(found)
		}
	}
}

// trackedFiles are the files git knows or would add.
func trackedFiles(t *testing.T, root string) []string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("not a git checkout: there is no list of files")
	}
	// Safe to trust: only names are listed. A checkout owned by somebody else
	// is refused otherwise.
	list := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
}

func checkForeign(name string, text []byte) []string {
	if filepath.Base(name) == "go.sum" || bytes.IndexByte(text, 0) >= 0 {
		return nil // checksums and binary data
	}
	var found []string
	for i, line := range strings.Split(string(text), "\n") {
		if m := foreign.FindString(line); m != "" {
			found = append(found, fmt.Sprintf("%s:%d names %q", name, i+1, m))
		}
	}
	return found
}

func TestTheMachinePathCheckCatchesEachWord(t *testing.T) {
	slash := string(filepath.Separator)
	for _, bad := range []string{
		"cd " + slash + "work" + slash + "main", "see " + slash + "root" + slash + "x",
		"https://proxy." + "golang.org", "registry." + "npmjs.org", "deb." + "debian.org",
	} {
		if got := checkForeign("README.md", []byte("a\n"+bad+"\nb")); len(got) != 1 || !strings.HasPrefix(got[0], "README.md:2 ") {
			t.Errorf("%q: found %q", bad, got)
		}
		if got := checkForeign("go.sum", []byte(bad)); len(got) != 0 {
			t.Errorf("go.sum: found %q", got)
		}
	}
	if got := checkForeign("README.md", []byte("the work/root of a framework/x")); len(got) != 0 {
		t.Errorf("found %q", got)
	}
}

// link matches the target of a link in Markdown.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksBetweenDocumentsLeadSomewhere(t *testing.T) {
	root := repositoryRoot(t)
	read := 0
	for _, name := range trackedFiles(t, root) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		read++
		for _, found := range checkLinks(root, name, string(text)) {
			t.Error(found)
		}
	}
	if read == 0 {
		t.Error("no document was read")
	}
}

func checkLinks(root, name, text string) []string {
	var found []string
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, filepath.Dir(name), filepath.FromSlash(target))); err != nil {
			found = append(found, fmt.Sprintf("%s links to %s, which does not exist", name, m[1]))
		}
	}
	return found
}

func TestTheLinkCheckCatchesAMissingTarget(t *testing.T) {
	root := repositoryRoot(t)
	text := "[a](../../go.mod) [b](doc.go#x) [c](https://example.org/x) [d](#here) [e](gone.md) [f](../gone.md#x)"
	got := checkLinks(root, "internal/lint/README.md", text)
	if len(got) != 2 || !strings.Contains(got[0], " gone.md,") || !strings.Contains(got[1], " ../gone.md#x,") {
		t.Errorf("found %q", got)
	}
}

// decision is the document that names every dependency.
const decision = "docs/decisions/0001-dependencies.md"

func TestEveryDependencyIsADecision(t *testing.T) {
	root := repositoryRoot(t)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, found := range checkDecided(repositoryTree(t), read("go.mod"), read(decision)) {
		t.Error(found)
	}
}

// required matches one requirement of a go.mod.
var required = regexp.MustCompile(`(?m)^(?:require)?\s+([^\s()]+\.[^\s()]+) (v[^\s]+)`)

// checkDecided finds modules that the tree imports and the document does not
// name with the version of go.mod.
func checkDecided(tree *sourceTree, goMod, document string) []string {
	versions := map[string]string{}
	for _, m := range required.FindAllStringSubmatch(goMod, -1) {
		versions[m[1]] = m[2]
	}
	var found []string
	for _, p := range tree.packages {
		for _, f := range p.files {
			for _, spec := range f.syntax.Imports {
				mod := moduleOf(importPath(spec), versions)
				if mod != "" && !strings.Contains(document, "`"+mod+"` "+versions[mod]+" ") {
					found = append(found, fmt.Sprintf("%s imports %s %s: write the decision in %s", f.path, mod, versions[mod], decision))
				}
			}
		}
	}
	return found
}

// moduleOf is the longest required module that holds a package.
func moduleOf(imported string, versions map[string]string) string {
	for name := imported; name != "." && name != "/"; name = filepath.ToSlash(filepath.Dir(name)) {
		if versions[name] != "" {
			return name
		}
	}
	return ""
}

func TestTheDecisionCheckCatchesAMissingModuleAndAnotherVersion(t *testing.T) {
	goMod := "module x\n\ngo 1.26\n\nrequire a.org/one v1.0.0\n\nrequire (\n\ta.org/two/v2 v2.1.0\n\ta.org/three v0.1.0 // indirect\n)\n"
	tree := sources(t, map[string]string{"api/x.go": `package api
import (
	_ "fmt"
	_ "a.org/one"
	_ "a.org/two/v2/part"
)`})
	for _, c := range []struct {
		name, document string
		want           int
	}{
		{"both named", "| `a.org/one` v1.0.0 | x |\n| `a.org/two/v2` v2.1.0 | x |", 0},
		{"one missing", "| `a.org/one` v1.0.0 | x |", 1},
		{"other version", "| `a.org/one` v1.0.0 | x |\n| `a.org/two/v2` v2.1.1 | x |", 1},
		{"nothing named", "", 2},
	} {
		if got := checkDecided(tree, goMod, c.document); len(got) != c.want {
			t.Errorf("%s: found %q, want %d", c.name, got, c.want)
		}
	}
}
