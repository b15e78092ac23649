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
	// Subject appends what a row is about: the same for every row that could follow
	// from one row (and index) of those it follows from. nil takes the whole key. See
	// weigh.go for what it decides.
	Subject func(dst, key, value []byte) []byte
	// Verified says that something else verifies what the rows follow from, so that
	// whatever differs is made what is implied.
	Verified bool
	// Counted says that something else counts what the rows follow from, and calls
	// Doubt where the count is wrong: elsewhere a row that follows from nothing tells
	// of nothing that was lost, and is removed.
	Counted bool
	// Weigh decides on a row by itself before all that; nil decides on none. stored is
	// nil where none is stored, implied where it follows from nothing.
	Weigh func(key, stored, implied []byte) Weight
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
	subject  []byte // of the row looked at last
}

// sums are kept by bucket; nil is of no row.
type sums []sum

func (s *sums) add(bucket uint64, key, value []byte) {
	if *s == nil {
		*s = make(sums, buckets)
	}
	hash := mix(xxhash.Sum64(key), xxhash.Sum64(value))
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
	declare(a, d, a.current)
}

func declare(a *Audit, d Derived, resource int) {
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
		declareDue(a)
		d = a.derived[id]
	}
	if a.picked != nil {
		a.picked.imply(d, key, value)
		return
	}
	d.implied.add(d.bucket(key, value), key, value)
}

// about is what a row is about; valid until the next call.
func (d *derivation) about(key, value []byte) []byte {
	if d.Subject == nil {
		return key
	}
	d.subject = d.Subject(d.subject[:0], key, value)
	return d.subject
}

// bucket is that of the row's subject, so that rows about the same meet.
func (d *derivation) bucket(key, value []byte) uint64 {
	return xxhash.Sum64(d.about(key, value)) % buckets
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
