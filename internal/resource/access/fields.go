package access

import (
	"slices"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// Hidden lists the protected paths of a resource that the principal lacks the
// right on, in the order of the policies. It is nil for most resources, so
// callers pay nothing where nothing is protected.
func Hidden(p *api.Principal, r *api.Resource, right api.FieldRight) []string {
	if len(r.FieldPolicies) == 0 || p.Administrator {
		return nil
	}
	var out []string
	for _, f := range r.FieldPolicies {
		if !fieldAllowed(p, r, f.Path, right) {
			out = append(out, f.Path)
		}
	}
	return out
}

func fieldAllowed(p *api.Principal, r *api.Resource, path string, right api.FieldRight) bool {
	for _, g := range p.FieldGrants {
		if covers(g.Database, r.Database) && covers(g.Resource, r.Name) && g.Path == path && slices.Contains(g.Rights, right) {
			return true
		}
	}
	return false
}

func covers(pattern, name string) bool { return pattern == "*" || pattern == name }

// Project returns the value as the principal may see it: protected fields it
// may not read are taken out, and their paths are returned. A value without any
// of those fields comes back as it is.
func Project(p *api.Principal, r *api.Resource, value api.JSON) (api.JSON, []string, error) {
	hidden := Hidden(p, r, api.FieldRawRead)
	if hidden == nil {
		return value, nil, nil
	}
	return remove(value, hidden)
}

// CheckWrite refuses a value that holds a protected field the principal may not
// write.
func CheckWrite(p *api.Principal, r *api.Resource, value api.JSON) error {
	hidden := Hidden(p, r, api.FieldWrite)
	if hidden == nil {
		return nil
	}
	_, found, err := remove(value, hidden)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fault.New(fault.PermissionDenied, "field_write", "the field %s of %q is protected and the caller may not write it", found[0], r.Name)
	}
	return nil
}

// CheckUse refuses a filter or order on a protected field the principal may not
// use in one.
func CheckUse(p *api.Principal, r *api.Resource, path string) error {
	for _, h := range Hidden(p, r, api.FieldRawUse) {
		if within(path, h) || within(h, path) {
			return fault.New(fault.PermissionDenied, "field_use", "the field %s of %q is protected and the caller may not filter by it", path, r.Name)
		}
	}
	return nil
}

// within says whether a pointer is at or below another.
func within(path, base string) bool {
	return path == base || (len(path) > len(base) && path[:len(base)] == base && path[len(base)] == '/')
}
