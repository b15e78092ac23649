package op

import (
	"testing"

	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/table"
)

// nameOf is the thing that a color finds.
func nameOf(dst, _, value []byte) []byte {
	var v thing
	if colors.Decode(value, &v) != nil {
		return dst
	}
	return append(dst, v.Color...)
}

// A shelf has the things a to d, which are red, green, blue and white.
func TestARowIsWrittenOnlyWhereNoOtherSpeaksAgainstIt(t *testing.T) {
	put := func(color, name string) func(tx *kv.Tx) {
		return func(tx *kv.Tx) { colors.Put(tx, thingKey{here, color}, &thing{Color: name}) }
	}
	lose := func(color string) func(tx *kv.Tx) {
		return func(tx *kv.Tx) { colors.Delete(tx, thingKey{here, color}) }
	}
	paint := func(name, color string) func(tx *kv.Tx) {
		return func(tx *kv.Tx) { things.Put(tx, thingKey{here, name}, &thing{Color: color}) }
	}
	gone := func(tx *kv.Tx) { things.Delete(tx, thingKey{here, "a"}) }
	for what, c := range map[string]struct {
		damage            []func(tx *kv.Tx)
		plain, count, ver []string
	}{
		"a lost color":                    {[]func(*kv.Tx){lose("red")}, []string{"missing color red"}, []string{"missing color red"}, []string{"missing color red"}},
		"a color too many":                {[]func(*kv.Tx){put("pink", "a")}, []string{"stray color pink"}, []string{"stray color pink"}, []string{"stray color pink"}},
		"a lost thing":                    {[]func(*kv.Tx){gone}, []string{"lost color red"}, []string{"stray color red"}, []string{"stray color red"}},
		"a color of nothing":              {[]func(*kv.Tx){put("pink", "x")}, []string{"lost color pink"}, []string{"stray color pink"}, []string{"stray color pink"}},
		"a thing of another color":        {[]func(*kv.Tx){paint("a", "pink")}, []string{"kept color pink", "kept color red"}, []string{"kept color pink", "kept color red"}, []string{"missing color pink", "stray color red"}},
		"a color that finds nothing":      {[]func(*kv.Tx){put("red", "x")}, []string{"kept color red"}, []string{"kept color red"}, []string{"other color red"}},
		"a color that finds another":      {[]func(*kv.Tx){put("red", "b")}, []string{"kept color red"}, []string{"kept color red"}, []string{"other color red"}},
		"a color that cannot be read":     {[]func(*kv.Tx){func(tx *kv.Tx) { tx.Put(colors.Bytes(thingKey{here, "red"}), []byte{0xFF}) }}, []string{"other color red"}, []string{"other color red"}, []string{"other color red"}},
		"a thing that was called another": {[]func(*kv.Tx){gone, paint("x", "red")}, []string{"kept color red"}, []string{"kept color red"}, []string{"other color red"}},
	} {
		for rule, d := range map[string]Derived{
			"plain": {Subject: nameOf}, "counted": {Subject: nameOf, Counted: true}, "verified": {Subject: nameOf, Verified: true},
		} {
			b := newAuditBed(t)
			b.resource = shelf(d)
			for name, color := range map[string]string{"a": "red", "b": "green", "c": "blue", "d": "white"} {
				b.put(here, name, color)
			}
			for _, damage := range c.damage {
				b.write(damage)
			}
			_, differences := b.audit(nil)
			want := map[string][]string{"plain": c.plain, "counted": c.count, "verified": c.ver}[rule]
			b.wants(what+", "+rule, differences, want...)
		}
	}
}

func TestWhereTheCountIsDoubtedARowThatFollowsFromNothingIsKept(t *testing.T) {
	b := newAuditBed(t)
	b.put(here, "a", "red")
	there := here
	there.Resource++
	b.put(there, "a", "red")
	b.write(func(tx *kv.Tx) {
		things.Delete(tx, thingKey{here, "a"})
		things.Delete(tx, thingKey{there, "a"})
	})
	b.resource = shelf(Derived{Subject: nameOf, Counted: true})
	check := b.resource.Check
	b.resource.Check = func(a *Audit) error { Doubt(a, here); return check(a) }
	a, d := b.audit(nil)
	b.wants("a doubted owner and another", d, "lost color red", "stray color red")
	if len(a.Findings) != 2 || a.Findings[0].Derived || !a.Findings[1].Derived {
		t.Errorf("%+v", a.Findings)
	}
}

func TestADueRowOfAnotherInstantFollowsItsOwnerAndOneOfNobodyIsKept(t *testing.T) {
	b := newAuditBed(t)
	due := func(when int64, o table.Owner) func(tx *kv.Tx) {
		return func(tx *kv.Tx) {
			table.DueRows.Put(tx, table.DueKey{Shard: 1, When: when, Kind: table.DueLane, Owner: string(o.Append(nil))}, &table.None{})
		}
	}
	b.write(func(tx *kv.Tx) { things.Put(tx, thingKey{here, "a"}, &thing{Color: "red", Due: 9}) })
	b.write(func(tx *kv.Tx) { colors.Put(tx, thingKey{here, "red"}, &thing{Color: "a"}) })
	b.write(due(5, here))
	_, d := b.audit(nil)
	b.wants("another instant", d, "missing due", "stray due")
	b.write(due(9, here))
	_, d = b.audit(nil)
	b.wants("two instants", d, "stray due")
	there := here
	there.Resource++
	b.write(func(tx *kv.Tx) {
		table.DueRows.Delete(tx, table.DueKey{Shard: 1, When: 5, Kind: table.DueLane, Owner: string(here.Append(nil))})
	})
	b.write(due(5, there))
	_, d = b.audit(nil)
	b.wants("nobody's", d, "lost due")
}
