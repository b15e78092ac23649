package op

import (
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/keyload/keyload/internal/table"
)

// Many rows follow from others: an index entry from its message, a due row from
// the head that is armed. A check says for every row it reads which rows follow
// from it (Imply), and which tables hold nothing else (Derives). The audit sums
// up both what is implied and what is stored, in buckets by a hash of the key, and
// compares the sums; so neither side is held in memory, and nothing is looked up.
// Only where sums differ a second pass collects the rows of those buckets
// (differ.go). What a repair writes is what that pass found to differ, so a check
// and a repair cannot disagree.

// Derived is a table, or the part of one, whose rows follow from others.
type Derived struct {
	Table table.Info
	// Invariant names what is violated where they do not; empty is "index".
	Invariant string
	// Skip passes over stored rows that follow from none, or are being removed;
	// nil passes over none.
	Skip func(key, value []byte) (bool, error)
	// Keep says of a stored row that it is left as it is though it should be another
	// (implied is nil when none should be there): it is evidence of its own, which a
	// person must weigh. nil keeps none. stored is nil where none is: then it says
	// whether the row that is implied is left out.
	Keep func(key, stored, implied []byte) bool
}

// buckets is how finely sums are kept. It is a power of two.
const buckets = 1 << 10

// sum is of rows in any order.
type sum struct {
	hash, rows, bytes uint64
}

func (s *sum) add(hash uint64, bytes int) {
	s.hash += hash
	s.rows++
	s.bytes += uint64(bytes)
}

// derivation is what is known of one derived table.
type derivation struct {
	Derived
	resource int // whose check declared it; -1 is the audit itself
	implied  sums
	stored   sums
}

// sums are kept by bucket; nil is of no row.
type sums []sum

func (s *sums) add(key, value []byte) {
	if *s == nil {
		*s = make(sums, buckets)
	}
	bucket, hash := hashOf(key, value)
	(*s)[bucket].add(hash, len(key)+len(value))
}

func (s sums) at(bucket int) sum {
	if s == nil {
		return sum{}
	}
	return s[bucket]
}

// Derives declares a table whose rows follow from others. A check declares it
// before it implies any row of it.
func (a *Audit) Derives(d Derived) {
	if d.Invariant == "" {
		d.Invariant = "index"
	}
	a.declare(d, a.current)
}

func (a *Audit) declare(d Derived, resource int) {
	a.read[d.Table.ID] = true
	a.derived[d.Table.ID] = &derivation{Derived: d, resource: resource}
	a.order = append(a.order, d.Table.ID)
}

// DerivedTables lists the tables that checks have declared, after Run.
func (a *Audit) DerivedTables() (out []table.Info) {
	for _, id := range a.order {
		out = append(out, a.derived[id].Table)
	}
	return out
}

// Imply says that a row follows from what was read.
func Imply[K, V any](a *Audit, t *table.Table[K, V], k K, v *V) {
	a.key = t.Key(append(a.key[:0], byte(t.ID)), k)
	a.value = t.Encode(a.value[:0], v)
	a.ImplyRaw(t.ID, a.key, a.value)
}

// ImplyDue says that the owner of a kind of due rows is armed; 0 is not armed.
func (a *Audit) ImplyDue(kind table.DueKind, owner []byte, armed int64) {
	if armed != 0 {
		Imply(a, &table.DueRows, table.DueKey{Shard: a.Space.Shard, When: armed, Kind: kind, Owner: string(owner)}, &table.None{})
	}
}

// ImplyRaw is Imply of bytes, which it does not keep.
func (a *Audit) ImplyRaw(id table.ID, key, value []byte) {
	d := a.derived[id]
	if d == nil {
		if id != table.Due {
			panic("op: a row is implied of a table that is not declared as derived")
		}
		a.declare(Derived{Table: table.DueRows.Info(), Invariant: "due"}, -1)
		d = a.derived[id]
	}
	if a.picked != nil {
		a.picked.imply(id, key, value)
		return
	}
	d.implied.add(key, value)
}

// hashOf is the bucket of a key and the hash of a row.
func hashOf(key, value []byte) (bucket, hash uint64) {
	k := xxhash.Sum64(key)
	return k % buckets, mix(k, xxhash.Sum64(value))
}

func mix(k, v uint64) uint64 {
	h := (k ^ bits.RotateLeft64(v*0x9E3779B97F4A7C15, 31)) * 0xD6E8FEB86659FD93
	return h ^ h>>29
}

// Sum is a sum of things in any order, to be compared with another one. Checks use
// it where two tables say the same in different orders, and neither is derived.
type Sum struct{ hash, things uint64 }

// Add adds one thing.
func (s *Sum) Add(thing []byte) {
	s.hash += mix(xxhash.Sum64(thing), uint64(len(thing)))
	s.things++
}

// Things is how many were added.
func (s *Sum) Things() int64 { return int64(s.things) }
