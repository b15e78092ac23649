package client

import (
	"context"

	"github.com/keyload/keyload/api"
)

// Admin are the calls on the catalog, on principals and keys, and on the node.
type Admin struct{ doer api.Doer }

// ConfigureResource creates a resource, answers it unchanged, or updates it.
func (a Admin) ConfigureResource(ctx context.Context, req *api.ResourcesConfigureRequest) (*api.ResourcesConfigureResponse, error) {
	return api.Call(ctx, a.doer, api.ResourcesConfigure, req)
}

// GetResource reads one catalog entry.
func (a Admin) GetResource(ctx context.Context, req *api.ResourcesGetRequest) (*api.Resource, error) {
	resp, err := api.Call(ctx, a.doer, api.ResourcesGet, req)
	if err != nil {
		return nil, err
	}
	return &resp.Resource, nil
}

// ListResources reads one page of a database's catalog.
func (a Admin) ListResources(ctx context.Context, req *api.ResourcesListRequest) (*api.ResourcesListResponse, error) {
	return api.Call(ctx, a.doer, api.ResourcesList, req)
}

// DeleteResource deletes an empty resource, or with Purge one with content.
func (a Admin) DeleteResource(ctx context.Context, req *api.ResourcesDeleteRequest) (*api.ResourcesDeleteResponse, error) {
	return api.Call(ctx, a.doer, api.ResourcesDelete, req)
}

// ConfigurePrincipal creates a principal or replaces its policy.
func (a Admin) ConfigurePrincipal(ctx context.Context, p api.Principal) (*api.PrincipalsConfigureResponse, error) {
	return api.Call(ctx, a.doer, api.PrincipalsConfigure, &api.PrincipalsConfigureRequest{Principal: p})
}

// GetPrincipal reads the policy of one principal.
func (a Admin) GetPrincipal(ctx context.Context, tenant, id string) (*api.Principal, error) {
	resp, err := api.Call(ctx, a.doer, api.PrincipalsGet, &api.PrincipalsGetRequest{Tenant: tenant, ID: id})
	if err != nil {
		return nil, err
	}
	return &resp.Principal, nil
}

// ListPrincipals reads one page of a tenant's principals.
func (a Admin) ListPrincipals(ctx context.Context, req *api.PrincipalsListRequest) (*api.PrincipalsListResponse, error) {
	return api.Call(ctx, a.doer, api.PrincipalsList, req)
}

// CreateAPIKey makes a key for a principal. The answer is the only place that
// ever shows it.
func (a Admin) CreateAPIKey(ctx context.Context, req *api.APIKeysCreateRequest) (*api.APIKeysCreateResponse, error) {
	return api.Call(ctx, a.doer, api.APIKeysCreate, req)
}

// RevokeAPIKey refuses a key from now on, also on sessions that are open.
func (a Admin) RevokeAPIKey(ctx context.Context, req *api.APIKeysRevokeRequest) (*api.APIKeysRevokeResponse, error) {
	return api.Call(ctx, a.doer, api.APIKeysRevoke, req)
}

// ListAPIKeys reads one page of keys, without their secrets.
func (a Admin) ListAPIKeys(ctx context.Context, req *api.APIKeysListRequest) (*api.APIKeysListResponse, error) {
	return api.Call(ctx, a.doer, api.APIKeysList, req)
}

// Check verifies one shard of the store; shard 0 is that of the catalog. The answer
// says how many there are.
func (a Admin) Check(ctx context.Context, shard int64) (*api.AdminCheckResponse, error) {
	return api.Call(ctx, a.doer, api.AdminCheck, &api.AdminCheckRequest{Shard: shard})
}

// Status reads the state of the node and its shards.
func (a Admin) Status(ctx context.Context) (*api.AdminStatusResponse, error) {
	return api.Call(ctx, a.doer, api.AdminStatus, &api.AdminStatusRequest{})
}

// PauseDispatch stops every delivery of the store, and with refuseIntake what
// comes in too; ResumeDispatch lets it deliver. Administrators only.
func (a Admin) PauseDispatch(ctx context.Context, refuseIntake bool, reason string) (*api.AdminDispatchResponse, error) {
	return api.Call(ctx, a.doer, api.AdminDispatch, &api.AdminDispatchRequest{State: api.DispatchPaused, RefuseIntake: refuseIntake, Reason: reason})
}

// ResumeDispatch lets the store deliver again, and lets go what is due.
func (a Admin) ResumeDispatch(ctx context.Context) (*api.AdminDispatchResponse, error) {
	return api.Call(ctx, a.doer, api.AdminDispatch, &api.AdminDispatchRequest{State: api.DispatchRunning})
}

// RestoreStatus lists what waits for a person after a restore; of the groups it has
// the first page.
func (a Admin) RestoreStatus(ctx context.Context) (*api.AdminRestoreStatusResponse, error) {
	return api.Call(ctx, a.doer, api.AdminRestoreStatus, &api.AdminRestoreStatusRequest{})
}
