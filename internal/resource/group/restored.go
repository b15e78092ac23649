package group

import (
	"bytes"
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/source"
)

// restored is the failure code of a group that a restore paused.
const restored = api.PausedByRestore

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

// Paused counts the paused groups of a shard, and of them those that a restore
// paused. It calls visit for those from a key of their definitions on, nil for all,
// until visit says stop; describing one takes several reads, which those that visit
// does not want do not cost.
func Paused(r kv.Reader, shard uint16, from []byte, visit func(key []byte, describe func() (*api.PausedGroup, error)) (more bool, err error)) (all, byRestore int64, err error) {
	visiting := true
	err = definitions.Scan(r, shardRange(shard), func(n name, def *definition) (bool, error) {
		h, ok, err := heads.Get(r, def.ref(n))
		if err != nil || !ok || !h.Paused {
			return err == nil, err
		}
		res, err := directory.ByID(r, shard, n.Source.Owner.Resource)
		if err != nil || res == nil { // its source is being deleted
			return err == nil, err
		}
		all++
		if h.FailureCode == restored {
			byRestore++
		}
		if key := n.append(nil); visiting && bytes.Compare(key, from) >= 0 {
			visiting, err = visit(key, func() (*api.PausedGroup, error) { return describe(r, n, &h, res) })
		}
		return err == nil, err
	})
	return all, byRestore, err
}

// describe tells of a paused group.
func describe(r kv.Reader, n name, h *head, res *api.Resource) (*api.PausedGroup, error) {
	o := n.Source.Owner
	place, ok, err := partitions.Find(r, o.Space)
	if err == nil && !ok {
		err = fmt.Errorf("%w: no partition is named by its hash %x", kv.ErrCorrupt, o.Partition)
	}
	if err != nil {
		return nil, err
	}
	src, err := source.Look(&op.Scope{R: r, Space: o.Space}, n.Source)
	if err != nil {
		return nil, err
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
	}, nil
}
