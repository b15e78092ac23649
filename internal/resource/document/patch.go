package document

import (
	"errors"
	"strconv"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/jsontree"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
)

// patch changes fields of a stored document, in order:
//
//	set        stores the value; a field that exists is replaced where it stands;
//	           a new one goes to the end of its object; in an array, the index
//	           that is its length, and "-", append
//	remove     the field must exist; elements after it move up
//	increment  adds an integer within ±2^63; the field is an integer written
//	           without fraction or exponent, or a member of an object that does
//	           not exist yet and counts as 0. The sum is exact or refused
//
// What holds the field must exist; nothing above it is made. The path is never
// the whole document. A patch that does not fit the document is a Conflict.
func (w *writer) patch(c *op.Ctx, _ int, m *api.Mutation) (api.MutationResult, error) {
	req := m.PatchDocument
	col, old, err := find(c, req.Collection, req.ID)
	if err != nil {
		return api.MutationResult{}, err
	}
	if !live(old) {
		return api.MutationResult{}, missing(col, req.ID)
	}
	if err := expect(col, req.ID, old, req.ExpectedRevision); err != nil {
		return api.MutationResult{}, err
	}
	tree, err := jsontree.Parse(old.Body)
	if err != nil {
		return api.MutationResult{}, err
	}
	pr := protect(c.Principal, col.Definition)
	pr.begin(tree)
	for i := range req.Patches {
		if err := applyPatch(tree, i, &req.Patches[i], pr); err != nil {
			return api.MutationResult{}, err
		}
	}
	if err := pr.end(tree); err != nil {
		return api.MutationResult{}, err
	}
	body := tree.Append(make([]byte, 0, len(old.Body)))
	if err := checkSize(tree, body); err != nil {
		return api.MutationResult{}, err
	}
	if err := w.satisfies(col, req.ID, tree, len(body)); err != nil {
		return api.MutationResult{}, err
	}
	return write(c, "patchDocument", col, req.ID, old, body)
}

// checkSize refuses a document that patches made too large or too deep.
func checkSize(tree *jsontree.Node, body []byte) error {
	if len(body) > limits.DocumentBytes {
		return fault.New(fault.Validation, "document_too_large", "the document would have %d bytes, at most %d", len(body), limits.DocumentBytes).
			With("maxBytes", "%d", limits.DocumentBytes)
	}
	if d := tree.Depth(); d > limits.JSONDepth {
		return fault.New(fault.Validation, "document_too_deep", "the document would have %d levels of objects and arrays, at most %d", d, limits.JSONDepth).
			With("maxDepth", "%d", limits.JSONDepth)
	}
	return nil
}

func applyPatch(tree *jsontree.Node, i int, p *api.Patch, pr *protection) error {
	pointer, err := jsontree.ParsePointer(p.Path)
	if err != nil || len(pointer) == 0 {
		return fault.Invalid("/patches/"+strconv.Itoa(i)+"/path", "must be a JSON pointer to a field")
	}
	var value *jsontree.Node
	if p.Op != api.PatchRemove {
		if value, err = jsontree.Parse(p.Value); err != nil {
			return fault.Invalid("/patches/"+strconv.Itoa(i)+"/value", "must be one JSON value")
		}
	}
	if err := pr.patch(tree, pointer, value); err != nil {
		return err
	}
	switch p.Op {
	case api.PatchSet:
		err = tree.Set(pointer, value)
	case api.PatchRemove:
		err = tree.Delete(pointer)
	default:
		err = increment(tree, pointer, value)
	}
	return misfit(err, i, p)
}

// Why a field cannot be incremented.
var (
	errAmount     = errors.New("must be an integer within ±2^63, written without fraction or exponent")
	errNotInteger = errors.New("the field is not an integer within ±2^63, written without fraction or exponent")
	errOverflow   = errors.New("the sum is beyond ±2^63")
)

func increment(tree *jsontree.Node, p jsontree.Pointer, value *jsontree.Node) error {
	amount, ok := integer(value)
	if !ok {
		return errAmount
	}
	field := tree.Find(p)
	if field == nil {
		holder := tree.Find(p[:len(p)-1])
		if holder != nil && holder.Kind == jsontree.Array {
			return jsontree.ErrNoField
		}
		return tree.Set(p, number(amount))
	}
	before, ok := integer(field)
	if !ok {
		return errNotInteger
	}
	sum := before + amount
	if (sum > before) != (amount > 0) && amount != 0 {
		return errOverflow
	}
	return tree.Set(p, number(sum))
}

func number(n int64) *jsontree.Node {
	return &jsontree.Node{Kind: jsontree.Number, Raw: strconv.AppendInt(nil, n, 10)}
}

func integer(n *jsontree.Node) (int64, bool) {
	if n.Kind != jsontree.Number {
		return 0, false
	}
	i, err := strconv.ParseInt(string(n.Raw), 10, 64)
	return i, err == nil
}

// misfit makes the refusal of a patch that does not fit the document.
func misfit(err error, i int, p *api.Patch) error {
	var reason string
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errAmount):
		return fault.Invalid("/patches/"+strconv.Itoa(i)+"/value", "%v", err)
	case errors.Is(err, jsontree.ErrNoField):
		reason = "no_such_field"
	case errors.Is(err, jsontree.ErrNoParent):
		reason = "no_such_parent"
	case errors.Is(err, jsontree.ErrNoPlace):
		reason = "no_such_place"
	case errors.Is(err, errNotInteger):
		reason = "not_an_integer"
	case errors.Is(err, errOverflow):
		reason = "integer_overflow"
	default:
		return err
	}
	return fault.New(fault.Conflict, reason, "patch %d cannot %s %s: %s", i, p.Op, strings.ToValidUTF8(p.Path, ""), err).With("patch", "%d", i)
}
