package op

import (
	"bytes"

	"github.com/keyload/keyload/internal/table"
)

// A derived row that differs is not simply wrong: the row it should follow from may
// be what was lost or altered, and then the derived row is the last that tells of it.
// A repair that made it what is implied would hide that, and what was done would be
// done again. So each row is a witness of its subject, and rows are written only
// where no witness speaks against it:
//
//   - rows are missing, and none is too many: they are added;
//   - a row is too many, and all that is implied of its subject is stored: it is
//     removed, since two say the same against one;
//   - rows are missing and others too many, or one says something else: all are left;
//   - a row is too many, and nothing is implied of its subject: it is left.
//
// Where something else verifies or counts what the rows follow from, its own finding
// stays whatever is repaired, and they follow (Derived.Verified, Derived.Counted).

// Weight is what Derived.Weigh decides.
type Weight int

const (
	// Weighed leaves it to the rules.
	Weighed Weight = iota
	// Keep leaves the row to a person.
	Keep
	// Follow makes the row what is implied.
	Follow
)

// declareDue declares the due rows. Their owner says which instant is armed, and each
// check reports one that is armed too late, so a row of another instant follows it;
// but one of an owner who waits for nothing may tell of a lost owner.
func declareDue(a *Audit) {
	declare(a, Derived{Table: table.DueRows.Info(), Invariant: "due", Subject: dueSubject}, -1)
}

// dueSubject is a due row's kind and owner.
func dueSubject(dst, key, _ []byte) []byte {
	const when = 1 + 2 // where the instant stands, of 8 bytes
	return append(dst, key[min(when+8, len(key)):]...)
}

// Doubt says that rows of an owner, from which others follow, are not as many as
// something else counts.
func Doubt(a *Audit, o table.Owner) { a.doubted[o] = true }

// witness is what rows say of one subject of which something is implied.
type witness struct {
	missing int  // implied rows that are not stored
	against bool // something else is stored
}

// witnesses are those of one table in one pass.
type witnesses struct {
	comparison
	d     *derivation
	of    map[string]*witness
	taken map[string]bool // implied keys under which something is stored
}

func (a comparison) witnesses(d *derivation) (*witnesses, error) {
	p := a.picked
	w := &witnesses{a, d, map[string]*witness{}, map[string]bool{}}
	//keyload:sorted counts, in any order
	for key, value := range p.rows {
		if key[0] != byte(d.Table.ID) {
			continue
		}
		subject := string(d.about([]byte(key), value))
		if w.of[subject] == nil {
			w.of[subject] = &witness{}
		}
		w.of[subject].missing++
	}
	err := a.stored(d, func(key, value []byte) error {
		if !p.picks(d, key, value) {
			return nil
		}
		if _, ok := p.rows[string(key)]; ok {
			w.taken[string(key)] = true
		}
		switch x := w.of[string(d.about(key, value))]; {
		case x == nil:
		case p.agrees(key, value):
			x.missing--
		default:
			x.against = true
		}
		return nil
	})
	return w, err
}

// picks says that a stored row is in a bucket of the pass.
func (p *picked) picks(d *derivation, key, value []byte) bool {
	return p.buckets[bucketOf{d.Table.ID, d.bucket(key, value)}]
}

// agrees says that a stored row is what is implied, once.
func (p *picked) agrees(key, value []byte) bool {
	implied, ok := p.rows[string(key)]
	return ok && bytes.Equal(implied, value) && !p.clash[string(key)]
}

// weigh decides whether a row is left to a person.
func (w *witnesses) weigh(x *Difference) (err error) {
	if w.picked.clash[string(x.Key)] {
		x.Kept = true
		return nil
	}
	if w.d.Weigh != nil {
		if by := w.d.Weigh(x.Key, x.Stored, x.Implied); by != Weighed {
			x.Kept = by == Keep
			return nil
		}
	}
	due := w.d.Table.ID == table.Due
	switch {
	case w.d.Verified:
	case x.Stored == nil && due:
	case x.Stored == nil:
		// In a pass of its own the row that has taken the key may be about something else.
		_, taken, err := w.R.Get(x.Key)
		x.Kept = taken || w.of[string(w.d.about(x.Key, x.Implied))].against
		return err
	case x.Implied != nil: // one that cannot be read says nothing
		_, _, err := w.d.Table.Read(x.Key, x.Stored)
		x.Kept = err == nil
	default:
		y := w.of[string(w.d.about(x.Key, x.Stored))]
		x.Lost = y == nil && !(w.d.Counted && !w.doubts(x.Key))
		x.Kept = x.Lost || y != nil && y.missing > 0 && !due
	}
	return nil
}

// doubts says that the owner of a row is doubted.
func (w *witnesses) doubts(key []byte) bool {
	o, ok := ownerOf(key)
	return !ok || w.doubted[o]
}
