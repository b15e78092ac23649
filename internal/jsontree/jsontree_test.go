package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/keyload/keyload/internal/codec"
)

func TestParsingAndAppendingKeepsEveryByteButWhiteSpace(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{`{}`, `{}`},
		{` { "a" : [ 1 , 2.50e+1 , "x y" , null , true , false , { } , [ ] ] } `, `{"a":[1,2.50e+1,"x y",null,true,false,{},[]]}`},
		{`9007199254740993`, `9007199254740993`},
		{`{"\u0061b":"\u00e9\ud83d\ude00\/"}`, `{"\u0061b":"\u00e9\ud83d\ude00\/"}`},
		{`{"b":1,"a":2}`, `{"b":1,"a":2}`},
		{`[-0,1E5,123456789012345678901234567890]`, `[-0,1E5,123456789012345678901234567890]`},
	} {
		got, err := Compact([]byte(c.in))
		if err != nil || string(got) != c.out {
			t.Errorf("Compact(%s) = %s, %v; want %s", c.in, got, err, c.out)
		}
		n, err := Parse([]byte(c.in))
		if err != nil || string(n.Append(nil)) != c.out {
			t.Errorf("Parse(%s) gives %s, %v; want %s", c.in, n.Append(nil), err, c.out)
		}
	}
	for _, bad := range []string{``, ` `, `{`, `{"a"`, `{"a":}`, `[1,`, `tru`, `{1:2}`} {
		if n, err := Parse([]byte(bad)); err == nil {
			t.Errorf("Parse(%q) = %s, want an error", bad, n.Append(nil))
		}
		if _, err := Pick([]byte(bad), []Pointer{{"x"}}); err == nil {
			t.Errorf("Pick(%q) succeeds", bad)
		}
	}
}

func TestDepthCountsObjectsAndArrays(t *testing.T) {
	for in, want := range map[string]int{`1`: 0, `{}`: 1, `[[]]`: 2, `{"a":1,"b":{"c":[0]}}`: 3} {
		n, err := Parse([]byte(in))
		if err != nil || n.Depth() != want {
			t.Errorf("depth of %s is %d, %v; want %d", in, n.Depth(), err, want)
		}
	}
}

func TestPointersFollowRFC6901(t *testing.T) {
	const doc = `{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"k\"l":6," ":7,"m~n":8,"\u0061":9,"0":{"0":10},"~1":11}`
	n, err := Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	for pointer, want := range map[string]string{
		"": doc, "/foo": `["bar","baz"]`, "/foo/0": `"bar"`, "/foo/1": `"baz"`, "/": `0`, "/a~1b": `1`, "/c%d": `2`,
		"/e^f": `3`, `/k"l`: `6`, "/ ": `7`, "/m~0n": `8`, "/a": `9`, "/0/0": `10`, "/~01": `11`,
		"/foo/2": "", "/foo/-": "", "/foo/00": "", "/foo/01": "", "/foo/-1": "", "/foo/1e0": "", "/foo/": "", "/none": "",
		"/foo/0/x": "", "/foo/99999999999999999999": "",
	} {
		p, err := ParsePointer(pointer)
		if err != nil {
			t.Errorf("%s: %v", pointer, err)
			continue
		}
		if p.String() != pointer {
			t.Errorf("%s is written %s", pointer, p)
		}
		got := ""
		if at := n.Find(p); at != nil {
			got = string(at.Append(nil))
		}
		if got != want {
			t.Errorf("%s finds %s, want %s", pointer, got, want)
		}
	}
	for _, bad := range []string{"a", "/~", "/~2", "/a~", "#/a"} {
		if _, err := ParsePointer(bad); !errors.Is(err, ErrPointer) {
			t.Errorf("%q: %v, want ErrPointer", bad, err)
		}
	}
}

func TestRemovingTakesOutExactlyWhatThePointersNamed(t *testing.T) {
	for _, c := range []struct {
		in       string
		pointers []string
		out      string
		found    []string
	}{
		{`{"a":1,"b":2}`, []string{"/a"}, `{"b":2}`, []string{"/a"}},
		{`{"a":1,"b":2}`, []string{"/b", "/a"}, `{}`, []string{"/b", "/a"}},
		{`{"a":9007199254740993,"b":1.50}`, []string{"/b"}, `{"a":9007199254740993}`, []string{"/b"}},
		{`{"a":{"b":1,"c":2}}`, []string{"/a/b", "/a/x", "/y"}, `{"a":{"c":2}}`, []string{"/a/b"}},
		{`{"a":{"b":1}}`, []string{"/a", "/a/b"}, `{}`, []string{"/a", "/a/b"}},
		{`[0,1,2,3]`, []string{"/0", "/2"}, `[1,3]`, []string{"/0", "/2"}},
		{`[{"s":1,"k":2},{"s":3}]`, []string{"/0/s", "/1/s"}, `[{"k":2},{}]`, []string{"/0/s", "/1/s"}},
		{`{"a/b":1,"m~n":2}`, []string{"/a~1b", "/m~0n"}, `{}`, []string{"/a~1b", "/m~0n"}},
		{`{"\u0061":1,"z":"\u0061"}`, []string{"/a"}, `{"z":"\u0061"}`, []string{"/a"}},
		{`{"a":1}`, []string{""}, `null`, []string{""}},
		{`{"a":1}`, nil, `{"a":1}`, nil},
		{`{ "a" : 1 }`, []string{"/b"}, `{ "a" : 1 }`, nil},
		{`"text"`, []string{"/a"}, `"text"`, nil},
		{`5`, []string{""}, `null`, []string{""}},
	} {
		out, found, err := Remove([]byte(c.in), c.pointers)
		if err != nil || string(out) != c.out || fmt.Sprint(found) != fmt.Sprint(c.found) {
			t.Errorf("Remove(%s, %q) = %s, %q, %v; want %s, %q", c.in, c.pointers, out, found, err, c.out, c.found)
		}
	}
	if _, _, err := Remove([]byte(`{}`), []string{"a"}); !errors.Is(err, ErrPointer) {
		t.Errorf("a path that is no pointer: %v", err)
	}
	if _, _, err := Remove([]byte(`{"a"`), []string{"/a"}); err == nil {
		t.Error("a damaged value is accepted")
	}
}

func TestSettingAndDeletingFields(t *testing.T) {
	for _, c := range []struct {
		in, pointer, value, out string // an empty value deletes
		err                     error
	}{
		{`{"a":1,"b":2}`, "/a", `[3]`, `{"a":[3],"b":2}`, nil},
		{`{"a":1}`, "/c", `"x"`, `{"a":1,"c":"x"}`, nil},
		{`{"a":1}`, `/q"\`, `1`, `{"a":1,"q\"\\":1}`, nil},
		{`{"\u0061":1}`, "/a", `2`, `{"\u0061":2}`, nil},
		{`{"a":{}}`, "/a/b", `1`, `{"a":{"b":1}}`, nil},
		{`{}`, "/a/b", `1`, ``, ErrNoParent},
		{`{"a":5}`, "/a/b", `1`, ``, ErrNoParent},
		{`{"a":[1,2]}`, "/a/0", `9`, `{"a":[9,2]}`, nil},
		{`{"a":[1,2]}`, "/a/2", `9`, `{"a":[1,2,9]}`, nil},
		{`{"a":[1,2]}`, "/a/-", `9`, `{"a":[1,2,9]}`, nil},
		{`{"a":[1,2]}`, "/a/3", `9`, ``, ErrNoPlace},
		{`{"a":[1,2]}`, "/a/x", `9`, ``, ErrNoPlace},
		{`{"a":[1,2,3]}`, "/a/1", ``, `{"a":[1,3]}`, nil},
		{`{"a":1,"b":2}`, "/a", ``, `{"b":2}`, nil},
		{`{"a":1}`, "/b", ``, ``, ErrNoField},
		{`{"a":[1]}`, "/a/1", ``, ``, ErrNoField},
		{`{"a":[1]}`, "/a/-", ``, ``, ErrNoField},
		{`{}`, "/a/b", ``, ``, ErrNoParent},
	} {
		n, err := Parse([]byte(c.in))
		if err != nil {
			t.Fatal(err)
		}
		p, err := ParsePointer(c.pointer)
		if err != nil {
			t.Fatal(err)
		}
		if c.value == "" {
			err = n.Delete(p)
		} else {
			v, parseErr := Parse([]byte(c.value))
			if parseErr != nil {
				t.Fatal(parseErr)
			}
			err = n.Set(p, v)
		}
		if !errors.Is(err, c.err) || err == nil && string(n.Append(nil)) != c.out {
			t.Errorf("%s at %s of %s gives %s, %v; want %s, %v", c.value, c.pointer, c.in, n.Append(nil), err, c.out, c.err)
		}
	}
}

// numbers in order; those on one line are equal.
var numbers = [][]string{
	{"-1e400", "-10e399"},
	{"-9223372036854775809"},
	{"-9223372036854775808", "-9223372036854775808.0"},
	{"-9007199254740993"},
	{"-9007199254740992"},
	{"-10"}, {"-9.99"}, {"-1.5"}, {"-1", "-1.0", "-1e0", "-0.1e1"}, {"-0.11"}, {"-0.1"}, {"-1e-400"},
	{"0", "-0", "0.0", "0e9", "-0.00e-5", "0e99999999999999999999"},
	{"1e-400"}, {"0.001", "1e-3"}, {"0.1"}, {"0.10000000000000000000001"}, {"0.11"}, {"0.9"},
	{"1", "1.0", "1E+0", "10e-1", "0.1e1"}, {"1.5"}, {"2"}, {"9"}, {"9.5"}, {"10", "1e1"}, {"11"}, {"99"}, {"100"}, {"101"},
	{"9007199254740991"}, {"9007199254740992"}, {"9007199254740993"}, {"9007199254740994", "9007199254740994.00"},
	{"9223372036854775807"}, {"9223372036854775808"}, {"18446744073709551614"}, {"18446744073709551615"}, {"18446744073709551616"},
	{"123456789012345678901234567890"}, {"123456789012345678901234567891"},
	{"1e400"}, {"1e1000"},
}

func key(raw string) []byte { return ScalarOf([]byte(raw)).AppendKey(nil) }

func TestNumbersHaveTheOrderOfTheirExactValues(t *testing.T) {
	for i, a := range numbers {
		for j, b := range numbers {
			for _, x := range a {
				for _, y := range b {
					if got, want := bytes.Compare(key(x), key(y)), compareInts(i, j); got != want {
						t.Errorf("%s against %s is %d, want %d", x, y, got, want)
					}
				}
			}
		}
	}
}

func compareInts(a, b int) int { return bytes.Compare([]byte{byte(a)}, []byte{byte(b)}) }

func TestKindsOfScalarsHaveTheDocumentedOrder(t *testing.T) {
	order := []string{`{}`, `null`, `false`, `true`, `-1e1000`, `0`, `1e1000`, `""`, `"\u0000"`, `"\u0000\u0000"`, `"\u0000a"`, `"\u0001"`, `"A"`, `"Aa"`, `"a"`, `"z"`, `"é"`, `"\uffff"`, `"😀"`}
	for i, a := range order {
		for j, b := range order {
			if got, want := bytes.Compare(key(a), key(b)), compareInts(i, j); got != want {
				t.Errorf("%s against %s is %d, want %d", a, b, got, want)
			}
		}
	}
	for _, same := range [][2]string{{`"a"`, `"\u0061"`}, {`"/"`, `"\/"`}, {`"😀"`, `"\ud83d\ude00"`}, {`[]`, `{}`}, {`[1]`, ``}} {
		if !bytes.Equal(key(same[0]), key(same[1])) {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
}

func TestNumbersBeyondTheExponentAreAbsent(t *testing.T) {
	for raw, absent := range map[string]bool{
		"1e999999999":               false, // 0.1 × 10^1000000000
		"1e1000000000":              true,
		"0.1e1000000000":            false,
		"1e-1000000001":             false,
		"1e-1000000002":             true,
		"1e99999999999999999999999": true,
		"0e99999999999999999999999": false,
	} {
		if got := ScalarOf([]byte(raw)).IsAbsent(); got != absent {
			t.Errorf("%s is absent: %v, want %v", raw, got, absent)
		}
	}
}

// number draws JSON numbers that are often near each other.
func number(t *rapid.T, label string) string {
	switch rapid.IntRange(0, 3).Draw(t, label+"Form") {
	case 0:
		return fmt.Sprint(rapid.Int64().Draw(t, label))
	case 1:
		return fmt.Sprint(rapid.Uint64().Draw(t, label))
	case 2:
		f := rapid.Float64().Draw(t, label)
		return strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf("%g", f), "+Inf", "1"), "NaN", "0")
	default:
		return rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?`).Draw(t, label)
	}
}

func TestNumbersCompareAsRationalsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := number(t, "a"), number(t, "b")
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		if got, want := bytes.Compare(key(a), key(b)), x.Cmp(y); got != want {
			t.Fatalf("%s against %s is %d, want %d", a, b, got, want)
		}
	})
}

func scalar(t *rapid.T, label string) string {
	switch rapid.IntRange(0, 3).Draw(t, label+"Kind") {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false", "{}"}).Draw(t, label)
	case 1:
		return fmt.Sprintf("%q", rapid.StringMatching(`[a-c]{0,3}`).Draw(t, label))
	case 2:
		return `"\u0000` + rapid.StringMatching(`[a-c]{0,2}`).Draw(t, label) + `"`
	default:
		return number(t, label)
	}
}

func TestTuplesAreReadBackAndNoKeyIsTheBeginningOfAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		var tuple []byte
		for i := range n {
			raw := scalar(t, fmt.Sprint(i))
			k := key(raw)
			if other := key(scalar(t, fmt.Sprint(i, "other"))); !bytes.Equal(k, other) && bytes.HasPrefix(other, k) {
				t.Fatalf("the key of %s begins another", raw)
			}
			tuple = append(tuple, k...)
		}
		stored := codec.AppendText(AppendTupleEnd(bytes.Clone(tuple)), "id")
		r := codec.NewKeyReader(stored)
		if got := ReadTuple(&r); !bytes.Equal(got, tuple) {
			t.Fatalf("read %x, want %x", got, tuple)
		}
		if id := r.Text(); id != "id" || r.End() != nil {
			t.Fatalf("after the tuple: %q, %v", id, r.End())
		}
		cut := codec.NewKeyReader(tuple)
		if ReadTuple(&cut) != nil || cut.Err() == nil {
			t.Fatal("a tuple without an end is read")
		}
	})
}

func TestTextPrefixesBeginExactlyTheTextsTheyShould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.StringMatching(`[\x00a]{0,3}`).Draw(t, "prefix")
		text := rapid.StringMatching(`[\x00\x01a\x7f]{0,5}`).Draw(t, "text")
		raw := fmt.Sprintf("%q", text)
		raw = strings.NewReplacer(`\x`, `\u00`).Replace(raw)
		got := TextsWith(prefix).Holds(ScalarOf([]byte(raw)))
		if want := strings.HasPrefix(text, prefix); got != want {
			t.Fatalf("%q begins with %q: %v", text, prefix, got)
		}
	})
}

// value draws a JSON value.
func value(t *rapid.T, label string, depth int) string {
	kind := rapid.IntRange(0, 5).Draw(t, label+"Value")
	if depth == 0 || kind < 3 {
		return scalar(t, label)
	}
	n := rapid.IntRange(0, 3).Draw(t, label+"N")
	var parts []string
	for i := range n {
		v := value(t, fmt.Sprint(label, i), depth-1)
		if kind == 3 {
			parts = append(parts, v)
		} else {
			parts = append(parts, fmt.Sprintf("%q:%s", string(rune('a'+i)), v))
		}
	}
	if kind == 3 {
		return "[" + strings.Join(parts, ",") + "]"
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestPickingReadsWhatTheTreeHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(value(t, "v", 4))
		n, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var pointers []Pointer
		for i := range rapid.IntRange(0, 8).Draw(t, "pointers") {
			s := rapid.StringMatching(`(/[abc012-]){0,4}`).Draw(t, fmt.Sprint("p", i))
			p, err := ParsePointer(s)
			if err != nil {
				t.Fatal(err)
			}
			pointers = append(pointers, p)
		}
		got, err := Pick(text, pointers)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range pointers {
			want := Absent
			if at := n.Find(p); at != nil {
				want = ScalarOf(at.Raw)
			}
			if !bytes.Equal(got[i].AppendKey(nil), want.AppendKey(nil)) {
				t.Fatalf("%s of %s is %v, want %v", p, text, got[i], want)
			}
		}
	})
}

func FuzzCompactAgreesWithTheStandardLibrary(f *testing.F) {
	for _, seed := range []string{`{}`, ` [ 1 , {"a" : "\u0061 b" } , null ] `, `-0.10E+5`, `"\ud83d\ude00"`, `{"":[[],{}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !jsontext.Value(text).IsValid() {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, text); err != nil {
			t.Skip("the standard library is stricter")
		}
		n, err := Parse(text)
		if err != nil {
			t.Fatalf("%q does not parse: %v", text, err)
		}
		got, err := Compact(text)
		if err != nil || !bytes.Equal(got, want.Bytes()) || !bytes.Equal(n.Append(nil), want.Bytes()) {
			t.Fatalf("%q becomes %q and %q, %v; want %q", text, got, n.Append(nil), err, want.Bytes())
		}
		if n.Kind != Object && n.Kind != Array {
			r := codec.NewKeyReader(AppendTupleEnd(ScalarOf(n.Raw).AppendKey(nil)))
			if ReadTuple(&r); r.End() != nil {
				t.Fatalf("the key of %q is not read back", text)
			}
		}
	})
}
