package document

import (
	"bytes"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/jsontree"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/document/store"
)

// protection is what the caller may not write: the value at each of these places
// stays what it is, absent included, whatever the caller does.
//
//	put     refused when the new document holds the field, even with an equal
//	        value (that would tell whether a guess is right), and when the stored
//	        one does: it would be erased. patchDocument changes the rest.
//	patch   refused at or below the field, above it where it exists or would
//	        come to exist, and where elements that move up would change it
//	delete  refused when the document holds the field: a new document under the
//	        id would be without it
type protection struct {
	def    *api.Resource
	caller *api.Principal
	fields []protectedField
}

type protectedField struct {
	path    string
	pointer jsontree.Pointer
	before  []byte // value when the patch began; nil is absent
}

// protect lists the fields the caller may not write; usually there are none.
func protect(p *api.Principal, def *api.Resource) *protection {
	pr := &protection{def: def, caller: p}
	for _, path := range access.Hidden(p, def, api.FieldWrite) {
		if pointer, err := jsontree.ParsePointer(path); err == nil { // checked when configured
			pr.fields = append(pr.fields, protectedField{path: path, pointer: pointer})
		}
	}
	return pr
}

func (pr *protection) refuse(path, detail string) error {
	return fault.New(fault.PermissionDenied, "field_write", "the field %s of collection %q is protected and the caller may not write it%s", path, pr.def.Name, detail)
}

// put refuses a new document that holds a protected field or erases one.
func (pr *protection) put(old *store.Document, body []byte) error {
	if len(pr.fields) == 0 {
		return nil
	}
	if err := access.CheckWrite(pr.caller, pr.def, body); err != nil {
		return err
	}
	return pr.erase(old)
}

// erase refuses to lose the protected fields of a stored document.
func (pr *protection) erase(old *store.Document) error {
	if len(pr.fields) == 0 || !live(old) {
		return nil
	}
	tree, err := jsontree.Parse(old.Body)
	if err != nil {
		return err
	}
	for _, f := range pr.fields {
		if tree.Find(f.pointer) != nil {
			return pr.refuse(f.path, "; the stored document holds it and would lose it. Use patchDocument for the other fields")
		}
	}
	return nil
}

// begin remembers the protected values before patches are applied.
func (pr *protection) begin(tree *jsontree.Node) {
	for i := range pr.fields {
		f := &pr.fields[i]
		if n := tree.Find(f.pointer); n != nil {
			f.before = n.Append([]byte{})
		}
	}
}

// patch refuses one patch at p; value is nil when it removes.
func (pr *protection) patch(tree *jsontree.Node, p jsontree.Pointer, value *jsontree.Node) error {
	for _, f := range pr.fields {
		if _, below := p.Below(f.pointer); below {
			return pr.refuse(f.path, "")
		}
		rest, above := f.pointer.Below(p)
		if above && (tree.Find(f.pointer) != nil || value != nil && value.Find(rest) != nil) {
			return pr.refuse(f.path, ", so it may not replace or remove what holds it")
		}
	}
	return nil
}

// end refuses patches that changed a protected value by moving elements.
func (pr *protection) end(tree *jsontree.Node) error {
	for _, f := range pr.fields {
		n := tree.Find(f.pointer)
		if (n == nil) != (f.before == nil) || n != nil && !bytes.Equal(n.Append(nil), f.before) {
			return pr.refuse(f.path, ", so it may not move it")
		}
	}
	return nil
}
