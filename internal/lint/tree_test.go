package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the import path of the root package.
const module = "github.com/keyload/keyload"

// A sourceFile is one parsed Go file. Its path is relative to the root of the
// repository and uses slashes.
type sourceFile struct {
	path   string
	text   string
	isTest bool
	syntax *ast.File
}

// A sourcePackage is what one directory holds, test files included. Its path is
// the directory, "." for the root package.
type sourcePackage struct {
	path  string
	files []*sourceFile
}

// product is the package without its test files.
func (p *sourcePackage) product() []*sourceFile {
	return slices.DeleteFunc(slices.Clone(p.files), func(f *sourceFile) bool { return f.isTest })
}

// A sourceTree is every Go file of the module. Nested modules are not part of it.
type sourceTree struct {
	fset     *token.FileSet
	packages []*sourcePackage // by path
}

// line is the line a node starts at.
func (t *sourceTree) line(n ast.Node) int { return t.fset.Position(n.Pos()).Line }

// at is "file:line" of a node, for messages.
func (t *sourceTree) at(n ast.Node) string {
	p := t.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// find returns the package of that path, nil if there is none.
func (t *sourceTree) find(pkg string) *sourcePackage {
	for _, p := range t.packages {
		if p.path == pkg {
			return p
		}
	}
	return nil
}

// has says whether a place named by a violation exists: a file, a package, or
// "package.Name".
func (t *sourceTree) has(where string) bool {
	if dir, _, ok := strings.Cut(where, "#"); ok {
		where = dir
	}
	for _, p := range t.packages {
		if p.path == where || slices.ContainsFunc(p.files, func(f *sourceFile) bool { return f.path == where }) {
			return true
		}
	}
	return false
}

// parseTree parses sources, keyed by path relative to the root.
func parseTree(sources map[string]string) (*sourceTree, error) {
	t := &sourceTree{fset: token.NewFileSet()}
	names := make([]string, 0, len(sources))
	for name := range sources {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		syntax, err := parser.ParseFile(t.fset, name, sources[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p := t.find(path.Dir(name))
		if p == nil {
			p = &sourcePackage{path: path.Dir(name)}
			t.packages = append(t.packages, p)
		}
		p.files = append(p.files, &sourceFile{
			path: name, text: sources[name], isTest: strings.HasSuffix(name, "_test.go"), syntax: syntax,
		})
	}
	slices.SortFunc(t.packages, func(a, b *sourcePackage) int { return strings.Compare(a.path, b.path) })
	return t, nil
}

// ourImports are the packages of this module that the files import, as paths
// relative to the root, sorted, each once.
func ourImports(files []*sourceFile) []string {
	var out []string
	for _, f := range files {
		for _, spec := range f.syntax.Imports {
			if rel, ok := relative(importPath(spec)); ok {
				out = append(out, rel)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// relative turns an import path of this module into a path from the root.
func relative(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic(err) // the parser accepted it as a string literal
	}
	return p
}

// repositoryRoot is the directory with go.mod above the test's directory.
func repositoryRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		t.Fatal("no go.mod above the test's directory")
	}
}

// repositoryTree parses the module this test belongs to.
func repositoryTree(t *testing.T) *sourceTree {
	t.Helper()
	root := repositoryRoot(t)
	sources := map[string]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && skipDirectory(name, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		sources[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := parseTree(sources)
	if err != nil {
		t.Fatal(err)
	}
	if tree.find("fault") == nil || tree.find("internal/lint") == nil {
		t.Fatalf("read %d packages under %s without fault or internal/lint: the walk is wrong", len(tree.packages), root)
	}
	return tree
}

// skipDirectory says which directories the go command would not look into.
func skipDirectory(dir, name string) bool {
	if name == "testdata" || name == "vendor" || name[0] == '.' || name[0] == '_' {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// sources parses a small tree written in a test.
func sources(t *testing.T, files map[string]string) *sourceTree {
	t.Helper()
	tree, err := parseTree(files)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
