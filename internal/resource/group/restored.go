package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/source"
)

// restored is the failure code of a group that a restore paused.
const restored = "restored"

// PauseRestored pauses the groups of c's shard, at most budget of them after the
// group that after names, in the order of their keys; nil begins. It returns
// where to go on, nil at the end, and how many it paused. Nothing but the head of
// a group changes: one that was paused already keeps why.
func PauseRestored(c *op.Ctx, after []byte, budget int) (next []byte, paused int, err error) {
	type found struct {
		ref ref
		h   head
	}
	var all []found
	rg := shardRange(c.Space.Shard)
	if after != nil {
		rg.From = append(append([]byte(nil), after...), 0)
	}
	err = heads.Scan(c.Tx, rg, func(f ref, h *head) (bool, error) {
		all = append(all, found{f, *h})
		return len(all) < budget, nil
	})
	if err != nil {
		return nil, 0, err
	}
	for i := range all {
		f := &all[i]
		if !f.h.Paused {
			f.h.Paused, f.h.FailureCode, f.h.FailedPosition = true, restored, 0
			heads.Put(c.Tx, f.ref, &f.h)
			paused++
		}
	}
	if len(all) == budget {
		next = all[budget-1].ref.append(nil)
	}
	return next, paused, nil
}

// Paused visits the paused groups of a shard until visit says stop.
func Paused(r kv.Reader, shard uint16, visit func(*api.PausedGroup) (more bool, err error)) error {
	return definitions.Scan(r, shardRange(shard), func(n name, def *definition) (bool, error) {
		h, ok, err := heads.Get(r, def.ref(n))
		if err != nil || !ok || !h.Paused {
			return err == nil, err
		}
		g, ok, err := describe(r, n, &h)
		if err != nil || !ok {
			return err == nil, err
		}
		return visit(g)
	})
}

// describe tells of a paused group; false when its source is being deleted.
func describe(r kv.Reader, n name, h *head) (*api.PausedGroup, bool, error) {
	o := n.Source.Owner
	res, err := directory.ByID(r, o.Shard, o.Resource)
	if err != nil || res == nil {
		return nil, false, err
	}
	place, ok, err := partitions.Find(r, o.Space)
	if err != nil || !ok {
		return nil, false, err
	}
	src, err := source.Look(&op.Scope{R: r, Space: o.Space}, n.Source)
	if err != nil {
		return nil, false, err
	}
	kind := api.SourceTopic
	if res.Kind == api.KindStreamSet {
		kind = api.SourceStream
	}
	return &api.PausedGroup{
		Group: api.GroupRef{
			Source: api.SourceRef{Partition: place, Resource: res.Name, Kind: kind, StreamID: n.Source.StreamID, Generation: n.Source.Generation},
			Group:  n.Group,
		},
		Generation: h.Generation, Checkpoint: h.Checkpoint, Tail: src.Tail, FailureCode: h.FailureCode,
	}, true, nil
}
