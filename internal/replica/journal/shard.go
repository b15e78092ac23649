package journal

import (
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
)

// recentBytes bounds the entries of a shard that are kept in memory, because
// followers and apply read what was just written; the last one always is.
const recentBytes = 4 << 20

// Shard is the log of one shard as it is on disk. Its reading methods are those of
// raft.Storage; a Turn changes it.
type Shard struct {
	store  *kv.Store
	number uint16

	truncated, truncatedTerm uint64   // the last entry that is gone
	sizes                    []uint32 // of the records from truncated+1 on
	bytes                    uint64   // their sum
	state                    *pb.HardState
	install                  *Install

	recent      []*pb.Entry // the last entries
	recentBytes uint64
}

var errHole = fmt.Errorf("%w: an entry is missing", kv.ErrCorrupt)

func (s *Shard) load(snap *kv.Snapshot) error {
	damaged := func(what string, err error) error { return fmt.Errorf("%w: %s: %v", kv.ErrCorrupt, what, err) }
	get := func(kind byte, read func([]byte) error) error {
		b, ok, err := snap.Get(shardKey(kind, s.number))
		if err != nil || !ok {
			return err
		}
		if err := read(b); err != nil {
			return damaged(fmt.Sprintf("its row %q", kind), err)
		}
		return nil
	}
	err := get(kindTruncated, func(b []byte) error { return readNumbers(b, &s.truncated, &s.truncatedTerm) })
	if err == nil {
		err = get(kindState, func(b []byte) error {
			s.state = &pb.HardState{Term: new(uint64), Vote: new(uint64), Commit: new(uint64)}
			return readNumbers(b, s.state.Term, s.state.Vote, s.state.Commit)
		})
	}
	if err == nil {
		err = get(kindInstall, func(b []byte) error { s.install = new(Install); return s.install.decode(b) })
	}
	if err != nil {
		return err
	}
	return snap.Scan(shardKey(kindEntry, s.number), entriesEnd(s.number), false, func(key, value []byte) (bool, error) {
		r := codec.NewKeyReader(key[3:])
		index := r.Uint64()
		if r.End() != nil || index != s.last()+1 {
			return false, errHole
		}
		e, err := decodeEntry(index, value)
		if err != nil {
			return false, damaged(fmt.Sprint("entry ", index), err)
		}
		s.grow(e, len(value))
		return true, nil
	})
}

func (s *Shard) last() uint64 { return s.truncated + uint64(len(s.sizes)) }

// grow adds an entry that is on disk.
func (s *Shard) grow(e *pb.Entry, size int) {
	s.sizes = append(s.sizes, uint32(size))
	s.bytes += uint64(size)
	s.recent = append(s.recent, e)
	if s.recentBytes += uint64(size); s.recentBytes <= recentBytes {
		return
	}
	drop := 0 // half of it, so that what stays is rarely copied
	for ; s.recentBytes > recentBytes/2 && drop < len(s.recent)-1; drop++ {
		s.recentBytes -= uint64(s.sizes[len(s.sizes)-len(s.recent)+drop])
	}
	s.recent = append(make([]*pb.Entry, 0, 2*(len(s.recent)-drop)), s.recent[drop:]...)
}

// cut forgets the entries from an index on, which are no longer on disk.
func (s *Shard) cut(from uint64) {
	for s.last() >= from && len(s.sizes) > 0 {
		size := uint64(s.sizes[len(s.sizes)-1])
		s.sizes = s.sizes[:len(s.sizes)-1]
		s.bytes -= size
		if n := len(s.recent); n > 0 {
			s.recent, s.recentBytes = s.recent[:n-1:n-1], s.recentBytes-size
		}
	}
}

// begin forgets the entries up to an index.
func (s *Shard) begin(index, term uint64) {
	n := int(index - s.truncated)
	for _, size := range s.sizes[:n] {
		s.bytes -= uint64(size)
	}
	for len(s.recent) > 0 && s.recent[0].GetIndex() <= index {
		s.recentBytes -= uint64(s.sizes[s.recent[0].GetIndex()-s.truncated-1])
		s.recent = s.recent[1:]
	}
	s.sizes = append(make([]uint32, 0, len(s.sizes)-n+64), s.sizes[n:]...)
	s.truncated, s.truncatedTerm = index, term
}

// HardState is the stored term, vote and commit index; nil when there is none.
func (s *Shard) HardState() *pb.HardState { return s.state }

// Truncated is the last entry that is gone: what the state must hold. 0 and 0 while
// the log has everything from the first entry on, or nothing.
func (s *Shard) Truncated() (index, term uint64) { return s.truncated, s.truncatedTerm }

// Install is the snapshot whose installation has begun and not ended, if any.
func (s *Shard) Install() (Install, bool) {
	if s.install == nil {
		return Install{}, false
	}
	return *s.install, true
}

// Bytes is the size of the records of all entries.
func (s *Shard) Bytes() uint64 { return s.bytes }

// Kept is the lowest index above which the entries have at most so many bytes.
func (s *Shard) Kept(bytes uint64) uint64 {
	i := len(s.sizes)
	for sum := uint64(0); i > 0; i-- {
		if sum += uint64(s.sizes[i-1]); sum > bytes {
			break
		}
	}
	return s.truncated + uint64(i)
}

// FirstIndex and LastIndex are those of raft.Storage.
func (s *Shard) FirstIndex() (uint64, error) { return s.truncated + 1, nil }
func (s *Shard) LastIndex() (uint64, error)  { return s.last(), nil }

// Term is that of raft.Storage.
func (s *Shard) Term(i uint64) (uint64, error) {
	switch {
	case i == s.truncated:
		return s.truncatedTerm, nil
	case i < s.truncated:
		return 0, raft.ErrCompacted
	case i > s.last():
		return 0, raft.ErrUnavailable
	}
	if from := s.last() - uint64(len(s.recent)); i > from {
		return s.recent[i-from-1].GetTerm(), nil
	}
	es, err := s.read(i, i+1, 0)
	if err != nil {
		return 0, err
	}
	return es[0].GetTerm(), nil
}

// Entries is that of raft.Storage.
func (s *Shard) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	if lo <= s.truncated {
		return nil, raft.ErrCompacted
	}
	if hi > s.last()+1 {
		return nil, raft.ErrUnavailable
	}
	var out []*pb.Entry
	from := s.last() - uint64(len(s.recent)) + 1 // the first in memory
	if lo < from {
		var err error
		if out, err = s.read(lo, min(hi, from), maxSize); err != nil || uint64(len(out)) < min(hi, from)-lo {
			return out, err
		}
		lo = from
	}
	size := uint64(0)
	for _, e := range out {
		size += uint64(len(e.GetData())) + entryOverhead
	}
	for ; lo < hi; lo++ {
		e := s.recent[lo-from]
		if size += uint64(len(e.GetData())) + entryOverhead; size > maxSize && len(out) > 0 {
			break
		}
		out = append(out, e)
	}
	return out, nil
}

// entryOverhead is about what an entry takes beside its data.
const entryOverhead = 24

// read gets entries from disk: one at least, and no more than maxSize bytes beyond it.
func (s *Shard) read(lo, hi, maxSize uint64) (out []*pb.Entry, err error) {
	snap := s.store.NewSnapshot()
	defer snap.Close()
	size, next := uint64(0), lo
	err = snap.Scan(entryKey(s.number, lo), entryKey(s.number, hi), false, func(key, value []byte) (bool, error) {
		r := codec.NewKeyReader(key[3:])
		if r.Uint64() != next {
			return false, errHole
		}
		e, err := decodeEntry(next, value)
		if err != nil {
			return false, fmt.Errorf("%w: entry %d: %v", kv.ErrCorrupt, next, err)
		}
		if size += uint64(len(e.GetData())) + entryOverhead; size > maxSize && len(out) > 0 {
			return false, nil
		}
		out = append(out, e)
		next++
		return true, nil
	})
	if err == nil && len(out) == 0 {
		err = errHole
	}
	return out, err
}
