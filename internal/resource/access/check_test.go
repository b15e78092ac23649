package access

import (
	"testing"

	"github.com/keyload/keyload/api"
)

func TestAPolicyFollowsOneOfALowerEpochOrItself(t *testing.T) {
	before := &api.Principal{ID: "p", Tenant: "t", PolicyEpoch: 5}
	for name, c := range map[string]struct {
		before, now *api.Principal
		right       bool
	}{
		"the first":                 {nil, before, true},
		"a higher epoch":            {before, &api.Principal{ID: "p", Tenant: "t", PolicyEpoch: 6, Revoked: true}, true},
		"the same again":            {before, &api.Principal{ID: "p", Tenant: "t", PolicyEpoch: 5}, true},
		"another of the same epoch": {before, &api.Principal{ID: "p", Tenant: "t", PolicyEpoch: 5, Revoked: true}, false},
		"a lower epoch":             {before, &api.Principal{ID: "p", Tenant: "t", PolicyEpoch: 4}, false},
	} {
		if why := Follows(c.before, c.now); (why == "") != c.right {
			t.Errorf("%s: %q", name, why)
		}
	}
}
