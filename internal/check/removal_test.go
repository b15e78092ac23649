package check_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
)

// purge is a marker of a deleted queue whose rows are being removed.
func (w *world) purge(shard uint16, resource string) row {
	key := codec.AppendUint32(codec.AppendUint16([]byte{byte(table.ResourcePurge)}, shard), w.numbers[resource])
	return row{key, table.EncodeCBOR(nil, &struct {
		Kind  string   `cbor:"1,keyasint"`
		Next  [16]byte `cbor:"2,keyasint"`
		Armed int64    `cbor:"3,keyasint"`
	}{Kind: "queue", Armed: w.now})}
}

// marker says that rows are being removed of something that is there: of the group
// "g" of the topic "news", or of the queue "jobs".
func (w *world) marker(what string, all map[string]string) row {
	w.t.Helper()
	if what == "a queue" {
		return w.purge(partitions.ShardOf(partitions.Hash(at("main")), shards), "jobs")
	}
	value, group := "", ""
	begin := string(rune(table.GroupDead)) + w.keyOf(at("main"), "news") // "g" has dead letters
	for k, v := range all {
		if table.ID(k[0]) == table.GroupRemoval {
			value = v
		}
		if strings.HasPrefix(k, begin) {
			group = k[1 : len(k)-8]
		}
	}
	return row{append([]byte{byte(table.GroupRemoval)}, group...), []byte(value)}
}

// alone makes the world a store that can be opened without the rest of a cluster.
func (w *world) alone() {
	for k := range w.rows() {
		if table.ID(k[0]) == table.Applied {
			w.write(row{[]byte(k), nil})
		}
	}
}

func TestNoRepairBeginsTheRemovalOfWhatIsThere(t *testing.T) {
	for _, what := range []string{"a group", "a queue"} {
		w := full(t)
		w.alone()
		all := w.rows()
		marker := w.marker(what, all)
		w.write(marker)
		if !w.finds(marker) {
			t.Errorf("a marker at %s is not found", what)
		}
		w.must(w.e.Close())
		w.repair(what)
		if is := w.rows(); len(is) != len(all)+1 || is[string(marker.key)] != string(marker.value) {
			t.Errorf("%s: the repair wrote\n%s", what, difference(all, is))
		}
		if !w.finds(marker) {
			t.Errorf("after a repair the marker at %s is not found", what)
		}
		w.open()
		w.settle()
		is := w.rows()
		for k := range all {
			if _, ok := is[k]; !ok && w.of(what, k) {
				t.Errorf("%s has lost the row %x", what, k)
			}
		}
	}
}

// of says that a row is of what a marker stands at.
func (w *world) of(what, key string) bool {
	resource := map[string]string{"a group": "news", "a queue": "jobs"}[what]
	stays := map[table.ID]bool{table.GroupRow: true, table.GroupDead: true, table.GroupHead: true, table.Message: true, table.MessageBody: true, table.LaneHead: true}
	return stays[table.ID(key[0])] && strings.HasPrefix(key[1:], w.keyOf(at("main"), resource)) && !w.leaving(key)
}

// Nothing makes a marker due that stands where it should not; if something has, the
// shard stops before a row is lost.
func TestARemovalThatIsDueStopsWhereWhatItRemovesIsThere(t *testing.T) {
	w := full(t)
	w.alone()
	w.settle()
	all := w.rows()
	w.must(w.e.Close())
	shard := partitions.ShardOf(partitions.Hash(at("main")), shards)
	marker := w.purge(shard, "jobs")
	w.write(marker, row{table.DueRows.Bytes(table.DueKey{Shard: shard, When: w.now, Kind: table.DueDeletion, Owner: string(marker.key[3:])}), []byte{}})
	before := w.rows()
	w.open()
	if _, err := (engine.Chores{Engine: w.e}).Tick(ctx, shard); err == nil {
		t.Error("the step went on")
	}
	if is := w.rows(); !maps.Equal(is, before) || len(is) != len(all)+2 {
		t.Errorf("the step changed\n%s", difference(before, is))
	}
}
