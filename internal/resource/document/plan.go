package document

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/document/store"
)

// plan says how a query reads: a span of an index, or of the documents by id,
// and what is left to compare in each document.
type plan struct {
	index *store.Index // nil: by id
	span  store.Span
	rest  []condition
	empty bool // no value can satisfy the conditions

	equal   int  // leading fields of the index that are fixed
	ranged  bool // the field after them has bounds
	ordered bool // the index gives the order that was asked for
}

// served says whether the index does more than list everything.
func (p *plan) served() bool { return p.equal > 0 || p.ranged }

// choose finds the plan. Errors: Validation when no index fits and a full scan
// is not allowed, PermissionDenied for protected fields the caller may not use.
func choose(caller *api.Principal, col *store.Collection, req *api.DocumentsQueryRequest) (plan, error) {
	where, err := conditions(req.Where)
	if err != nil {
		return plan{}, err
	}
	for _, c := range where {
		if err := access.CheckUse(caller, col.Definition, c.path); err != nil {
			return plan{}, err
		}
	}
	if req.OrderBy != "" {
		if err := access.CheckUse(caller, col.Definition, req.OrderBy); err != nil {
			return plan{}, err
		}
	}
	best, err := bestOf(caller, col, req, where)
	if err != nil {
		return plan{}, err
	}
	if best == nil {
		if req.OrderBy != "" {
			return plan{}, noOrder(col, req)
		}
		if !req.AllowFullScan {
			return plan{}, noIndex(col)
		}
		best = &plan{rest: where}
	}
	if best.index != nil && !best.served() && len(where) > 0 && !req.AllowFullScan {
		return plan{}, noIndex(col)
	}
	best.span.Reverse = req.Descending
	return *best, nil
}

// bestOf is the plan over the named index, or over the index that fixes most;
// nil when none fits.
func bestOf(caller *api.Principal, col *store.Collection, req *api.DocumentsQueryRequest, where []condition) (*plan, error) {
	var best *plan
	for i := range col.Indexes {
		ix := &col.Indexes[i]
		if req.Index != "" && req.Index != ix.Definition.Name {
			continue
		}
		if err := mayUse(caller, col, ix); err != nil {
			if req.Index != "" {
				return nil, err
			}
			continue
		}
		p := fit(ix, where, req.OrderBy)
		switch {
		case !p.ordered:
			if req.Index != "" {
				return nil, noOrder(col, req)
			}
		case req.Index != "":
			return p, nil
		case !p.served() && req.OrderBy == "":
		case best == nil || p.equal > best.equal || p.equal == best.equal && p.ranged && !best.ranged:
			best = p
		}
	}
	if req.Index != "" {
		return nil, fault.New(fault.Validation, "unknown_index", "collection %q has no index %q; it has %s", col.Definition.Name, req.Index, names(col))
	}
	return best, nil
}

// mayUse refuses an index whose order would tell of fields the caller may not
// use.
func mayUse(caller *api.Principal, col *store.Collection, ix *store.Index) error {
	for _, path := range ix.Definition.Paths {
		if err := access.CheckUse(caller, col.Definition, path); err != nil {
			return err
		}
	}
	return nil
}

// fit lays the conditions over an index: equal ones on its leading fields, then
// all bounds on the next field. What they do not cover is left to compare.
func fit(ix *store.Index, where []condition, orderBy string) *plan {
	p := &plan{index: ix, rest: slices.Clone(where)}
	paths := ix.Definition.Paths
	var fixed []byte
	for ; p.equal < len(paths); p.equal++ {
		i := slices.IndexFunc(p.rest, func(c condition) bool { return c.equal && c.path == paths[p.equal] })
		if i < 0 {
			break
		}
		fixed = append(fixed, p.rest[i].in.Lower...)
		p.rest = slices.Delete(p.rest, i, i+1)
	}
	p.ordered = orderBy == "" || slices.Contains(paths[:min(p.equal+1, len(paths))], orderBy)
	p.span = store.Under(fixed)
	if p.equal == len(paths) {
		return p
	}
	left := p.rest[:0]
	for _, c := range p.rest {
		if c.path != paths[p.equal] {
			left = append(left, c)
			continue
		}
		p.ranged = true
		if lower := slices.Concat(fixed, c.in.Lower); bytes.Compare(lower, p.span.Lower) > 0 {
			p.span.Lower = lower
		}
		if upper := slices.Concat(fixed, c.in.Upper); p.span.Upper == nil || bytes.Compare(upper, p.span.Upper) < 0 {
			p.span.Upper = upper
		}
	}
	p.rest = left
	p.empty = p.span.Upper != nil && bytes.Compare(p.span.Lower, p.span.Upper) >= 0
	return p
}

func names(col *store.Collection) string {
	if len(col.Indexes) == 0 {
		return "none"
	}
	text := ""
	for i, ix := range col.Indexes {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%q over %s", ix.Definition.Name, pathsOf(ix.Definition.Paths))
	}
	return text
}

func pathsOf(paths []string) string {
	text := ""
	for i, p := range paths {
		if i > 0 {
			text += " "
		}
		text += p
	}
	return text
}

func noIndex(col *store.Collection) error {
	return fault.New(fault.Validation, "no_index",
		"no index of collection %q fits these conditions (its indexes: %s); compare the leading field of an index, or set allowFullScan to look at every document", col.Definition.Name, names(col))
}

func noOrder(col *store.Collection, req *api.DocumentsQueryRequest) error {
	return fault.New(fault.Validation, "no_index_for_order",
		"no index that may be used orders by %s (the indexes of collection %q: %s); the field must be the first of an index, or follow fields that are compared with eq", req.OrderBy, col.Definition.Name, names(col))
}
