package wire

import (
	"reflect"
	"strings"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
)

// fill draws a value of any type of package api: every field takes every shape
// it can have on the wire, whether or not it is in bounds.
func fill(t *rapid.T, v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[api.Mutation]():
		f := v.Field(rapid.IntRange(0, v.NumField()-1).Draw(t, "kind"))
		f.Set(reflect.New(f.Type().Elem()))
		fill(t, f.Elem())
	case v.Type() == reflect.TypeFor[api.JSON]():
		v.SetBytes([]byte(drawJSON(t, 3)))
	case v.Type() == reflect.TypeFor[api.Time]():
		v.SetInt(rapid.Int64Range(0, int64(api.MaxTime)).Draw(t, "time"))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case v.Kind() == reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "bytes"))
	case v.Kind() == reflect.Slice:
		n := rapid.IntRange(0, 2).Draw(t, "entries")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i))
		}
	case v.Type() == reflect.TypeFor[map[string][]string]():
		v.Set(reflect.ValueOf(rapid.MapOfN(drawText(), rapid.SliceOfN(drawText(), 1, 3), 0, 3).Draw(t, "map")))
	case v.Kind() == reflect.Map:
		v.Set(reflect.ValueOf(rapid.MapOfN(drawText(), drawText(), 0, 3).Draw(t, "map")))
	case v.Kind() == reflect.String:
		v.SetString(drawText().Draw(t, "text"))
	case v.Kind() == reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case v.CanInt():
		v.SetInt(rapid.Int64().Draw(t, "int") >> (64 - v.Type().Bits()))
	case v.CanUint():
		v.SetUint(rapid.Uint64().Draw(t, "uint") >> (64 - v.Type().Bits()))
	default:
		t.Fatalf("no way to fill a %s", v.Type())
	}
}

// drawText includes what escaping gets wrong.
func drawText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringN(0, 6, 24),
		rapid.SampledFrom([]string{"", "a/b~c", `"\`, "<&>", "\u2028", "\x00", "é", "😀", "kind"}),
	)
}

// drawJSON is compact JSON text, as package api keeps it.
func drawJSON(t *rapid.T, levels int) string {
	kinds := 5
	if levels > 0 {
		kinds = 7
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "json") {
	case 0:
		return "null"
	case 1:
		return "true"
	case 2:
		return rapid.SampledFrom([]string{"0", "-1", "9007199254740993", "18446744073709551616", "1.10", "1e400"}).Draw(t, "number")
	case 3:
		b, _ := EncodeJSON(drawText().Draw(t, "text"))
		return string(b)
	case 4:
		return rapid.SampledFrom([]string{`"\u0041"`, `"\/"`, `""`, `"a b"`}).Draw(t, "escaped")
	case 5:
		return "[" + drawJSON(t, levels-1) + strings.Repeat(",1", rapid.IntRange(0, 2).Draw(t, "more")) + "]"
	default:
		return `{"a":` + drawJSON(t, levels-1) + `,"b":{}}`
	}
}
