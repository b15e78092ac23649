package api

import "reflect"

// ApplyDefaults gives every absent field of *ptr that has a default tag its
// default, through structs, pointers that are set, and slices. It changes
// nothing the second time. ptr is a pointer to a struct of this package.
func ApplyDefaults(ptr any) {
	v := reflect.ValueOf(ptr).Elem()
	applyDefaults(planOf(v.Type()), v, true)
}

// ApplyNestedDefaults is ApplyDefaults for a request that was decoded over its
// defaults: it completes what decoding added (elements of slices, targets of
// pointers, defaults that depend on other fields) and leaves the fields of *ptr
// and of the structs it holds by value alone, so that a zero the caller wrote
// stays zero and is refused by Validate.
func ApplyNestedDefaults(ptr any) {
	v := reflect.ValueOf(ptr).Elem()
	applyDefaults(planOf(v.Type()), v, false)
}

func applyDefaults(p *plan, v reflect.Value, own bool) {
	if !p.defaults {
		return
	}
	if p.hook {
		v.Addr().Interface().(defaulter).SetDefaults()
	}
	for i := range p.fields {
		f := &p.fields[i]
		if !f.nested && !(own && f.hasDefault) {
			continue
		}
		fv := v.Field(f.index)
		if own && f.hasDefault {
			setDefault(f, fv)
		}
		if !f.nested {
			continue
		}
		switch f.shape {
		case shapeStruct:
			applyDefaults(f.sub, fv, own)
		case shapePointer:
			if !fv.IsNil() {
				applyDefaults(f.elem.sub, fv.Elem(), true)
			}
		case shapeSlice:
			for j := range fv.Len() {
				applyDefaults(f.elem.sub, fv.Index(j), true)
			}
		}
	}
}

func setDefault(f *field, v reflect.Value) {
	if f.shape == shapePointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			v.Elem().SetInt(f.elem.defaultInt)
		}
		return
	}
	if !v.IsZero() {
		return
	}
	switch f.shape {
	case shapeString:
		v.SetString(f.defaultStr)
	case shapeInt:
		v.SetInt(f.defaultInt)
	case shapeUint:
		v.SetUint(uint64(f.defaultInt))
	}
}
