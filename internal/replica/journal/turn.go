package journal

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/keyload/keyload/internal/kv"
)

// Turn is what the shards of a node write at one time: one batch, and one sync when
// any of it must outlive a power loss. It is used once, with at most one change of a
// kind for a shard; nothing of it shows before Commit has returned nil.
type Turn struct {
	j     *Journal
	batch *kv.Batch
	sync  bool
	done  []func() // what Commit changes in memory
	err   error
}

// Begin makes an empty turn. Commit it.
func (j *Journal) Begin() *Turn { return &Turn{j: j, batch: kv.NewBatch(j.store)} }

// Append adds entries to a shard's log. They follow its last one, or replace what
// stands from the first of them on.
func (t *Turn) Append(shard uint16, entries []*pb.Entry) {
	if len(entries) == 0 {
		return
	}
	s := t.j.shards[shard]
	first, last := entries[0].GetIndex(), entries[len(entries)-1].GetIndex()
	if first <= s.truncated || first > s.last()+1 || last-first != uint64(len(entries)-1) {
		t.err = fmt.Errorf("journal: entries %d to %d of shard %d do not follow %d to %d", first, last, shard, s.truncated+1, s.last())
		return
	}
	if last < s.last() { // a range deletion for every append would slow all reads
		t.batch.DeleteRange(entryKey(shard, last+1), entryKey(shard, s.last()+1))
	}
	sizes := make([]int, len(entries))
	for i, e := range entries {
		record := encodeEntry(e)
		sizes[i] = len(record)
		t.batch.Set(entryKey(shard, e.GetIndex()), record)
	}
	t.sync = true
	t.done = append(t.done, func() {
		s.cut(first)
		for i, e := range entries {
			s.grow(e, sizes[i])
		}
	})
}

// SetState stores term, vote and commit index of a shard. Only the first two are
// worth a sync.
func (t *Turn) SetState(shard uint16, state *pb.HardState) {
	s := t.j.shards[shard]
	if s.state.GetTerm() != state.GetTerm() || s.state.GetVote() != state.GetVote() {
		t.sync = true
	}
	t.batch.Set(shardKey(kindState, shard), numbers(state.GetTerm(), state.GetVote(), state.GetCommit()))
	t.done = append(t.done, func() { s.state = state })
}

// Truncate removes the entries of a shard up to an index, which the state must hold
// on disk. It needs no sync.
func (t *Turn) Truncate(shard uint16, index uint64) {
	s := t.j.shards[shard]
	if index <= s.truncated {
		return
	}
	term, err := s.Term(index)
	if err != nil {
		t.err = fmt.Errorf("journal: shard %d cannot begin after %d: %w", shard, index, err)
		return
	}
	t.batch.DeleteRange(entryKey(shard, s.truncated+1), entryKey(shard, index+1))
	t.batch.Set(shardKey(kindTruncated, shard), numbers(index, term))
	t.done = append(t.done, func() { s.begin(index, term) })
}

// Install notes that a snapshot is about to replace the state of a shard.
func (t *Turn) Install(shard uint16, i Install) {
	s := t.j.shards[shard]
	t.batch.Set(shardKey(kindInstall, shard), i.encode())
	t.sync = true
	t.done = append(t.done, func() { s.install = &i })
}

// Reset lets the log of a shard begin anew after an entry which the state holds on
// disk, and ends an installation. What is appended then belongs in a later turn.
func (t *Turn) Reset(shard uint16, index, term uint64) {
	s := t.j.shards[shard]
	t.batch.DeleteRange(shardKey(kindEntry, shard), entriesEnd(shard))
	t.batch.Set(shardKey(kindTruncated, shard), numbers(index, term))
	t.batch.Delete(shardKey(kindInstall, shard))
	t.sync = true
	t.done = append(t.done, func() {
		s.truncated, s.truncatedTerm = index, term
		s.sizes, s.bytes, s.recent, s.recentBytes, s.install = nil, 0, nil, 0, nil
	})
}

// SetIdentity says whose journal it is.
func (t *Turn) SetIdentity(id Identity) {
	t.batch.Set([]byte{kindIdentity}, id.encode())
	t.sync = true
	t.done = append(t.done, func() { t.j.identity = &id })
}

// Commit writes the turn. After an error nobody knows what of it is on disk, and the
// journal must not be used again until it was opened anew.
func (t *Turn) Commit() error {
	if t.err != nil {
		t.batch.Drop()
		return t.err
	}
	if t.batch.Empty() {
		return t.batch.Drop()
	}
	if err := t.batch.Commit(t.sync); err != nil {
		return err
	}
	for _, change := range t.done {
		change()
	}
	return nil
}
