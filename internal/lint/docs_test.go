package lint

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// docParts are the parts of every package comment, in order.
var docParts = []string{"Owns: ", "May: ", "May not: ", "Start reading at: "}

// emptyNames say nothing about what a package owns.
var emptyNames = []string{
	"util", "utils", "common", "helper", "helpers", "base", "misc", "type", "types", "model", "models", "shared", "lib", "core",
}

// public are the packages users import; everything they export is documented.
var public = []string{".", "fault", "api", "client", "worker"}

var docExceptions = []exception{}

func TestEveryPackageSaysWhatItOwnsAndMayDo(t *testing.T) {
	tree := repositoryTree(t)
	found := checkDocs(tree)
	for _, p := range tree.packages {
		if slices.Contains(public, p.path) {
			found = append(found, checkExported(tree, p)...)
		}
		for _, f := range p.files {
			found = append(found, checkCalls(tree, f)...)
		}
	}
	report(t, tree, found, docExceptions)
}

func checkDocs(tree *sourceTree) []violation {
	var found []violation
	for _, p := range tree.packages {
		found = append(found, checkNames(p)...)
		i := slices.IndexFunc(p.files, func(f *sourceFile) bool { return path.Base(f.path) == "doc.go" })
		if i < 0 {
			found = append(found, violation{"doc", p.path, "has no doc.go"})
			continue
		}
		text := p.files[i].syntax.Doc.Text()
		at := 0
		for _, part := range docParts {
			n := strings.Index(text[at:], "\n"+part)
			if n < 0 {
				found = append(found, violation{"doc", p.path, "doc.go has no paragraph \"" + part + "\" in its place; the order is " + strings.Join(docParts, "· ")})
				break
			}
			at += n + len(part)
		}
	}
	return found
}

func checkNames(p *sourcePackage) []violation {
	names := []string{path.Base(p.path)}
	for _, f := range p.files {
		names = append(names, strings.TrimSuffix(f.syntax.Name.Name, "_test"))
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if slices.Contains(emptyNames, name) {
			return []violation{{"name", p.path, "the name " + name + " says nothing; name the package after what it owns"}}
		}
	}
	return nil
}

// checkExported finds exported functions, methods and types without a comment.
func checkExported(tree *sourceTree, p *sourcePackage) []violation {
	var found []violation
	undocumented := func(n ast.Node, name string) {
		found = append(found, violation{"comment", p.path + "#" + name, tree.at(n) + " exported without a comment"})
	}
	for _, f := range p.product() {
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				ofExported := d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))
				if d.Name.IsExported() && ofExported && d.Doc == nil {
					undocumented(d, funcName(d))
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					spec, ok := s.(*ast.TypeSpec)
					if ok && spec.Name.IsExported() && spec.Doc == nil && d.Doc == nil {
						undocumented(spec, spec.Name.Name)
					}
				}
			}
		}
	}
	return found
}

// sleepMark on the line above a call of time.Sleep says why it does not wait
// for a state: "//keyload:sleep the fake clock of this bubble moves on".
const sleepMark = "//keyload:sleep "

// checkCalls finds init functions, which hide an order, and sleeps, which make
// tests slow and unsure.
func checkCalls(tree *sourceTree, f *sourceFile) []violation {
	var found []violation
	marked := map[int]bool{}
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			if reason, ok := strings.CutPrefix(c.Text, sleepMark); ok && strings.TrimSpace(reason) != "" {
				marked[tree.line(c)+1] = true
			}
		}
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				found = append(found, violation{"init", f.path, tree.at(n) + " has an init function; call it from where it is needed"})
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && n.Sel.Name == "Sleep" && !marked[tree.line(n)] {
				found = append(found, violation{"sleep", f.path, tree.at(n) + " sleeps; wait for a signal or use a fake clock, or write why after \"" + sleepMark + "\" on the line above"})
			}
		}
		return true
	})
	return found
}

func TestTheDocumentCheckCatchesEachMissingPart(t *testing.T) {
	comment := func(parts ...string) string {
		return "// Package x is x.\n//\n" + strings.Join(parts, "\n//\n") + "\npackage x\n"
	}
	owns, may, mayNot, start := "// Owns: a.", "// May: b.", "// May not: c.", "// Start reading at: d.go."
	for _, c := range []struct {
		name string
		tree map[string]string
		want []string
	}{
		{"all parts", map[string]string{"api/doc.go": comment(owns, may, mayNot, start)}, nil},
		{"more after the parts", map[string]string{"api/doc.go": comment(owns, may, mayNot, start, "// # More")}, nil},
		{"no doc.go", map[string]string{"api/x.go": comment(owns, may, mayNot, start)}, []string{"doc api"}},
		{"no comment", map[string]string{"api/doc.go": "package x"}, []string{"doc api"}},
		{"no Owns", map[string]string{"api/doc.go": comment(may, mayNot, start)}, []string{"doc api"}},
		{"no May", map[string]string{"api/doc.go": comment(owns, mayNot, start)}, []string{"doc api"}},
		{"no May not", map[string]string{"api/doc.go": comment(owns, may, start)}, []string{"doc api"}},
		{"no Start", map[string]string{"api/doc.go": comment(owns, may, mayNot)}, []string{"doc api"}},
		{"other order", map[string]string{"api/doc.go": comment(may, owns, mayNot, start)}, []string{"doc api"}},
		{"empty directory name", map[string]string{"internal/util/doc.go": comment(owns, may, mayNot, start)}, []string{"name internal/util"}},
		{"empty package name", map[string]string{"api/doc.go": strings.Replace(comment(owns, may, mayNot, start), "package x", "package helpers", 1)}, []string{"name api"}},
		{"empty name of a test package", map[string]string{
			"api/doc.go": comment(owns, may, mayNot, start), "api/x_test.go": "package common_test",
		}, []string{"name api"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantViolations(t, checkDocs(sources(t, c.tree)), c.want...)
		})
	}
}

func TestTheCommentCheckCatchesEachKindOfDeclaration(t *testing.T) {
	tree := sources(t, map[string]string{"api/x.go": `package api

// A has a comment.
type A struct{}

type B struct{}

// The group has a comment.
type (
	C struct{}
)

// F has a comment.
func F() {}

func G() {}

// M has a comment.
func (A) M() {}

func (*A) N() {}

type d struct{}

func (d) M() {}

func h() {}
`, "api/x_test.go": "package api\nfunc TestX() {}"})
	wantViolations(t, checkExported(tree, tree.find("api")), "comment api#B", "comment api#G", "comment api#A.N")
}

func TestTheCallCheckCatchesInitAndSleep(t *testing.T) {
	tree := sources(t, map[string]string{"api/x.go": `package api

import "time"

func init() {}

func (x) init() {}

func f() {
	//keyload:sleep a pause the user asked for
	time.Sleep(1)
	//keyload:sleep
	time.Sleep(1)
	g(time.Sleep)
}
`})
	wantViolations(t, checkCalls(tree, tree.packages[0].files[0]), "init api/x.go", "sleep api/x.go", "sleep api/x.go")
}
