package op

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// Difference is one row that is not what other rows imply. Stored is nil where the
// row is missing, Implied where it follows from nothing.
type Difference struct {
	Table           table.Info
	Key             []byte
	Stored, Implied []byte
	// Kept says that the row must be left to a person, Lost that it is because it may
	// be the last that tells of what is lost.
	Kept, Lost bool
}

// comparison is an audit whose checks have run.
type comparison struct{ *Audit }

// compare sums up the stored rows of all derived tables, and reports where they
// differ from what is implied.
func (a comparison) compare() error {
	if a.derived[table.Due] == nil {
		declareDue(a.Audit)
	}
	for _, id := range a.order {
		d := a.derived[id]
		err := a.stored(d, func(key, value []byte) error {
			d.stored.add(d.bucket(key, value), key, value)
			if id == table.Due {
				a.Counts["dueRows"]++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if a.sound() {
		return nil
	}
	return a.tell()
}

// stored calls fn for the stored rows that are compared.
func (a comparison) stored(d *derivation, fn func(key, value []byte) error) error {
	a.current = max(d.resource, 0)
	delete(a.read, d.Table.ID) // so that its rows are counted now
	return a.EachRaw(d.Table, func(key, value []byte) error {
		skip := d.Skip
		if d.Table.ID == table.Due {
			skip = a.skipDue
		}
		if skip != nil {
			if pass, err := skip(key, value); pass || err != nil {
				return a.Survive(err)
			}
		}
		return fn(key, value)
	})
}

// skipDue passes over due rows of others than the audited packages, and of
// resources whose rows are being removed.
func (a comparison) skipDue(key, value []byte) (bool, error) {
	k, _, err := table.DueRows.Row(key, value)
	if err != nil {
		return false, nil // it follows from nothing, whatever it was
	}
	i := a.handles(k.Kind)
	if i < 0 {
		if _, known := a.Registry.Due(k.Kind); !known && k.Kind != table.DueReceipts {
			a.Report("due", "due", "a row of kind %d has no handler", k.Kind)
		}
		return true, nil
	}
	if !a.resources[i].owned() || len(k.Owner) < table.OwnerBytes {
		return false, nil
	}
	kr := codec.NewKeyReader([]byte(k.Owner))
	s, err := a.Standing(table.ReadOwner(&kr).Resource)
	if err != nil { // told where rows of the resource were read
		return true, nil
	}
	return s.Removing, nil
}

// handles finds which of the audited packages handles a kind of due rows; -1 is
// none.
func (a *Audit) handles(kind table.DueKind) int {
	for i := range a.resources {
		if kind == table.DueReceipts {
			break // the machine's own
		}
		if slices.ContainsFunc(a.resources[i].Dues, func(d Due) bool { return d.Kind == kind }) {
			return i
		}
	}
	if i, ok := a.home[table.Due]; ok && kind == table.DueReceipts {
		return i
	}
	return -1
}

// sound says that every derived table that could be compared is what is implied.
func (a comparison) sound() bool {
	for _, id := range a.order {
		d := a.derived[id]
		for b := range buckets {
			if d.implied.at(b) != d.stored.at(b) && a.comparable(d) {
				return false
			}
		}
	}
	return true
}

// comparable says that nothing is missing on the side of what is implied. Due rows
// are implied by every package that has a handler of them.
func (a comparison) comparable(d *derivation) bool {
	if d.resource >= 0 {
		return !a.broken[d.resource]
	}
	for i := range a.resources {
		if a.broken[i] && (len(a.resources[i].Dues) > 0 || a.home[table.Due] == i) {
			return false
		}
	}
	return true
}

// Where a pass collects at most.
const (
	pickedRows  = 1 << 18
	pickedBytes = 64 << 20
)

// bucketOf is one bucket of one table.
type bucketOf struct {
	table  table.ID
	bucket uint64
}

// picked are the rows that are implied within some buckets.
type picked struct {
	tables  map[table.ID]bool
	buckets map[bucketOf]bool
	rows    map[string][]byte
	clash   map[string]bool // implied twice
}

func (p *picked) imply(d *derivation, key, value []byte) {
	if !p.buckets[bucketOf{d.Table.ID, d.bucket(key, value)}] {
		return
	}
	if _, again := p.rows[string(key)]; again {
		p.clash[string(key)] = true
		return
	}
	p.rows[string(key)] = append([]byte{}, value...)
}

// passes divides the buckets that differ into passes of bounded memory.
func (a comparison) passes(some func(t table.Info) bool) (out []*picked) {
	rows, size := uint64(0), uint64(0)
	for _, id := range a.order {
		d := a.derived[id]
		for b := range buckets {
			implied := d.implied.at(b)
			if !a.comparable(d) || !some(d.Table) || implied == d.stored.at(b) {
				continue
			}
			rows, size = rows+implied.rows, size+implied.bytes
			if len(out) == 0 || rows > pickedRows || size > pickedBytes {
				out = append(out, &picked{tables: map[table.ID]bool{}, buckets: map[bucketOf]bool{}, rows: map[string][]byte{}, clash: map[string]bool{}})
				rows, size = implied.rows, implied.bytes
			}
			p := out[len(out)-1]
			p.tables[id], p.buckets[bucketOf{id, uint64(b)}] = true, true
		}
	}
	return out
}

// Differences calls fn for every row that differs in some of the derived tables,
// after Run, and at most until so many passes over the rows were made; 0 is as many
// as it takes. It says whether it went through all.
func (a *Audit) Differences(passes int, some func(t table.Info) bool, fn func(d *Difference) error) (all bool, err error) {
	c := comparison{a}
	for i, p := range c.passes(some) {
		if passes > 0 && i == passes {
			return false, nil
		}
		if err := c.pass(p, fn); err != nil {
			return false, err
		}
	}
	return true, nil
}

// pass repeats the checks to collect what is implied, and compares it with what is
// stored.
func (a comparison) pass(p *picked, fn func(d *Difference) error) error {
	again := NewAudit(a.Scope, a.resources)
	again.Shards, again.Position, again.Epoch, again.Hold, again.Step, again.picked = a.Shards, a.Position, a.Epoch, a.Hold, a.Step, p
	again.Partitions, again.Standing = a.Partitions, a.Standing
	if err := again.checks(); err != nil {
		return err
	}
	if again.derived[table.Due] == nil {
		declareDue(again)
	}
	for _, id := range again.order {
		d := again.derived[id]
		if a.comparable(d) && p.tables[id] {
			if err := (comparison{again}).against(d, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// against compares the stored rows of one table with those that were collected.
func (a comparison) against(d *derivation, fn func(d *Difference) error) error {
	p := a.picked
	w, err := a.witnesses(d)
	if err != nil {
		return err
	}
	differ := func(key, stored, implied []byte) error {
		x := &Difference{Table: d.Table, Key: key, Stored: stored, Implied: implied}
		if err := w.weigh(x); err != nil {
			return err
		}
		return fn(x)
	}
	err = a.stored(d, func(key, value []byte) error {
		implied, ok := p.rows[string(key)]
		if !p.picks(d, key, value) || p.agrees(key, value) {
			return nil
		}
		if !ok {
			implied = nil
		}
		return differ(bytes.Clone(key), append([]byte{}, value...), implied)
	})
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(p.rows)) {
		if key[0] == byte(d.Table.ID) && !w.taken[key] {
			if err := differ([]byte(key), nil, p.rows[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// tally counts the differences of one owner in one table.
type tally struct {
	table                             table.Info
	invariant, where                  string
	missing, stray, other, kept, lost int
}

// tell reports the differences, by table and owner.
func (a comparison) tell() error {
	byPlace := map[string]*tally{}
	var order []string
	all, err := a.Differences(1, func(table.Info) bool { return true }, func(x *Difference) error {
		where := a.Place(x.Key)
		name := string(rune(x.Table.ID)) + where
		t := byPlace[name]
		if t == nil {
			t = &tally{table: x.Table, invariant: a.derived[x.Table.ID].Invariant, where: where}
			byPlace[name] = t
			order = append(order, name)
		}
		switch {
		case x.Lost:
			t.lost++
		case x.Kept:
			t.kept++
		case x.Stored == nil:
			t.missing++
		case x.Implied == nil:
			t.stray++
		default:
			t.other++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range order {
		t := byPlace[name]
		if t.kept > 0 {
			a.Report(t.invariant, t.where, "%d rows of table %s contradict the rows they follow from; which of them is right cannot be told", t.kept, t.table.Name)
		}
		if t.lost > 0 {
			a.Report(t.invariant, t.where, "%d rows of table %s follow from nothing that is there; what they followed from may be lost, and nothing else may tell of it", t.lost, t.table.Name)
		}
		if t.missing+t.stray+t.other > 0 {
			a.add(Finding{t.invariant, t.where, fmt.Sprintf("table %s: %d rows are missing, %d follow from nothing, %d are not what they follow from",
				t.table.Name, t.missing, t.stray, t.other), true})
		}
	}
	if !all || len(order) == 0 {
		a.add(Finding{"index", "several tables", "more rows are not what other rows imply, or are implied twice", true})
	}
	return nil
}
