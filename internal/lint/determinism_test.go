package lint

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// core are the packages whose every result is a function of the state and the
// log entry. Product files only; their tests may do what they like.
var core = []string{
	"internal/codec", "internal/token", "internal/kv", "internal/table", "internal/op", "internal/resource/*", "internal/machine",
}

// coreImports are the packages the core may not import, with what they would
// bring in. A list of names says which of their names are harmless.
var coreImports = map[string]struct {
	brings   string
	harmless []string
}{
	"time": {brings: "a clock", harmless: []string{
		"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour",
	}},
	"github.com/google/uuid": {brings: "random ids", harmless: []string{
		"UUID", "Nil", "Max", "Version", "Variant", "Parse", "ParseBytes", "MustParse", "Validate", "FromBytes", "NewSHA1", "NewHash",
	}},
	"math/rand":    {brings: "random numbers"},
	"math/rand/v2": {brings: "random numbers"},
	"crypto/rand":  {brings: "random numbers"},
	"hash/maphash": {brings: "a random seed"},
	"os":           {brings: "the environment"},
	"os/*":         {brings: "the environment"},
	"net":          {brings: "the network"},
	"net/*":        {brings: "the network"},
	"log":          {brings: "logging"},
	"log/*":        {brings: "logging"},
	"runtime":      {brings: "the scheduler"},
	"runtime/*":    {brings: "the scheduler"},
	"sync/atomic":  {brings: "shared memory"},
}

// unordered are functions that hand out the entries of a map in no order.
var unordered = []string{
	"maps.All", "maps.Keys", "maps.Values", "(reflect.Value).MapKeys", "(reflect.Value).MapRange", "(reflect.Value).Seq",
	"(reflect.Value).Seq2", "(*sync.Map).Range",
}

// sorters are functions that may be given unordered keys, because they sort.
var sorters = []string{"slices.Sorted", "slices.SortedFunc", "slices.SortedStableFunc"}

// sortedMark on the line above a loop over a map says that its order reaches
// nothing, and why: "//keyload:sorted the keys are sorted below".
const sortedMark = "//keyload:sorted "

const wrapsPebble = "wraps the storage engine: opens files, locks the directory and passes on the engine's log"

var coreExceptions = []exception{
	{"import", "internal/kv/store.go", wrapsPebble},
	{"import", "internal/kv/disk.go", wrapsPebble},
	{"import", "internal/kv/private.go", "it is the operating system's own file system below Pebble, with files that are private"},
	{"select", "internal/kv/store.go", "a flush that can never be written must not be waited for"},
}

func TestTheCoreIsDeterministic(t *testing.T) {
	tree := repositoryTree(t)
	found, err := checkCore(tree, exportData(t, tree))
	if err != nil {
		t.Error(err)
	}
	report(t, tree, found, coreExceptions)
}

func inCore(pkg string) bool {
	return slices.ContainsFunc(core, func(c string) bool {
		if dir, ok := strings.CutSuffix(c, "/*"); ok {
			return strings.HasPrefix(pkg, dir+"/")
		}
		return pkg == c
	})
}

// checkCore reads the core packages of the tree with their types. The error names
// those that do not compile; the others are checked all the same.
func checkCore(tree *sourceTree, imports types.Importer) ([]violation, error) {
	var found []violation
	var failed []error
	for _, p := range tree.packages {
		files := built(p)
		if !inCore(p.path) || len(files) == 0 {
			continue
		}
		info, err := typesOf(tree, p.path, files, imports)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, f := range files {
			r := coreReader{tree: tree, file: f, info: info, seen: map[string]bool{}}
			r.read()
			found = append(found, r.found...)
		}
	}
	return found, errors.Join(failed...)
}

// A coreReader looks for what one file of the core may not do.
type coreReader struct {
	tree   *sourceTree
	file   *sourceFile
	info   *types.Info
	found  []violation
	seen   map[string]bool // rule and line already reported
	sorted []ast.Expr      // arguments of sorters
}

func (r *coreReader) add(rule string, n ast.Node, format string, args ...any) {
	key := fmt.Sprintf("%s %d", rule, r.tree.line(n))
	if r.seen[key] {
		return
	}
	r.seen[key] = true
	r.found = append(r.found, violation{rule, r.file.path, r.tree.at(n) + " " + fmt.Sprintf(format, args...)})
}

func (r *coreReader) read() {
	for _, spec := range r.file.syntax.Imports {
		if ban, ok := banned(importPath(spec)); ok && coreImports[ban].harmless == nil {
			r.add("import", spec, "imports %s, which brings in %s", importPath(spec), coreImports[ban].brings)
		}
	}
	ast.Inspect(r.file.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			r.add("goroutine", n, "starts a goroutine")
		case *ast.SelectStmt:
			r.add("select", n, "waits on channels")
		case *ast.RangeStmt:
			if isMap(r.info.TypeOf(n.X)) && !r.marked(n) {
				r.add("map-order", n, "ranges over a map; sort its keys, or write why no order matters after %q on the line above", sortedMark)
			}
		case *ast.CallExpr:
			if f, ok := r.callee(n.Fun); ok && slices.Contains(sorters, f) {
				r.sorted = append(r.sorted, n.Args...)
			}
		case *ast.SelectorExpr:
			r.selector(n)
		}
		if e, ok := n.(ast.Expr); ok && isFloat(r.info.Types[e].Type) {
			r.add("float", n, "has a floating point type")
		}
		return true
	})
}

// selector looks at one "package.Name" or "value.Method".
func (r *coreReader) selector(n *ast.SelectorExpr) {
	object := r.info.Uses[n.Sel]
	if f, ok := object.(*types.Func); ok && slices.Contains(unordered, f.Origin().FullName()) {
		if !slices.ContainsFunc(r.sorted, func(arg ast.Expr) bool { return within(n, arg) }) && !r.marked(n) {
			r.add("map-order", n, "takes the entries of a map in no order from %s", f.FullName())
		}
	}
	name, ok := n.X.(*ast.Ident)
	if !ok {
		return
	}
	pkg, ok := r.info.Uses[name].(*types.PkgName)
	if !ok {
		return
	}
	ban, ok := banned(pkg.Imported().Path())
	if ok && coreImports[ban].harmless != nil && !slices.Contains(coreImports[ban].harmless, n.Sel.Name) {
		r.add("import", n, "uses %s.%s, which brings in %s", ban, n.Sel.Name, coreImports[ban].brings)
	}
}

// callee is the full name of the function a call names.
func (r *coreReader) callee(fun ast.Expr) (string, bool) {
	switch f := fun.(type) {
	case *ast.IndexExpr:
		return r.callee(f.X)
	case *ast.IndexListExpr:
		return r.callee(f.X)
	case *ast.SelectorExpr:
		if object, ok := r.info.Uses[f.Sel].(*types.Func); ok {
			return object.Origin().FullName(), true
		}
	}
	return "", false
}

// marked says whether the line above has the sorted mark with a reason.
func (r *coreReader) marked(n ast.Node) bool {
	for _, group := range r.file.syntax.Comments {
		for _, c := range group.List {
			reason, ok := strings.CutPrefix(c.Text, sortedMark)
			if ok && strings.TrimSpace(reason) != "" && r.tree.line(c) == r.tree.line(n)-1 {
				return true
			}
		}
	}
	return false
}

// banned finds the entry of coreImports for an import path.
func banned(imported string) (string, bool) {
	if _, ok := coreImports[imported]; ok {
		return imported, true
	}
	for i := range imported {
		if _, ok := coreImports[imported[:i]+"/*"]; ok && imported[i] == '/' {
			return imported[:i] + "/*", true
		}
	}
	return "", false
}

func within(inner, outer ast.Node) bool {
	return outer.Pos() <= inner.Pos() && inner.End() <= outer.End()
}

func isFloat(t types.Type) bool {
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsFloat|types.IsComplex) != 0
}

// isMap also knows type parameters that can be a map.
func isMap(t types.Type) bool {
	switch t := t.(type) {
	case nil:
		return false
	case *types.TypeParam:
		constraint, ok := t.Constraint().Underlying().(*types.Interface)
		return ok && embedsMap(constraint)
	default:
		_, ok := t.Underlying().(*types.Map)
		return ok
	}
}

func embedsMap(constraint *types.Interface) bool {
	for i := range constraint.NumEmbeddeds() {
		switch e := constraint.EmbeddedType(i).(type) {
		case *types.Union:
			for j := range e.Len() {
				if isMap(e.Term(j).Type()) {
					return true
				}
			}
		default:
			if inner, ok := e.Underlying().(*types.Interface); ok && embedsMap(inner) || isMap(e) {
				return true
			}
		}
	}
	return false
}
