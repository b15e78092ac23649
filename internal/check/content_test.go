package check_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/table"
)

// garbler alters rows in ways that no single byte tells: some of them can be read.
type garbler struct {
	*rand.Rand
	keys []string // of all rows but the identity, in order
	all  map[string]string
}

// alter is another value for the row.
func (g *garbler) alter(key string) []byte {
	v := []byte(g.all[key])
	at := func() int { return g.IntN(len(v) + 1) }
	for range 1 + g.IntN(3) {
		switch g.IntN(6) {
		case 0: // of another row, of the same table most likely
			i, _ := slices.BinarySearch(g.keys, key)
			v = []byte(g.all[g.keys[min(max(0, i+g.IntN(21)-10), len(g.keys)-1)]])
		case 1:
			v = v[:at()]
		case 2:
			i := at()
			v = slices.Delete(v, i, min(len(v), i+1+g.IntN(4)))
		case 3:
			v = slices.Insert(v, at(), byte(g.Uint32()), byte(g.Uint32()))
		default:
			for range 1 + g.IntN(4) {
				if len(v) > 0 {
					v[g.IntN(len(v))] = []byte{0, 1, 0x7F, 0x80, 0xFF, byte(g.Uint32())}[g.IntN(6)]
				}
			}
		}
	}
	return append([]byte{}, v...)
}

// some alters, moves and removes a few rows, most of them near each other.
func (g *garbler) some() (rows []row) {
	from := g.IntN(len(g.keys))
	for range 1 + g.IntN(6) {
		key := g.keys[min(len(g.keys)-1, from+g.IntN(30))]
		if g.IntN(4) == 0 {
			key = g.keys[g.IntN(len(g.keys))]
		}
		switch g.IntN(6) {
		case 0:
			rows = append(rows, row{[]byte(key), nil})
		case 1:
			k := []byte(key)
			i := 1 + g.IntN(len(k)-1)
			k[i] = byte(g.Uint32())
			rows = append(rows, row{k, g.alter(key)})
		default:
			rows = append(rows, row{[]byte(key), g.alter(key)})
		}
	}
	return rows
}

// Whatever rows say, a check and a repair come to their end, and the repair leaves what
// follows from nothing.
func TestNoContentOfRowsEndsACheckOrARepair(t *testing.T) {
	t.Parallel()
	w := full(t)
	all := w.rows()
	derived, err := check.DerivedTables(w.store)
	w.must(err)
	keys := slices.Sorted(maps.Keys(all))
	keys = slices.DeleteFunc(keys, func(k string) bool { return table.ID(k[0]) == table.StoreInfo })
	seed, rounds := uint64(17), 60
	if os.Getenv("KEYLOAD_LONG") != "" {
		seed, rounds = rand.Uint64(), 3000
	}
	t.Logf("seed %d", seed)
	g := &garbler{rand.New(rand.NewPCG(seed, 1)), keys, all}
	for range rounds {
		rows := g.some()
		w.write(rows...)
		w.finds(rows...)
		before := w.rows()
		if _, err := check.Rebuild(t.Context(), w.store, nil); err != nil {
			t.Errorf("the repair ended: %v", err)
		}
		after := w.rows()
		if was, is := primary(before, derived), primary(after, derived); !maps.Equal(was, is) {
			t.Errorf("the repair changed\n%s", difference(was, is))
		}
		w.back(after, all)
		if t.Failed() {
			for _, r := range rows {
				t.Logf("  %x: %x, was %x", r.key, r.value, all[string(r.key)])
			}
			return
		}
	}
}

// A head that cannot be read is a finding, and everything else of its shard is checked.
func TestACheckGoesOnWithoutTheHeadOfAShard(t *testing.T) {
	w := full(t)
	for shard := range uint16(shards + 1) {
		key := binary.BigEndian.AppendUint16([]byte{byte(table.ShardHead)}, shard)
		was := []byte(w.rows()[string(key)])
		before, err := check.Shard(w.store, shard)
		w.must(err)
		w.write(row{key, bytes.Repeat([]byte{0xFF}, 9)})
		after, err := check.Shard(w.store, shard)
		w.must(err)
		if len(before.Findings) != 0 || len(after.Findings) == 0 || after.Rows != before.Rows {
			t.Errorf("shard %d: %d of %d rows, %+v", shard, after.Rows, before.Rows, after.Findings)
		}
		for _, f := range after.Findings {
			if f.Invariant != "record" || f.Derived {
				t.Errorf("shard %d: %+v", shard, f)
			}
		}
		w.write(row{key, was})
	}
}
