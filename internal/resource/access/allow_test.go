package access

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
)

func grant(database, resource string, caps ...api.Capability) api.Grant {
	return api.Grant{Database: database, Resource: resource, Capabilities: caps}
}

func TestAllowDecidesByAdministratorRoleAndGrantWithinTheOwnTenant(t *testing.T) {
	read := func(tenant, database, resource string) op.Need {
		return op.Need{Capability: api.CapDocumentsRead, Tenant: tenant, Database: database, Resource: resource}
	}
	of := func(p api.Principal) api.Principal { p.ID, p.Tenant = "p", "acme"; return p }
	none := of(api.Principal{})
	admin := of(api.Principal{Administrator: true})
	reader := of(api.Principal{Roles: []api.Role{api.RoleReader}})
	producer := of(api.Principal{Roles: []api.Role{api.RoleProducer, "no such role"}})
	one := of(api.Principal{Grants: []api.Grant{grant("main", "people", api.CapDocumentsRead)}})
	anyResource := of(api.Principal{Grants: []api.Grant{grant("main", "*", api.CapDocumentsRead)}})
	anyDatabase := of(api.Principal{Grants: []api.Grant{grant("*", "people", api.CapDocumentsRead)}})
	anyCapability := of(api.Principal{Grants: []api.Grant{grant("main", "people", "*")}})
	other := of(api.Principal{Grants: []api.Grant{grant("main", "people", api.CapDocumentsWrite), grant("side", "people", api.CapDocumentsRead)}})
	for name, c := range map[string]struct {
		p    api.Principal
		need op.Need
		want bool
	}{
		"nothing grants nothing":                 {none, read("acme", "main", "people"), false},
		"an administrator may everything":        {admin, read("acme", "main", "people"), true},
		"an administrator of another tenant too": {admin, read("other", "main", "people"), true},
		"an administrator outside every tenant":  {admin, op.Need{Capability: api.CapDiagnose}, true},
		"a role covers the tenant":               {reader, read("acme", "any", "thing"), true},
		"a role ends at the tenant":              {reader, read("other", "any", "thing"), false},
		"a role covers no need without a tenant": {reader, op.Need{Capability: api.CapDiagnose}, false},
		"a role covers what it names":            {producer, read("acme", "main", "people"), true},
		"a role covers nothing else":             {producer, op.Need{Capability: api.CapQueuesConsume, Tenant: "acme"}, false},
		"a grant covers its resource":            {one, read("acme", "main", "people"), true},
		"a grant covers no other resource":       {one, read("acme", "main", "orders"), false},
		"a grant covers no other database":       {one, read("acme", "side", "people"), false},
		"a grant covers no whole database":       {one, read("acme", "main", ""), false},
		"a grant ends at the tenant":             {one, read("other", "main", "people"), false},
		"a star covers every resource":           {anyResource, read("acme", "main", "orders"), true},
		"a star covers a whole database":         {anyResource, read("acme", "main", ""), true},
		"a star covers no other database":        {anyResource, read("acme", "side", "orders"), false},
		"a star covers every database":           {anyDatabase, read("acme", "side", "people"), true},
		"a star covers no other resource":        {anyDatabase, read("acme", "side", "orders"), false},
		"a star covers every capability":         {anyCapability, op.Need{Capability: api.CapSchemaManage, Tenant: "acme", Database: "main", Resource: "people"}, true},
		"grants do not mix":                      {other, read("acme", "main", "people"), false},
		"a resource named * is no pattern":       {one, read("acme", "main", "*"), false},
	} {
		err := Allow(&c.p, c.need)
		if (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !errors.Is(err, &fault.Error{Code: fault.PermissionDenied, Reason: "missing_capability"}) {
			t.Errorf("%s: refused with %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "other") {
			t.Errorf("%s: the refusal names another tenant: %v", name, err)
		}
	}
}

// Every role and capability, against the table of the api package.
func TestARoleAllowsExactlyItsCapabilities(t *testing.T) {
	for _, role := range api.AllRoles() {
		p := &api.Principal{ID: "p", Tenant: "acme", Roles: []api.Role{role}}
		for _, c := range api.AllCapabilities() {
			want := slices.Contains(api.RoleCapabilities(role), c)
			if got := Allow(p, op.Need{Capability: c, Tenant: "acme", Database: "d", Resource: "r"}) == nil; got != want {
				t.Errorf("%s allows %s: %v, want %v", role, c, got, want)
			}
		}
	}
}

func TestTheNeedForAnyMutationIsMetByTheRightToSomeMutationInTheDatabase(t *testing.T) {
	need := op.Need{Capability: api.CapAnyMutation, Tenant: "acme", Database: "main"}
	may := func(p api.Principal) bool {
		p.ID, p.Tenant = "p", "acme"
		return Allow(&p, need) == nil
	}
	changes := api.MutationCapabilities()
	for _, c := range api.AllCapabilities() {
		want := slices.Contains(changes, c)
		if got := may(api.Principal{Grants: []api.Grant{grant("side", "x", c), grant("main", "orders", c)}}); got != want {
			t.Errorf("with %s on one resource: %v", c, got)
		}
		if got := may(api.Principal{Grants: []api.Grant{grant("*", "orders", c)}}); got != want {
			t.Errorf("with %s in every database: %v", c, got)
		}
		if may(api.Principal{Grants: []api.Grant{grant("side", "*", c)}}) {
			t.Errorf("with %s in another database", c)
		}
	}
	for role, want := range map[api.Role]bool{
		api.RoleProducer: true, api.RoleWorker: true, api.RoleReader: false, api.RoleOperator: true, api.RoleAdmin: true, "none": false,
	} {
		if got := may(api.Principal{Roles: []api.Role{role}}); got != want {
			t.Errorf("as %s: %v", role, got)
		}
	}
	if may(api.Principal{}) || !may(api.Principal{Administrator: true}) || !may(api.Principal{Grants: []api.Grant{grant("main", "orders", "*")}}) {
		t.Error("nothing grants it, or an administrator or a star does not")
	}
	err := Allow(&api.Principal{ID: "p", Tenant: "other", Roles: []api.Role{api.RoleAdmin}}, need)
	if !errors.Is(err, &fault.Error{Code: fault.PermissionDenied, Reason: "missing_capability"}) || !strings.Contains(err.Error(), "the capability of any mutation") {
		t.Errorf("of another tenant: %v", err)
	}
}

func TestAPrincipalIsActiveUntilItIsRevokedOrExpires(t *testing.T) {
	const now = 1000
	for name, c := range map[string]struct {
		p      *api.Principal
		reason string
	}{
		"unknown":             {nil, "unknown_principal"},
		"without an end":      {&api.Principal{}, ""},
		"one millisecond on":  {&api.Principal{ExpiresAt: now + 1}, ""},
		"at its end":          {&api.Principal{ExpiresAt: now}, "principal_expired"},
		"past its end":        {&api.Principal{ExpiresAt: now - 1}, "principal_expired"},
		"revoked":             {&api.Principal{Revoked: true}, "principal_revoked"},
		"revoked, an admin":   {&api.Principal{Revoked: true, Administrator: true}, "principal_revoked"},
		"expired, an admin":   {&api.Principal{ExpiresAt: 1, Administrator: true}, "principal_expired"},
		"revoked and expired": {&api.Principal{Revoked: true, ExpiresAt: 1}, "principal_revoked"},
	} {
		err := Active(c.p, now)
		if f := fault.From(err); (f == nil) != (c.reason == "") || f != nil && (f.Code != fault.PermissionDenied || f.Reason != c.reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAProtectedFieldNeedsTheRightThatIsExercised(t *testing.T) {
	r := protected("/salary", "/ssn")
	for _, right := range []api.FieldRight{api.FieldRawRead, api.FieldRawUse, api.FieldWrite} {
		if got := Hidden(may("/salary", right), r, right); !slices.Equal(got, []string{"/ssn"}) {
			t.Errorf("with %s on /salary hidden are %v", right, got)
		}
		for _, other := range []api.FieldRight{api.FieldRawRead, api.FieldRawUse, api.FieldWrite} {
			if other != right && len(Hidden(may("/salary", right), r, other)) != 2 {
				t.Errorf("%s gives %s", right, other)
			}
		}
		if Hidden(&api.Principal{Administrator: true}, r, right) != nil || Hidden(&api.Principal{}, protected(), right) != nil {
			t.Errorf("%s: something is hidden from an administrator, or where nothing is protected", right)
		}
		elsewhere := may("/salary", right)
		elsewhere.FieldGrants[0].Resource = "orders"
		if len(Hidden(elsewhere, r, right)) != 2 {
			t.Errorf("%s on another resource's field is a right on this one's", right)
		}
	}
}

func TestAFilterOnAProtectedFieldOrWhatHoldsItNeedsRawUse(t *testing.T) {
	r := protected("/a/b")
	for path, want := range map[string]bool{"/a/b": false, "/a/b/c": false, "/a": false, "/a/bc": true, "/x": true, "/a/c": true} {
		if err := CheckUse(&api.Principal{}, r, path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
		if err := CheckUse(may("/a/b", api.FieldRawUse), r, path); err != nil {
			t.Errorf("%s with the right: %v", path, err)
		}
	}
}

func TestDifferentPrincipalsHaveDifferentHashes(t *testing.T) {
	seen := map[[16]byte]string{}
	for _, p := range [][2]string{{"", "ab"}, {"a", "b"}, {"ab", ""}, {"a\x00", "b"}, {"a", "\x00b"}, {"a", "b\x00"}, {"", "root"}, {"root", ""}} {
		h := Hash(p[0], p[1])
		if other, taken := seen[h]; taken {
			t.Errorf("%q and %q have one hash", p, other)
		}
		seen[h] = p[0] + "|" + p[1]
	}
}
