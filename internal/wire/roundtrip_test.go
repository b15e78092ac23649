package wire

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
)

// eachType runs f for the request and the response of every operation.
func eachType(t *testing.T, f func(t *rapid.T, typ reflect.Type, request bool)) {
	for _, op := range api.Operations() {
		t.Run(op.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f(t, op.Request, true)
				f(t, op.Response, false)
			})
		})
	}
}

func encodeOrFatal(t *rapid.T, encode func(any) ([]byte, error), v any) []byte {
	t.Helper()
	b, err := encode(v)
	if err != nil {
		t.Fatalf("encode %T: %v", v, err)
	}
	return b
}

func TestEveryTypeComesBackFromTheLogAsItWas(t *testing.T) {
	eachType(t, func(t *rapid.T, typ reflect.Type, _ bool) {
		v, back := reflect.New(typ), reflect.New(typ)
		fill(t, v.Elem())
		b := encodeOrFatal(t, EncodeLog, v.Interface())
		if err := DecodeLog(b, back.Interface()); err != nil {
			t.Fatalf("decode %s: %v", typ, err)
		}
		if again := encodeOrFatal(t, EncodeLog, back.Interface()); !bytes.Equal(b, again) {
			t.Fatalf("%s: encoded again as\n%x\ninstead of\n%x", typ, again, b)
		}
		// The JSON form shows that it is the same value, not the same loss.
		j, k := encodeOrFatal(t, EncodeJSON, v.Interface()), encodeOrFatal(t, EncodeJSON, back.Interface())
		if !bytes.Equal(j, k) {
			t.Fatalf("%s: came back as\n%s\ninstead of\n%s", typ, k, j)
		}
	})
}

func TestEveryTypeComesBackFromJSONAsItWas(t *testing.T) {
	eachType(t, func(t *rapid.T, typ reflect.Type, request bool) {
		v, back := reflect.New(typ), reflect.New(typ)
		fill(t, v.Elem())
		if request {
			api.ApplyDefaults(v.Interface())
			clearDoorFields(v.Elem())
		}
		b := encodeOrFatal(t, EncodeJSON, v.Interface())
		if request {
			if err := DecodeJSON(b, back.Interface()); err != nil {
				t.Fatalf("decode %s from %s: %v", typ, b, err)
			}
		} else if err := ReadJSON(b, back.Interface()); err != nil {
			t.Fatalf("read %s from %s: %v", typ, b, err)
		}
		want, got := encodeOrFatal(t, EncodeLog, v.Interface()), encodeOrFatal(t, EncodeLog, back.Interface())
		if !bytes.Equal(want, got) {
			t.Fatalf("%s came back from %s as\n%x\ninstead of\n%x", typ, b, got, want)
		}
		if again := encodeOrFatal(t, EncodeJSON, back.Interface()); !bytes.Equal(b, again) {
			t.Fatalf("%s: encoded again as\n%s\ninstead of\n%s", typ, again, b)
		}
	})
}

func TestEveryRequestComesBackFromACBORBodyAsItWas(t *testing.T) {
	eachType(t, func(t *rapid.T, typ reflect.Type, request bool) {
		if !request {
			return
		}
		v, back := reflect.New(typ), reflect.New(typ)
		fill(t, v.Elem())
		api.ApplyDefaults(v.Interface())
		clearDoorFields(v.Elem())
		b := encodeOrFatal(t, EncodeCBOR, v.Interface())
		if err := DecodeCBOR(b, back.Interface()); err != nil {
			t.Fatalf("decode %s: %v", typ, err)
		}
		if again := encodeOrFatal(t, EncodeCBOR, back.Interface()); !bytes.Equal(b, again) {
			t.Fatalf("%s: encoded again as\n%x\ninstead of\n%x", typ, again, b)
		}
	})
}

// clearDoorFields empties what has no JSON form.
func clearDoorFields(v reflect.Value) {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") == "-" {
			v.Field(i).SetZero()
		}
	}
}

func TestAResponseOfANewerServerIsReadWithoutTheFieldsThatAreUnknown(t *testing.T) {
	type newer struct {
		Documents []api.Document `json:"documents" cbor:"1,keyasint"`
		Cursor    string         `json:"cursor" cbor:"2,keyasint"`
		Novelty   string         `json:"novelty" cbor:"99,keyasint"`
	}
	sent := newer{Cursor: "c", Novelty: "n"}
	for _, form := range []struct {
		encode func(any) ([]byte, error)
		read   func([]byte, any) error
	}{{EncodeJSON, ReadJSON}, {EncodeCBOR, ReadCBOR}} {
		b, err := form.encode(sent)
		if err != nil {
			t.Fatal(err)
		}
		var got api.DocumentsListResponse
		if err := form.read(b, &got); err != nil || got.Cursor != "c" {
			t.Errorf("read %q, %v", got.Cursor, err)
		}
	}
}
