package api

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rewrite says that the golden files are to be written anew: make golden.
var rewrite = os.Getenv("KEYLOAD_REWRITE") != ""

// structs lists every struct type of this package that the operations reach,
// requests first, each once.
func structs() (out []reflect.Type, request map[reflect.Type]bool) {
	request = map[reflect.Type]bool{}
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type, req bool)
	visit = func(t reflect.Type, req bool) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] && (!req || request[t]) {
			return
		}
		if !seen[t] {
			out = append(out, t)
		}
		seen[t], request[t] = true, request[t] || req
		for i := range t.NumField() {
			visit(t.Field(i).Type, req)
		}
	}
	for _, op := range Operations() {
		visit(op.Request, true)
		visit(op.Response, false)
	}
	return out, request
}

func TestThePublishedNamesAndNumbersAreTheRecordedOnes(t *testing.T) {
	var b strings.Builder
	kinds := map[Kind]string{Query: "query", Command: "command", Composite: "composite"}
	scopes := map[Scope]string{PartitionScope: "partition", CatalogScope: "catalog", NodeScope: "node"}
	for _, op := range Operations() {
		fmt.Fprintf(&b, "operation %d %s %s %s", op.Number, op.Name, kinds[op.Kind], scopes[op.Scope])
		if op.Capability != "" {
			fmt.Fprintf(&b, " capability=%s", op.Capability)
		}
		if op.Destructive {
			b.WriteString(" destructive")
		}
		fmt.Fprintf(&b, "\n  %s -> %s\n", op.Request.Name(), op.Response.Name())
	}
	types, _ := structs()
	slices.SortFunc(types, func(a, b reflect.Type) int { return strings.Compare(a.String(), b.String()) })
	for _, typ := range types {
		fmt.Fprintf(&b, "\n%s\n", typ)
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Tag.Get("cbor") == "-" {
				continue // never leaves the process
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			key, options, _ := strings.Cut(f.Tag.Get("cbor"), ",")
			fmt.Fprintf(&b, "  %s %s %s", key, name, f.Type)
			if strings.Contains(options, "omit") || strings.Contains(f.Tag.Get("json"), ",omit") {
				b.WriteString(" optional")
			}
			for _, tag := range []string{"default", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "format", "enum"} {
				if v, ok := f.Tag.Lookup(tag); ok {
					fmt.Fprintf(&b, " %s=%s", tag, v)
				}
			}
			b.WriteByte('\n')
		}
	}
	path := filepath.Join("testdata", "operations.golden")
	if rewrite {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("names, numbers or bounds differ from %s, first at:\n%s\nread the difference, then: make golden", path, firstDifference(got, string(want)))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("line %d\n  is   %s\n  was  %s", i+1, a, b)
		}
	}
	return ""
}

func TestEveryOperationIsDeclaredInFull(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*(\.[a-z]+(-[a-z]+)*){1,2}$`)
	names, last := map[string]bool{}, uint16(0)
	for _, op := range Operations() {
		if !name.MatchString(op.Name) || names[op.Name] {
			t.Errorf("%s: not area.verb or area.thing.verb, or twice", op.Name)
		}
		names[op.Name] = true
		if op.Number <= last {
			t.Errorf("%s: number %d is not above the one before", op.Name, op.Number)
		}
		last = op.Number
		if op.Summary == "" || op.Doc == "" || strings.HasSuffix(op.Summary, ".") || !strings.HasSuffix(op.Doc, ".") {
			t.Errorf("%s: Summary is a line without a full stop, Doc whole sentences", op.Name)
		}
		if op.Capability != "" && !op.Capability.Known() {
			t.Errorf("%s: unknown capability %s", op.Name, op.Capability)
		}
		prefix := strings.ReplaceAll(strings.ReplaceAll(op.Name, ".", ""), "-", "")
		if !strings.EqualFold(prefix+"Request", op.Request.Name()) || !strings.EqualFold(prefix+"Response", op.Response.Name()) {
			t.Errorf("%s: types are named %s and %s", op.Name, op.Request.Name(), op.Response.Name())
		}
		req := reflect.New(op.Request).Interface()
		if _, ok := req.(PartitionRequest); ok != (op.Scope == PartitionScope) {
			t.Errorf("%s: PartitionRequest is %v", op.Name, ok)
		}
		if _, ok := req.(DatabaseRequest); ok != (op.Scope == CatalogScope) {
			t.Errorf("%s: DatabaseRequest is %v", op.Name, ok)
		}
		c, ok := req.(CommandRequest)
		if ok != op.Writes() {
			t.Errorf("%s: CommandRequest is %v", op.Name, ok)
		}
		if _, ok := req.(CompositeRequest); ok != (op.Kind == Composite) {
			t.Errorf("%s: CompositeRequest is %v", op.Name, ok)
		}
		if ok {
			if c.SetCommandID(someUUID); c.GetCommandID() != someUUID {
				t.Errorf("%s: the command id is lost", op.Name)
			}
			if f := op.Request.Field(0); f.Tag.Get("cbor") != "1,keyasint" || f.Tag.Get("format") != "uuid" {
				t.Errorf("%s: the command id is not field 1", op.Name)
			}
			if f := op.Response.Field(0); op.Kind == Command && f.Type != reflect.TypeFor[Receipt]() || f.Tag.Get("cbor") != "1,keyasint" {
				t.Errorf("%s: the receipt is not field 1 of the response", op.Name)
			}
		}
	}
}

func TestEveryFieldIsDeclaredInFull(t *testing.T) {
	camel := regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)
	types, request := structs()
	for _, typ := range types {
		keys, names := map[string]bool{}, map[string]bool{}
		for i := range typ.NumField() {
			f := typ.Field(i)
			where := typ.Name() + "." + f.Name
			if f.Tag.Get("cbor") == "-" && f.Tag.Get("json") == "-" {
				continue // never leaves the process
			}
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			key, cborOptions, _ := strings.Cut(f.Tag.Get("cbor"), ",")
			if n, err := strconv.Atoi(key); err != nil || n < 1 || keys[key] || !strings.HasPrefix(cborOptions, "keyasint") {
				t.Errorf("%s: cbor key %q", where, f.Tag.Get("cbor"))
			}
			keys[key] = true
			if name != "-" && (!camel.MatchString(name) || names[name] || !strings.EqualFold(name, f.Name)) {
				t.Errorf("%s: json name %q", where, name)
			}
			names[name] = true
			if typ == reflect.TypeFor[Mutation]() || typ.PkgPath() != reflect.TypeFor[Mutation]().PkgPath() {
				continue // flattened; or declared by package fault
			}
			if f.Tag.Get("doc") == "" {
				t.Errorf("%s: no doc", where)
			}
			collection := (f.Type.Kind() == reflect.Slice && f.Type != reflect.TypeFor[JSON]()) || f.Type.Kind() == reflect.Map
			if want := map[bool]string{true: "omitempty", false: "omitzero"}[collection]; options != "" && options != want {
				t.Errorf("%s: %s, want %s", where, options, want)
			}
			if request[typ] && name != "-" {
				checkBound(t, where, f)
			}
			checkEnum(t, where, f)
		}
	}
}

// checkBound wants a bound on everything a caller can make long.
func checkBound(t *testing.T, where string, f reflect.StructField) {
	t.Helper()
	bounded := f.Tag.Get("format") != "" || f.Tag.Get("enum") != "" || f.Tag.Get("maxLength") != ""
	switch {
	case f.Type == reflect.TypeFor[JSON](), f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Uint8:
		bounded = f.Tag.Get("maxLength") != ""
	case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.String:
		bounded = bounded && f.Tag.Get("maxItems") != ""
	case f.Type.Kind() == reflect.Slice, f.Type.Kind() == reflect.Map:
		bounded = f.Tag.Get("maxItems") != ""
	case f.Type.Kind() == reflect.String:
	case f.Type == reflect.TypeFor[Time]():
		bounded = true // by the text form
	case reflect.Zero(f.Type).CanInt():
		bounded = f.Tag.Get("minimum") != "" && f.Tag.Get("maximum") != ""
	default:
		bounded = true
	}
	if !bounded {
		t.Errorf("%s: a request may grow without a bound", where)
	}
	if d, ok := f.Tag.Lookup("default"); ok && f.Tag.Get("enum") != "" && !slices.Contains(strings.Split(f.Tag.Get("enum"), ","), d) {
		t.Errorf("%s: default %s is not one of its values", where, d)
	}
}

// checkEnum compares an enum tag with the constants of its type.
func checkEnum(t *testing.T, where string, f reflect.StructField) {
	t.Helper()
	typ := f.Type
	if typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	var want []string
	switch typ {
	case reflect.TypeFor[MessageState]():
		for _, s := range MessageStates() {
			want = append(want, string(s))
		}
	case reflect.TypeFor[Role]():
		for _, r := range AllRoles() {
			want = append(want, string(r))
		}
	default:
		return
	}
	if f.Tag.Get("enum") != strings.Join(want, ",") {
		t.Errorf("%s: enum %s, want %s", where, f.Tag.Get("enum"), strings.Join(want, ","))
	}
}

func TestEveryOpVariableIsListed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(f, "_test.go") {
			declared += strings.Count(string(b), "= Define[")
		}
	}
	if declared != len(Operations()) {
		t.Errorf("%d operations are declared, %d are listed", declared, len(Operations()))
	}
}

func TestAResourceHasEveryFieldOfItsConfiguration(t *testing.T) {
	resource := reflect.TypeFor[Resource]()
	config := reflect.TypeFor[ResourcesConfigureRequest]()
	for i := range config.NumField() {
		f := config.Field(i)
		if f.Name == "CommandID" || f.Name == "ExpectedVersion" {
			continue
		}
		g, ok := resource.FieldByName(f.Name)
		a, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		b, _, _ := strings.Cut(g.Tag.Get("json"), ",")
		if !ok || g.Type != f.Type || a != b {
			t.Errorf("%s: %s %s in the catalog, %s %s in the request", f.Name, g.Type, b, f.Type, a)
		}
	}
	req := &ResourcesConfigureRequest{
		Tenant: "t", Database: "d", Name: "n", Domain: "o", Kind: KindQueue, Collection: &CollectionPolicy{},
		Queue: &QueuePolicy{}, Source: &SourcePolicy{}, FieldPolicies: []FieldPolicy{{}}, Paused: true,
	}
	from, to := reflect.ValueOf(req).Elem(), reflect.ValueOf(req.Resource())
	for i := range config.NumField() {
		if g := to.FieldByName(config.Field(i).Name); g.IsValid() && !reflect.DeepEqual(g.Interface(), from.Field(i).Interface()) {
			t.Errorf("%s is not carried over", config.Field(i).Name)
		}
	}
}
