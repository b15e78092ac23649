package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// A layer is one package, or with "/*" at the end all packages below a
// directory. Product code imports only layers that stand above its own.
type layer struct {
	path string
	only []string // if set, the only packages of ours it may import
	root string   // why it may import more than maxImports, if it may
}

// layers is the order of the packages of KeyLoad. A new package gets its line
// here, as high as its imports allow.
var layers = []layer{
	{path: "fault"},
	{path: "api"},
	{path: "internal/limits"},
	{path: "internal/wire"},
	{path: "internal/frame"},
	{path: "internal/codec"},
	{path: "internal/jsontree"},
	{path: "internal/token"},
	{path: "internal/kv"},
	{path: "internal/table"},
	{path: "internal/op"},
	{path: "internal/resource/partitions"},
	{path: "internal/resource/lineage"},
	{path: "internal/resource/changes"},
	{path: "internal/resource/access"},
	{path: "internal/resource/directory"},
	{path: "internal/resource/members"},
	{path: "internal/resource/dispatch"},
	{path: "internal/resource/document/*"},
	{path: "internal/resource/document"},
	{path: "internal/resource/leasing"},
	{path: "internal/resource/source"},
	{path: "internal/resource/stream"},
	{path: "internal/resource/topic"},
	{path: "internal/resource/queue"},
	{path: "internal/resource/inbox"},
	{path: "internal/resource/group"},
	{path: "internal/resource/batch"},
	{path: "internal/resource/system"},
	{path: "internal/catalog", root: "the one list of all resources"},
	{path: "internal/machine"},
	{path: "internal/peer"},
	{path: "internal/cluster"},
	{path: "internal/commitlog"},
	{path: "internal/solo"},
	{path: "internal/replica/journal"},
	{path: "internal/replica"},
	{path: "internal/wake"},
	{path: "internal/engine"},
	{path: "internal/tenure"},
	{path: "internal/membership"},
	{path: "internal/check"},
	{path: "internal/backup"},
	{path: "internal/backup/target", only: []string{"fault"}},
	{path: "internal/apischema", only: []string{"fault", "api"}},
	// The public client links none of the server.
	{path: "client", only: []string{"fault", "api", "internal/wire", "internal/frame"}},
	// A worker is made of what everybody can use.
	{path: "worker", only: []string{"fault", "api", "client"}},
	// Gateways know the registry and the door, nothing else.
	{path: "internal/gateway/*", only: []string{
		"fault", "api", "internal/limits", "internal/wire", "internal/frame", "internal/op", "internal/engine", "internal/apischema",
	}},
	{path: ".", root: "composition root of the embedded store"},
	{path: "internal/node", root: "composition root of the server"},
	{path: "internal/webhooks"},
	{path: "internal/cluster/dev"},
	{path: "internal/bench"},
	{path: "internal/demo"},
	{path: "internal/cli", root: "composition root of the program"},
	{path: "cmd/keyload"},
	// Examples show what a user can do.
	{path: "examples/*", only: []string{"fault", "api", "client", "worker", "."}},
	// Below here: imported by tests only.
	{path: "internal/script"},
	{path: "internal/sim/network"},
	{path: "internal/sim/trial"},
	{path: "internal/sim/disk"},
	{path: "internal/sim/course"},
	{path: "internal/sim/work"},
	{path: "internal/sim/history"},
	{path: "internal/sim/cluster"},
	{path: "internal/sim/kill"},
	{path: "internal/sim/load"},
	{path: "internal/sim"},
	{path: "internal/formats"},
	{path: "internal/lint"},
}

// maxImports bounds how many packages of ours a package may import, unless it is
// a composition root.
const maxImports = 8

var layerExceptions = []exception{
	{"fan-out", "internal/resource/system", "catalog changes and a restore reach what every package keeps in a shard"},
	{"fan-out", "internal/machine", "apply is where the envelope, access, receipts and tables meet"},
	{"fan-out", "internal/engine", "the door puts registry, log, policies and clock together; gateways then need nothing else"},
	{"fan-out", "internal/resource/directory", "a definition is stored, numbered, protected, spread and removed in one place"},
	{"fan-out", "internal/resource/group", "as queue, and the events of a source, inbox and dead letters beside"},
	{"fan-out", "internal/resource/inbox", "the token of effects names the history they were committed in"},
	{"fan-out", "internal/resource/queue", "rows, delivery tokens, protected fields and limits meet in one claim"},
}

// pebble is the storage engine. Only internal/kv knows it; tests elsewhere, and
// the simulator that only tests import, may use its file systems, to lose power
// and to fail writes.
const pebble = "github.com/cockroachdb/pebble"

func TestPackagesImportOnlyTheLayersAboveThem(t *testing.T) {
	tree := repositoryTree(t)
	report(t, tree, checkLayers(tree), layerExceptions)
}

func checkLayers(tree *sourceTree) []violation {
	var found []violation
	for _, p := range tree.packages {
		own := rank(p.path)
		if own < 0 {
			found = append(found, violation{"unknown", p.path,
				"is in no layer: add it to layers in internal/lint/layers_test.go, as high as its imports allow"})
			continue
		}
		imports := ourImports(p.product())
		for _, imported := range imports {
			if text := refuse(own, p.path, imported); text != "" {
				found = append(found, violation{"order", p.path, text})
			}
		}
		if len(imports) > maxImports && layers[own].root == "" {
			found = append(found, violation{"fan-out", p.path,
				fmt.Sprintf("imports %d packages of ours, at most %d: %s", len(imports), maxImports, strings.Join(imports, " "))})
		}
		found = append(found, checkPebble(p)...)
		found = append(found, checkRaft(p)...)
	}
	return found
}

// rank is the place of a package in layers, -1 if it has none.
func rank(pkg string) int {
	return slices.IndexFunc(layers, func(l layer) bool {
		if dir, ok := strings.CutSuffix(l.path, "/*"); ok {
			return strings.HasPrefix(pkg, dir+"/")
		}
		return pkg == l.path
	})
}

// refuse says why a package may not import another one, "" if it may.
func refuse(own int, pkg, imported string) string {
	other := rank(imported)
	switch {
	case other < 0:
		return "imports " + imported + ", which is in no layer"
	case other == own && (strings.HasPrefix(imported, pkg+"/") || strings.HasPrefix(pkg, imported+"/")):
		return "" // a package and its own parts
	case other == own:
		return "imports " + imported + " of the same layer"
	case other > own:
		return "imports " + imported + ", which stands below it"
	case layers[own].only != nil && !slices.Contains(layers[own].only, imported):
		return "imports " + imported + "; it may import only " + strings.Join(layers[own].only, " ")
	}
	return ""
}

func checkPebble(p *sourcePackage) []violation {
	if p.path == "internal/kv" {
		return nil
	}
	var found []violation
	for _, f := range p.files {
		for _, spec := range f.syntax.Imports {
			imported := importPath(spec)
			if imported != pebble && !strings.HasPrefix(imported, pebble+"/") {
				continue
			}
			if (f.isTest || strings.HasPrefix(p.path, "internal/sim/")) && (path.Base(imported) == "vfs" || path.Base(imported) == "errorfs") {
				continue
			}
			found = append(found, violation{"pebble", f.path, "imports " + imported + "; only internal/kv may"})
		}
	}
	return found
}

// raft is the consensus library. Only the host and its journal know it.
const raft = "go.etcd.io/raft/v3"

func checkRaft(p *sourcePackage) []violation {
	if p.path == "internal/replica" || strings.HasPrefix(p.path, "internal/replica/") {
		return nil
	}
	var found []violation
	for _, f := range p.files {
		for _, spec := range f.syntax.Imports {
			if imported := importPath(spec); imported == raft || strings.HasPrefix(imported, raft+"/") {
				found = append(found, violation{"raft", f.path, "imports " + imported + "; only internal/replica and its journal may"})
			}
		}
	}
	return found
}

func TestTheLayerCheckCatchesEachKindOfWrongImport(t *testing.T) {
	imports := func(paths ...string) string {
		text := "package x\n"
		for _, p := range paths {
			text += fmt.Sprintf("import _ %q\n", p)
		}
		return text
	}
	ours := func(paths ...string) string {
		for i, p := range paths {
			paths[i] = path.Join(module, p)
		}
		return imports(paths...)
	}
	for _, c := range []struct {
		name, file, text string
		want             []string
	}{
		{"allowed", "internal/engine/x.go", ours("fault", "internal/machine"), nil},
		{"downwards", "internal/table/x.go", ours("internal/engine"), []string{"order internal/table"}},
		{"downwards among resources", "internal/resource/topic/x.go", ours("internal/resource/queue"), []string{"order internal/resource/topic"}},
		{"upwards among resources", "internal/resource/queue/x.go", ours("internal/resource/topic"), nil},
		{"root package", "api/x.go", ours("."), []string{"order api"}},
		{"unknown importer", "internal/stuff/x.go", ours("fault"), []string{"unknown internal/stuff"}},
		{"unknown imported", "internal/engine/x.go", ours("internal/stuff"), []string{"order internal/engine"}},
		{"client and server", "client/x.go", ours("fault", "internal/engine"), []string{"order client"}},
		{"gateway and storage", "internal/gateway/httpgw/x.go", ours("internal/engine", "internal/kv"), []string{"order internal/gateway/httpgw"}},
		{"gateway and gateway", "internal/gateway/httpgw/x.go", ours("internal/gateway/mcpgw"), []string{"order internal/gateway/httpgw"}},
		{"gateway and its part", "internal/gateway/httpgw/x.go", ours("internal/gateway/httpgw/page"), nil},
		{"test package in product", "internal/cli/x.go", ours("internal/sim"), []string{"order internal/cli"}},
		{"test package in tests", "internal/cli/x_test.go", ours("internal/sim"), nil},
		{"pebble elsewhere", "internal/table/x.go", imports(pebble + "/v2"), []string{"pebble internal/table/x.go"}},
		{"pebble in its place", "internal/kv/x.go", imports(pebble + "/v2"), nil},
		{"pebble in a test elsewhere", "internal/solo/x_test.go", imports(pebble + "/v2"), []string{"pebble internal/solo/x_test.go"}},
		{"file system in a test", "internal/solo/x_test.go", imports(pebble+"/v2/vfs", pebble+"/v2/vfs/errorfs"), nil},
		{"file system in the simulator", "internal/sim/disk/x.go", imports(pebble+"/v2/vfs", pebble+"/v2/vfs/errorfs"), nil},
		{"pebble in the simulator", "internal/sim/disk/x.go", imports(pebble + "/v2"), []string{"pebble internal/sim/disk/x.go"}},
		{"file system in product", "internal/solo/x.go", imports(pebble + "/v2/vfs"), []string{"pebble internal/solo/x.go"}},
		{"raft elsewhere", "internal/engine/x.go", imports(raft + "/raftpb"), []string{"raft internal/engine/x.go"}},
		{"raft in its place", "internal/replica/x.go", imports(raft), nil},
		{"raft in the journal", "internal/replica/journal/x_test.go", imports(raft + "/raftpb"), nil},
		{"eight imports", "internal/bench/x.go", ours("fault", "api", "client", "internal/wire", "internal/limits", "internal/codec", "internal/op", "internal/kv"), nil},
		{"nine imports of a composition root", "internal/cli/x.go", ours("fault", "api", "client", "internal/wire", "internal/limits", "internal/codec", "internal/op", "internal/kv", "internal/table"), nil},
		{"nine imports", "internal/bench/x.go", ours("fault", "api", "client", "internal/wire", "internal/limits", "internal/codec", "internal/op", "internal/kv", "internal/table"), []string{"fan-out internal/bench"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantViolations(t, checkLayers(sources(t, map[string]string{c.file: c.text})), c.want...)
		})
	}
}

func TestEveryLayerIsWrittenOnceAndNamesKnownPackages(t *testing.T) {
	for i, l := range layers {
		if rank(strings.Replace(l.path, "*", "x", 1)) != i {
			t.Errorf("%s is written twice", l.path)
		}
		for _, o := range l.only {
			if r := rank(o); r < 0 || r >= i {
				t.Errorf("%s may import %s, which does not stand above it", l.path, o)
			}
		}
	}
}
