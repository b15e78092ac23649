package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// The sizes, in lines and counts. Aim at half of them.
const (
	maxFileLines     = 500
	maxFuncLines     = 70
	maxTestFuncLines = 120
	maxMethods       = 20 // of one type, in product files
	maxInterface     = 5  // methods of one interface
)

var sizeExceptions = []exception{}

func TestFilesFunctionsTypesAndInterfacesAreSmall(t *testing.T) {
	tree := repositoryTree(t)
	report(t, tree, checkSizes(tree), sizeExceptions)
}

func checkSizes(tree *sourceTree) []violation {
	var found []violation
	for _, p := range tree.packages {
		for _, f := range p.files {
			if ast.IsGenerated(f.syntax) {
				continue
			}
			if n := strings.Count(f.text, "\n"); n > maxFileLines {
				found = append(found, violation{"file-size", f.path, fmt.Sprintf("has %d lines, at most %d", n, maxFileLines)})
			}
			found = append(found, checkFunctions(tree, p, f)...)
		}
		found = append(found, checkMethods(p)...)
		found = append(found, checkInterfaces(tree, p)...)
	}
	return found
}

func checkFunctions(tree *sourceTree, p *sourcePackage, f *sourceFile) []violation {
	limit := maxFuncLines
	if f.isTest {
		limit = maxTestFuncLines
	}
	var found []violation
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := tree.fset.Position(fn.End()).Line - tree.line(fn.Type) + 1
		if n > limit {
			found = append(found, violation{"function-size", p.path + "#" + funcName(fn),
				fmt.Sprintf("%s has %d lines, at most %d", tree.at(fn), n, limit)})
		}
	}
	return found
}

// funcName is "Name" or "Type.Name".
func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	return receiver(fn.Recv.List[0].Type) + "." + fn.Name.Name
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

func checkMethods(p *sourcePackage) []violation {
	count := map[string]int{}
	var order []string
	for _, f := range p.product() {
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			name := receiver(fn.Recv.List[0].Type)
			if count[name] == 0 {
				order = append(order, name)
			}
			count[name]++
		}
	}
	var found []violation
	for _, name := range order {
		if count[name] > maxMethods {
			found = append(found, violation{"methods", p.path + "#" + name,
				fmt.Sprintf("has %d methods, at most %d", count[name], maxMethods)})
		}
	}
	return found
}

// checkInterfaces counts the methods of interfaces. An embedded interface of
// the same package counts with its methods, one of another package as one.
func checkInterfaces(tree *sourceTree, p *sourcePackage) []violation {
	named := map[string]*ast.InterfaceType{}
	var order []*ast.TypeSpec
	for _, f := range p.files {
		for _, d := range f.syntax.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				spec := s.(*ast.TypeSpec)
				if face, ok := spec.Type.(*ast.InterfaceType); ok {
					named[spec.Name.Name] = face
					order = append(order, spec)
				}
			}
		}
	}
	var found []violation
	for _, spec := range order {
		if n := countMethods(spec.Type.(*ast.InterfaceType), named); n > maxInterface {
			found = append(found, violation{"interface", p.path + "#" + spec.Name.Name,
				fmt.Sprintf("%s has %d methods, at most %d", tree.at(spec), n, maxInterface)})
		}
	}
	return found
}

func countMethods(face *ast.InterfaceType, named map[string]*ast.InterfaceType) int {
	n := 0
	for _, field := range face.Methods.List {
		switch t := field.Type.(type) {
		case *ast.FuncType:
			n += len(field.Names)
		case *ast.Ident:
			if inner, ok := named[t.Name]; ok {
				n += countMethods(inner, named)
			}
		case *ast.SelectorExpr:
			n++
		}
	}
	return n
}

func TestTheSizeCheckCatchesOneAboveEachLimit(t *testing.T) {
	function := func(name string, lines int) string {
		return "func " + name + "() {\n" + strings.Repeat("_ = 0\n", lines-2) + "}\n"
	}
	methods := func(n int) string {
		text := "type t struct{}\n"
		for i := range n {
			text += fmt.Sprintf("func (*t) m%d() {}\n", i)
		}
		return text
	}
	face := func(name string, n int, embedded ...string) string {
		text := "type " + name + " interface {\n" + strings.Join(embedded, "\n") + "\n"
		for i := range n {
			text += fmt.Sprintf("m%s%d()\n", name, i)
		}
		return text + "}\n"
	}
	for _, c := range []struct {
		name, file, body string
		want             []string
	}{
		{"file at the limit", "api/x.go", strings.Repeat("\n", 499), nil},
		{"file above", "api/x.go", strings.Repeat("\n", 500), []string{"file-size api/x.go"}},
		{"test file above", "api/x_test.go", strings.Repeat("\n", 500), []string{"file-size api/x_test.go"}},
		{"generated file above", "api/x.go", "// Code generated by x. DO NOT EDIT.\n\npackage x\n" + strings.Repeat("\n", 500), nil},
		{"function at the limit", "api/x.go", function("F", 70), nil},
		{"function above", "api/x.go", function("F", 71), []string{"function-size api#F"}},
		{"method above", "api/x.go", "type t[K any] struct{}\n" + function("(x *t[K]) F", 71), []string{"function-size api#t.F"}},
		{"comment does not count", "api/x.go", strings.Repeat("// why\n", 20) + function("F", 70), nil},
		{"test function at the limit", "api/x_test.go", function("F", 120), nil},
		{"test function above", "api/x_test.go", function("F", 121), []string{"function-size api#F"}},
		{"methods at the limit", "api/x.go", methods(20), nil},
		{"methods above", "api/x.go", methods(21), []string{"methods api#t"}},
		{"interface at the limit", "api/x.go", face("A", 5), nil},
		{"interface above", "api/x.go", face("A", 6), []string{"interface api#A"}},
		{"embedded interface counts", "api/x.go", face("A", 3) + face("B", 3, "A"), []string{"interface api#B"}},
		{"foreign interface counts once", "api/x.go", "import \"io\"\n" + face("A", 4, "io.ReadWriter"), nil},
		{"constraint has no methods", "api/x.go", "type n interface{ ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint }", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.body
			if !strings.Contains(text, "package x\n") {
				text = "package x\n" + text
			}
			wantViolations(t, checkSizes(sources(t, map[string]string{c.file: text})), c.want...)
		})
	}
}
