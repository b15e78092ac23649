package lint

import (
	"go/ast"
	"testing"
)

// checkResults finds an if that begins with a call whose error nobody takes, and then
// looks at an older error: one that the call was not given either.
func checkResults(tree *sourceTree) (found []violation) {
	mentions := func(e ast.Node) (yes bool) {
		ast.Inspect(e, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			yes = yes || ok && id.Name == "err"
			_, inner := n.(*ast.FuncLit)
			return !inner
		})
		return yes
	}
	for _, p := range tree.packages {
		for _, f := range p.files {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				s, ok := n.(*ast.IfStmt)
				if !ok {
					return true
				}
				if call, ok := s.Init.(*ast.ExprStmt); ok && mentions(s.Cond) && !mentions(call) {
					found = append(found, violation{"results", f.path, "the error of a call is lost, and the condition looks at an older one: " + tree.at(call)})
				}
				return true
			})
		}
	}
	return found
}

func TestNoIfLosesTheErrorOfTheCallThatItBeginsWith(t *testing.T) {
	tree := repositoryTree(t)
	report(t, tree, checkResults(tree), nil)
}

func TestTheResultCheckCatchesACallWhoseErrorIsLost(t *testing.T) {
	tree := sources(t, map[string]string{"api/x.go": `package api

func f() (err error) {
	if g(); err != nil {
		return err
	}
	if g(func() { _ = err }); err != nil {
		return err
	}
	if h(err); err != nil {
		return err
	}
	if err := g(); err != nil {
		return err
	}
	if err = g(); err != nil {
		return err
	}
	return nil
}
`})
	wantViolations(t, checkResults(tree), "results api/x.go", "results api/x.go")
}
