package access

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Resource is what this package brings to the registry.
func Resource() op.Resource {
	return op.Resource{
		Name:   "access",
		Tables: []table.Info{principals.Info(), keys.Info(), keyTenants.Info()},
		Handlers: []op.Handler{
			op.Handle(api.PrincipalsConfigure, op.Command[api.PrincipalsConfigureRequest, api.PrincipalsConfigureResponse]{Apply: configure, Urgent: true}), // it revokes
			op.Ask(api.PrincipalsGet, op.Query[api.PrincipalsGetRequest, api.PrincipalsGetResponse]{Run: get}),
			op.Ask(api.PrincipalsList, op.Query[api.PrincipalsListRequest, api.PrincipalsListResponse]{Run: list}),
			op.Handle(api.APIKeysCreate, op.Command[api.APIKeysCreateRequest, api.APIKeysCreateResponse]{
				Prepare: makeKey, Apply: createKey, Finish: showKey,
			}),
			op.Handle(api.APIKeysRevoke, op.Command[api.APIKeysRevokeRequest, api.APIKeysRevokeResponse]{Apply: revokeKey, Urgent: true}),
			op.Ask(api.APIKeysList, op.Query[api.APIKeysListRequest, api.APIKeysListResponse]{Run: listKeys}),
		},
		Check: check,
	}
}
