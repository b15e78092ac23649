package access

import (
	"errors"
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// protected is a resource with the given protected fields.
func protected(paths ...string) *api.Resource {
	r := &api.Resource{Database: "main", Name: "people"}
	for _, p := range paths {
		r.FieldPolicies = append(r.FieldPolicies, api.FieldPolicy{Path: p})
	}
	return r
}

func may(path string, rights ...api.FieldRight) *api.Principal {
	return &api.Principal{ID: "p", Tenant: "default", FieldGrants: []api.FieldGrant{{Database: "*", Resource: "people", Path: path, Rights: rights}}}
}

func TestProjectingTakesOutProtectedFieldsAndRoundsNothing(t *testing.T) {
	r := protected("/salary", "/notes/0/text", "/a~1b")
	const value = `{"id":9007199254740993,"salary":18446744073709551617,"notes":[{"text":"x","at":1.50},{"text":"y"}],"a/b":1}`
	for _, c := range []struct {
		name   string
		caller *api.Principal
		want   string
		found  []string
	}{
		{"without rights", &api.Principal{ID: "p"}, `{"id":9007199254740993,"notes":[{"at":1.50},{"text":"y"}]}`, []string{"/salary", "/notes/0/text", "/a~1b"}},
		{"with one right", may("/salary", api.FieldRawRead), `{"id":9007199254740993,"salary":18446744073709551617,"notes":[{"at":1.50},{"text":"y"}]}`, []string{"/notes/0/text", "/a~1b"}},
		{"with another right", may("/salary", api.FieldWrite, api.FieldRawUse), `{"id":9007199254740993,"notes":[{"at":1.50},{"text":"y"}]}`, []string{"/salary", "/notes/0/text", "/a~1b"}},
		{"as administrator", &api.Principal{Administrator: true}, value, nil},
	} {
		got, found, err := Project(c.caller, r, api.JSON(value))
		if err != nil || string(got) != c.want || !slices.Equal(found, c.found) {
			t.Errorf("%s: %s, %q, %v; want %s, %q", c.name, got, found, err, c.want, c.found)
		}
	}
	for _, plain := range []string{`"salary"`, `5`, `{"other":1}`, `[]`} {
		if got, found, err := Project(&api.Principal{}, r, api.JSON(plain)); err != nil || string(got) != plain || found != nil {
			t.Errorf("%s becomes %s, %q, %v", plain, got, found, err)
		}
	}
}

func TestWritingAProtectedFieldNeedsTheRight(t *testing.T) {
	r := protected("/salary")
	for _, c := range []struct {
		caller *api.Principal
		value  string
		denied bool
	}{
		{&api.Principal{}, `{"salary":1}`, true},
		{&api.Principal{}, `{"salary":null}`, true},
		{&api.Principal{}, `{"\u0073alary":1}`, true},
		{&api.Principal{}, `{"name":"salary"}`, false},
		{may("/salary", api.FieldRawRead), `{"salary":1}`, true},
		{may("/salary", api.FieldWrite), `{"salary":1}`, false},
	} {
		err := CheckWrite(c.caller, r, api.JSON(c.value))
		if denied := errors.Is(err, fault.New(fault.PermissionDenied, "field_write", "")); denied != c.denied {
			t.Errorf("writing %s: %v, want a refusal: %v", c.value, err, c.denied)
		}
	}
}

func TestFilteringByAProtectedFieldOrItsParentNeedsTheRight(t *testing.T) {
	r := protected("/a/b")
	for path, denied := range map[string]bool{"/a/b": true, "/a": true, "/a/b/c": true, "/a/bc": false, "/ab": false, "/c": false} {
		err := CheckUse(&api.Principal{}, r, path)
		if got := errors.Is(err, fault.New(fault.PermissionDenied, "field_use", "")); got != denied {
			t.Errorf("filtering by %s: %v, want a refusal: %v", path, err, denied)
		}
		if err := CheckUse(may("/a/b", api.FieldRawUse), r, path); err != nil {
			t.Errorf("filtering by %s with the right: %v", path, err)
		}
	}
}
