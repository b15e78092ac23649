package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// exportData reads the types of imported packages from what the go command has
// compiled: of everything the core imports, and of the packages named.
func exportData(t *testing.T, tree *sourceTree, more ...string) types.Importer {
	t.Helper()
	args := []string{"list", "-e", "-deps", "-export", "-f", "{{if .Export}}{{.ImportPath}}\t{{.Export}}{{end}}", "unsafe"}
	for _, p := range tree.packages {
		if inCore(p.path) && len(built(p)) > 0 {
			args = append(args, "./"+p.path)
		}
	}
	list := exec.Command("go", append(args, more...)...)
	list.Dir = repositoryRoot(t)
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	files := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if imported, file, ok := strings.Cut(line, "\t"); ok {
			files[imported] = file
		}
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(imported string) (io.ReadCloser, error) {
		if file, ok := files[imported]; ok {
			return os.Open(file)
		}
		return nil, fmt.Errorf("%s does not compile\n%s", imported, stderr.String())
	})
}

// typesOf type-checks the files of one package.
func typesOf(tree *sourceTree, pkg string, files []*sourceFile, imports types.Importer) (*types.Info, error) {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
		Defs:  map[*ast.Ident]types.Object{},
	}
	var syntax []*ast.File
	for _, f := range files {
		syntax = append(syntax, f.syntax)
	}
	config := types.Config{Importer: imports}
	_, err := config.Check(path.Join(module, pkg), tree.fset, syntax, info)
	return info, err
}

// built are the product files that are compiled on this system.
func built(p *sourcePackage) []*sourceFile {
	var name, text string
	system := build.Default
	system.OpenFile = func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}
	return slices.DeleteFunc(p.product(), func(f *sourceFile) bool {
		name, text = path.Base(f.path), f.text
		match, err := system.MatchFile(p.path, name)
		return err != nil || !match
	})
}

func TestFilesForOtherSystemsAreNotTypeChecked(t *testing.T) {
	tree := sources(t, map[string]string{
		"internal/kv/a.go":             "package kv\n\nconst a = 1",
		"internal/kv/lock_plan9.go":    "package kv\n\nconst b = 1",
		"internal/kv/lock_other.go":    "//go:build ignore\n\npackage kv\n\nconst c = 1",
		"internal/kv/inner_test.go":    "package kv",
		"internal/kv/another_linux.go": "package kv\n\nconst d = 1",
	})
	want := 1
	if build.Default.GOOS == "linux" {
		want = 2
	}
	if got := built(tree.find("internal/kv")); len(got) != want {
		t.Errorf("%d files are built, want %d", len(got), want)
	}
}
