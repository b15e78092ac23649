package system

import (
	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/resource/group"
	"github.com/keyload/keyload/internal/resource/lineage"
)

// earlierShown is how many earlier histories an answer lists.
const earlierShown = 16

// restoreStatus answers from one snapshot of all shards. It reads every group's
// definition and head once, to count them.
func restoreStatus(v *op.View, req *api.AdminRestoreStatusRequest) (*api.AdminRestoreStatusResponse, error) {
	id, _, err := ReadIdentity(v.R)
	if err != nil {
		return nil, err
	}
	resp := &api.AdminRestoreStatusResponse{
		Incarnation: uuid.UUID(id.Incarnation).String(), Earlier: []api.EarlierHistory{}, Groups: []api.PausedGroup{},
	}
	if resp.Dispatch, err = dispatch.State(v.R, CatalogShard); err != nil {
		return nil, err
	}
	if resp.APIKeys, err = access.ActiveKeys(v.R, CatalogShard, v.Now); err != nil {
		return nil, err
	}
	if err := earlier(v, id.Shards, resp); err != nil {
		return nil, err
	}
	return resp, paused(v, id.Shards, req, resp)
}

// paused counts the paused groups of every shard, and describes a page of them.
func paused(v *op.View, shards uint16, req *api.AdminRestoreStatusRequest, resp *api.AdminRestoreStatusResponse) error {
	page := op.NewPage(v, "pausedGroups", nil, req.Limit)
	from, err := page.Begin(req.Cursor)
	if err != nil {
		return err
	}
	for shard := CatalogShard + 1; shard <= shards; shard++ {
		all, byRestore, err := group.Paused(v.R, shard, from, func(key []byte, describe func() (*api.PausedGroup, error)) (bool, error) {
			if page.Full() {
				if resp.Cursor == "" {
					resp.Cursor = page.Next(key)
				}
				return false, nil
			}
			page.Add()
			g, err := describe()
			if err == nil {
				resp.Groups = append(resp.Groups, *g)
			}
			return err == nil, err
		})
		if err != nil {
			return err
		}
		resp.PausedGroups, resp.PausedByRestore = resp.PausedGroups+all, resp.PausedByRestore+byRestore
	}
	return nil
}

// earlier lists the histories before the present one. Every restore ends one in
// every shard, so the n-th last of each shard belong together.
func earlier(v *op.View, shards uint16, resp *api.AdminRestoreStatusResponse) error {
	for shard := CatalogShard; shard <= shards; shard++ {
		ended, err := lineage.Latest(v.R, shard, earlierShown)
		if err != nil {
			return err
		}
		for i, e := range ended {
			if i == len(resp.Earlier) {
				resp.Earlier = append(resp.Earlier, api.EarlierHistory{
					Incarnation: uuid.UUID(e.Incarnation).String(), EndedAt: api.Time(e.At), Positions: make([]uint64, shards+1),
				})
			}
			resp.Earlier[i].Positions[shard] = e.Last
		}
	}
	return nil
}
