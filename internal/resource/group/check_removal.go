package group

import (
	"bytes"
	"slices"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// shardRange is every row of a table in a shard.
func shardRange(shard uint16) table.Range { return table.Range{Prefix: codec.AppendUint16(nil, shard)} }

// removals: the removal of what a deleted group left is due, and goes on among rows
// of the group.
func (x *auditor) removals() error {
	return op.Each(x.Audit, &removals, func(f ref, m *removal) error {
		x.removing[f] = m
		if m.Armed == 0 || m.Armed > x.Now || m.Next != nil && !m.among(f) {
			x.Report("removal", x.where(f), "the removal of its rows is not armed, or goes on at a row of another group")
		}
		return nil
	})
}

// dueRemovals: the removal of a deleted group's rows is due. One of a group that is there is
// told with the group, and nothing makes it due.
func dueRemovals(x *auditor) {
	//keyload:sorted what is implied is summed up, in any order
	for f, m := range x.removing {
		if x.groups[f] == nil {
			x.ImplyDue(table.DueRemoval, f.append(nil), m.Armed)
		}
	}
}

// among says that a removal goes on at a row of its group.
func (m *removal) among(f ref) bool {
	return slices.ContainsFunc(leftRows[:], func(id table.ID) bool { return bytes.HasPrefix(m.Next, under(id, f)) })
}

// left says that a row is one that a deleted group has left, and that its removal
// will come to it.
func (x *auditor) left(f ref, id table.ID, key []byte) bool {
	m := x.removing[f]
	if m == nil || x.groups[f] != nil {
		return false
	}
	if m.Next == nil || !m.among(f) {
		return true
	}
	at, now := slices.Index(leftRows[:], id), slices.Index(leftRows[:], table.ID(m.Next[0]))
	return at > now || at == now && bytes.Compare(key, m.Next) >= 0
}

// beingRemoved passes over index rows of deleted groups.
func (x *auditor) beingRemoved(key, _ []byte) (bool, error) {
	kr := codec.NewKeyReader(key[1:])
	f := readRef(&kr)
	return kr.Err() == nil && x.left(f, table.ID(key[0]), key), nil
}
