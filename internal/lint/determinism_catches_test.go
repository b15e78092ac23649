package lint

import (
	"strings"
	"testing"
)

// coreSources are small files of the core, each with the rules it breaks.
var coreSources = []struct {
	name, text string
	want       []string
}{
	{"plain code", `func f(a []int) (n int) { for _, x := range a { n += x }; return n }`, nil},
	{"clock", `import "time"
func f() int64 { return time.Now().Unix() }`, []string{"import"}},
	{"length of time", `import "time"
const lease = 30 * time.Second
func f(d time.Duration) int64 { return int64(d / time.Millisecond) }`, nil},
	{"clock under another name", `import t "time"
var now = t.Now`, []string{"import"}},
	{"local time", `import "time"
func f(ms int64) string { return time.UnixMilli(ms).String() }`, []string{"import"}},
	{"random number", `import "math/rand/v2"
func f() int { return rand.Int() }`, []string{"import"}},
	{"secure random number", `import "crypto/rand"
func f() string { return rand.Text() }`, []string{"import"}},
	{"random seed", `import "hash/maphash"
var seed = maphash.MakeSeed()`, []string{"import"}},
	{"environment", `import "os"
func f() string { return os.Getenv("X") }`, []string{"import"}},
	{"network", `import "net/http"
var c http.Client`, []string{"import"}},
	{"logging", `import "log/slog"
func f() { slog.Info("x") }`, []string{"import"}},
	{"shared memory", `import "sync/atomic"
var n atomic.Int64`, []string{"import"}},
	{"goroutine", `func f() { go func() {}() }`, []string{"goroutine"}},
	{"select", `func f(c chan int) { select { case <-c: default: } }`, []string{"select"}},
	{"range over a map", `func f(m map[string]int) (s string) { for k := range m { s += k }; return s }`, []string{"map-order"}},
	{"range over a named map", `type set map[string]bool
type holder struct { s set }
func f(h *holder) (s string) { for k := range h.s { s += k }; return s }`, []string{"map-order"}},
	{"range over a generic map", `func f[M ~map[string]int](m M) (s string) { for k := range m { s += k }; return s }`, []string{"map-order"}},
	{"marked range", `func f(m map[string]int) (n int) {
	//keyload:sorted a sum has no order
	for _, v := range m { n += v }
	return n
}`, nil},
	{"mark without a reason", `func f(m map[string]int) (n int) {
	//keyload:sorted
	for _, v := range m { n += v }
	return n
}`, []string{"map-order"}},
	{"mark elsewhere", `//keyload:sorted far away
func f(m map[string]int) (n int) {
	for _, v := range m { n += v }
	return n
}`, []string{"map-order"}},
	{"keys in no order", `import "maps"
func f(m map[string]int) (s string) { for k := range maps.Keys(m) { s += k }; return s }`, []string{"map-order"}},
	{"keys sorted", `import ("maps"; "slices")
func f(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }`, nil},
	{"keys by reflection", `import "reflect"
func f(m any) []reflect.Value { return reflect.ValueOf(m).MapKeys() }`, []string{"map-order"}},
	{"entries of a sync.Map", `import "sync"
func f(m *sync.Map) { m.Range(func(k, v any) bool { return false }) }`, []string{"map-order"}},
	{"float field", `type t struct { x float64 }`, []string{"float"}},
	{"float field of a named type", `type ratio float32
type t struct { x []ratio }`, []string{"float", "float"}},
	{"float conversion", `func f(n int) int { return int(float64(n) * 1.5) }`, []string{"float"}},
	{"float without its name", `import "strconv"
func f(s string) bool { x, _ := strconv.ParseFloat(s, 64); return x > 1 }`, []string{"float"}},
	{"whole number in float notation", `const million int = 1e6`, nil},
}

func TestTheCoreCheckCatchesEachKindOfViolation(t *testing.T) {
	imports := exportData(t, sources(t, map[string]string{"fault/x.go": "package fault"}),
		"crypto/rand", "hash/maphash", "log/slog", "maps", "math/rand/v2", "net/http", "os", "reflect", "slices", "strconv", "sync", "sync/atomic", "time")
	for _, c := range coreSources {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			for _, rule := range c.want {
				want = append(want, rule+" internal/machine/x.go")
			}
			for file, want := range map[string][]string{
				"internal/machine/x.go":      want,
				"internal/engine/x.go":       nil, // not core
				"internal/machine/x_test.go": nil, // not product
			} {
				found, err := checkCore(sources(t, map[string]string{file: "package x\n" + c.text}), imports)
				if err != nil {
					t.Fatal(err)
				}
				wantViolations(t, found, want...)
			}
		})
	}
}

func TestASourceThatDoesNotCompileIsAnErrorOfTheCoreCheck(t *testing.T) {
	tree := sources(t, map[string]string{"internal/machine/x.go": "package x\nvar a = b"})
	if _, err := checkCore(tree, exportData(t, tree)); err == nil || !strings.Contains(err.Error(), "undefined: b") {
		t.Errorf("error is %v", err)
	}
}

func TestEveryPackageOfTheCoreIsALayer(t *testing.T) {
	for _, c := range core {
		if rank(strings.Replace(c, "/*", "/queue", 1)) < 0 {
			t.Errorf("%s is in no layer", c)
		}
	}
}
