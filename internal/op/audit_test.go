package op

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/table"
)

// A shelf keeps things by name, and finds them by their color.
type thingKey struct {
	Owner table.Owner
	Name  string
}

type thing struct {
	Color string `cbor:"1,keyasint"`
	Due   int64  `cbor:"2,keyasint,omitempty"`
}

var (
	things = table.Table[thingKey, thing]{
		ID: table.Message, Name: "thing",
		Key:      func(dst []byte, k thingKey) []byte { return codec.AppendText(k.Owner.Append(dst), k.Name) },
		ParseKey: func(r *codec.KeyReader) thingKey { return thingKey{table.ReadOwner(r), r.Text()} },
		Encode:   table.EncodeCBOR[thing], Decode: table.DecodeCBOR[thing],
	}
	colors = table.Table[thingKey, thing]{ // the color finds the name
		ID: table.Ready, Name: "color", Key: things.Key, ParseKey: things.ParseKey, Encode: table.EncodeCBOR[thing], Decode: table.DecodeCBOR[thing],
	}
)

// shelf is the package of things; derived is how its colors are weighed.
func shelf(derived Derived) Resource {
	derived.Table = colors.Info()
	return Resource{
		Name: "shelf", Tables: []table.Info{things.Info(), colors.Info()}, Kinds: []api.ResourceKind{api.KindQueue},
		Purge: func(*Ctx, table.Owner, int) (int, error) { return 0, nil },
		Dues:  []Due{{Kind: table.DueLane}},
		Check: func(a *Audit) error {
			a.Derives(derived)
			return Each(a, &things, func(k thingKey, v *thing) error {
				Imply(a, &colors, thingKey{k.Owner, v.Color}, &thing{Color: k.Name})
				a.ImplyDue(table.DueLane, k.Owner.Append(nil), v.Due)
				return nil
			})
		},
	}
}

type auditBed struct {
	t        *testing.T
	store    *kv.Store
	resource Resource
}

// queued is how the resource of all things stands.
var queued = Standing{Known: true, Kind: api.KindQueue, Name: "q"}

var here = table.Owner{Space: table.Space{Shard: 1, Partition: [16]byte{1}}, Resource: 7}

func newAuditBed(t *testing.T) *auditBed {
	t.Helper()
	store, err := kv.Open("db", kv.Options{FS: vfs.NewMem(), NoSync: true, CacheBytes: 1 << 20})
	b := &auditBed{t, store, shelf(Derived{Verified: true})}
	b.must(err)
	t.Cleanup(func() { b.must(store.Close()) })
	return b
}

func (b *auditBed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *auditBed) write(fn func(tx *kv.Tx)) {
	b.t.Helper()
	tx := b.store.NewTx()
	tx.Begin()
	fn(tx)
	p, err := tx.Commit()
	b.must(err)
	b.must(errors.Join(p.Wait(), tx.Close()))
}

// put stores a thing with its color.
func (b *auditBed) put(o table.Owner, name, color string) {
	b.write(func(tx *kv.Tx) {
		things.Put(tx, thingKey{o, name}, &thing{Color: color})
		colors.Put(tx, thingKey{o, color}, &thing{Color: name})
	})
}

// audit runs the check of shard 1; prepare may change the audit first.
func (b *auditBed) audit(prepare func(a *Audit)) (a *Audit, differences []string) {
	b.t.Helper()
	registry, err := NewRegistry([]Resource{b.resource, {Name: "later", Tables: []table.Info{table.DueRows.Info()}}})
	b.must(err)
	snap := b.store.NewSnapshot()
	defer snap.Close()
	a = NewAudit(Scope{R: snap, Now: 100, Space: table.Space{Shard: 1}, Registry: registry}, registry.Resources())
	a.Shards = 2
	a.Partitions, a.Standing = map[[16]byte]bool{here.Partition: true}, func(uint32) (Standing, error) { return queued, nil }
	if prepare != nil {
		prepare(a)
	}
	b.must(a.Run())
	_, err = a.Differences(0, func(table.Info) bool { return true }, func(d *Difference) error {
		what := "other"
		switch {
		case d.Lost:
			what = "lost"
		case d.Kept:
			what = "kept"
		case d.Stored == nil:
			what = "missing"
		case d.Implied == nil:
			what = "stray"
		}
		name := d.Table.Name
		if d.Table.ID == table.Ready {
			k, _, _ := colors.Row(d.Key, nil)
			name += " " + k.Name
		}
		differences = append(differences, what+" "+name)
		return nil
	})
	b.must(err)
	return a, differences
}

func (b *auditBed) wants(what string, differences []string, want ...string) {
	b.t.Helper()
	slices.Sort(differences)
	if !slices.Equal(differences, want) {
		b.t.Errorf("%s: %q, want %q", what, differences, want)
	}
}

func TestAnAuditFindsWhatIsMissingWhatIsTooMuchAndWhatIsOther(t *testing.T) {
	b := newAuditBed(t)
	for i := range 50 {
		b.put(here, fmt.Sprint("t", i), fmt.Sprint("c", i))
	}
	a, d := b.audit(nil)
	b.wants("a sound shelf", d)
	if len(a.Findings) != 0 || a.Rows != 100 || a.Bytes == 0 {
		t.Errorf("%+v, %d rows", a.Findings, a.Rows)
	}
	b.write(func(tx *kv.Tx) {
		colors.Delete(tx, thingKey{here, "c1"})
		colors.Put(tx, thingKey{here, "c2"}, &thing{Color: "t3"})
		tx.Put(colors.Bytes(thingKey{here, "c4"}), []byte{0xFF})
		colors.Put(tx, thingKey{here, "red"}, &thing{Color: "t1"})
		table.DueRows.Put(tx, table.DueKey{Shard: 1, When: 5, Kind: table.DueLane, Owner: string(here.Append(nil))}, &table.None{})
		things.Put(tx, thingKey{here, "t6"}, &thing{Color: "c6", Due: 9})
	})
	a, d = b.audit(nil)
	b.wants("a damaged one", d, "missing color c1", "missing due", "other color c2", "other color c4", "stray color red", "stray due")
	for _, f := range a.Findings {
		if !f.Derived || !strings.Contains(f.Text, "1 follow from nothing") {
			t.Errorf("%+v", f)
		}
	}
	if len(a.Findings) != 2 {
		t.Errorf("%d findings, want one of each table", len(a.Findings))
	}
}

func TestWhereTwoRowsImplyDifferentOnesNeitherIsMade(t *testing.T) {
	b := newAuditBed(t)
	b.put(here, "a", "red")
	b.write(func(tx *kv.Tx) { things.Put(tx, thingKey{here, "b"}, &thing{Color: "red"}) })
	a, d := b.audit(nil)
	b.wants("two of one color", d, "kept color red")
	if len(a.Findings) != 1 || a.Findings[0].Derived {
		t.Errorf("%+v", a.Findings)
	}
}

func TestEvidenceIsKeptAndReported(t *testing.T) {
	b := newAuditBed(t)
	b.put(here, "a", "red")
	b.write(func(tx *kv.Tx) { colors.Put(tx, thingKey{here, "red"}, &thing{Color: "z"}) })
	b.resource = shelf(Derived{Verified: true, Weigh: func(_, stored, implied []byte) Weight {
		if stored != nil && implied != nil {
			return Keep
		}
		return Weighed
	}})
	a, d := b.audit(nil)
	b.wants("evidence", d, "kept color red")
	if len(a.Findings) != 1 || a.Findings[0].Derived {
		t.Errorf("%+v", a.Findings)
	}
}

func TestNothingIsMadeFromRowsOneOfWhichCannotBeRead(t *testing.T) {
	b := newAuditBed(t)
	b.put(here, "a", "red")
	b.put(here, "b", "blue")
	b.write(func(tx *kv.Tx) {
		tx.Put(things.Bytes(thingKey{here, "a"}), []byte{0xFF})
		colors.Delete(tx, thingKey{here, "blue"})
	})
	a, d := b.audit(nil)
	b.wants("an unreadable thing", d)
	if len(a.Findings) != 1 || a.Findings[0].Invariant != "record" || a.Findings[0].Derived {
		t.Errorf("%+v", a.Findings)
	}
}

func TestOwnersAreLookedAt(t *testing.T) {
	b := newAuditBed(t)
	b.put(here, "a", "red")
	known := func(s Standing, named bool) func(a *Audit) {
		return func(a *Audit) {
			a.Partitions = map[[16]byte]bool{here.Partition: named}
			a.Standing = func(uint32) (Standing, error) { return s, nil }
		}
	}
	gone, removing, passed := queued, queued, queued
	gone.Gone = true
	removing.Gone, removing.Removing = true, true
	passed.Gone, passed.Removing, passed.From = true, true, [16]byte{2}
	for what, c := range map[string]struct {
		s     Standing
		named bool
		want  string
	}{
		"sound":                             {queued, true, ""},
		"in a partition without a name":     {queued, false, "partition whose name"},
		"of no resource":                    {Standing{}, true, "never was"},
		"of a resource of another kind":     {Standing{Known: true, Kind: api.KindTopic}, true, "a topic cannot have"},
		"of a deleted resource":             {gone, true, "deleted"},
		"of a resource that is removed":     {removing, true, ""},
		"of one whose removal passed there": {passed, true, "passed them"},
	} {
		a, _ := b.audit(known(c.s, c.named))
		text := fmt.Sprint(a.Findings)
		if (len(a.Findings) == 0) != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", what, text)
		}
		if removed := a.Counts["rowsBeingRemoved"]; (removed == 2) != (what == "of a resource that is removed") {
			t.Errorf("%s: %d rows are being removed", what, removed)
		}
	}
}

func TestRowsOfNoTableAndNoShardAreStrangers(t *testing.T) {
	b := newAuditBed(t)
	b.put(here, "a", "red")
	good := things.Bytes(thingKey{here, "a"})
	for what, c := range map[string]struct {
		key   []byte
		found int
	}{
		"the last shard":      {append([]byte{byte(things.ID), 0, 2}, good[3:]...), 0},
		"one after it":        {append([]byte{byte(things.ID), 0, 3}, good[3:]...), 1},
		"a far one":           {append([]byte{byte(things.ID), 1, 0}, good[3:]...), 1},
		"a key without shard": {[]byte{byte(things.ID), 0}, 1},
		"a table id alone":    {[]byte{byte(things.ID)}, 1},
		"another table":       {[]byte{200, 0, 1}, 1},
	} {
		b.write(func(tx *kv.Tx) { tx.Put(c.key, []byte{1}) })
		a, _ := b.audit(nil)
		snap := b.store.NewSnapshot()
		a.R = snap
		b.must(errors.Join(Strangers(a), snap.Close()))
		if len(a.Findings) != c.found {
			t.Errorf("%s: %+v", what, a.Findings)
		}
		b.write(func(tx *kv.Tx) { tx.Delete(c.key) })
	}
}

func TestAPassCollectsSoManyRowsAndBytesAndNoMore(t *testing.T) {
	for _, c := range []struct{ rows, bytes, buckets, passes uint64 }{
		{pickedRows / 4, 1, 4, 1}, {pickedRows/4 + 1, 1, 4, 2}, {pickedRows / 4, 1, 5, 2},
		{1, pickedBytes / 2, 2, 1}, {1, pickedBytes/2 + 1, 2, 2}, {2 * pickedRows, 1, 1, 1}, {1, 1, 0, 0},
	} {
		a := NewAudit(Scope{Space: table.Space{Shard: 1}}, []Resource{shelf(Derived{Verified: true})})
		a.Derives(Derived{Table: colors.Info()})
		d := a.derived[colors.ID]
		d.implied = make(sums, buckets)
		for i := range c.buckets {
			d.implied[i*3] = sum{hash: 1, rows: c.rows, bytes: c.bytes}
		}
		passes := comparison{a}.passes(func(table.Info) bool { return true })
		n := 0
		for _, p := range passes {
			n += len(p.buckets)
		}
		if uint64(len(passes)) != c.passes || uint64(n) != c.buckets {
			t.Errorf("%+v: %d passes of %d buckets", c, len(passes), n)
		}
	}
}

func TestFindingsAreBoundedAndCounted(t *testing.T) {
	for n, left := range map[int]int64{maxFindings - 1: 0, maxFindings: 0, maxFindings + 1: 1, 3 * maxFindings: 2 * maxFindings} {
		a := NewAudit(Scope{}, nil)
		for range n {
			a.Report("x", "y", "z")
		}
		if len(a.Findings) != min(n, maxFindings) || a.Left != left {
			t.Errorf("of %d findings %d are kept and %d left", n, len(a.Findings), a.Left)
		}
	}
}

// What checks ask of an audit is known whichever package comes last.
func TestWhatChecksAskIsKnownBeforeAnyOfThemRuns(t *testing.T) {
	b := newAuditBed(t)
	snap := b.store.NewSnapshot()
	defer snap.Close()
	asks := Resource{Name: "asks", Check: func(a *Audit) error {
		s, err := a.Standing(7)
		if err == nil && (!s.Known || !a.Partitions[here.Partition]) {
			a.Report("x", "y", "z")
		}
		return err
	}}
	tells := Resource{Name: "tells", Before: func(a *Audit) error {
		a.Partitions, a.Standing = map[[16]byte]bool{here.Partition: true}, func(uint32) (Standing, error) { return queued, nil }
		return nil
	}}
	registry, err := NewRegistry([]Resource{asks, tells})
	b.must(err)
	a := NewAudit(Scope{R: snap, Space: table.Space{Shard: 1}, Registry: registry}, registry.Resources())
	b.must(a.Run())
	if len(a.Findings) > 0 {
		t.Errorf("%+v", a.Findings)
	}
	for what, forget := range map[string]func(a *Audit){
		"partitions": func(a *Audit) { a.Partitions = nil }, "standing": func(a *Audit) { a.Standing = nil },
	} {
		tells := tells.Before
		a := NewAudit(Scope{R: snap, Space: table.Space{Shard: 1}, Registry: registry}, []Resource{asks, {Before: func(a *Audit) error {
			defer forget(a)
			return tells(a)
		}}})
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("an audit runs without %s", what)
				}
			}()
			_ = a.Run()
		}()
	}
}
