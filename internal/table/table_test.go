package table

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
)

// item is a record with an inner value, so that sharing can be seen.
type item struct {
	N     uint64   `cbor:"1,keyasint,omitempty"`
	Names []string `cbor:"2,keyasint,omitempty"`
}

type itemKey struct {
	Owner Owner
	Name  string
}

// itemTable is a table as the packages declare them.
func itemTable(id ID, hot bool) Table[itemKey, item] {
	return Table[itemKey, item]{
		ID: id, Name: "item", Hot: hot,
		Key:      func(dst []byte, k itemKey) []byte { return codec.AppendText(k.Owner.Append(dst), k.Name) },
		ParseKey: func(r *codec.KeyReader) itemKey { return itemKey{ReadOwner(r), r.Text()} },
		Encode:   EncodeCBOR[item], Decode: DecodeCBOR[item],
	}
}

var items, hotItems = itemTable(200, false), itemTable(201, true)

func openStore(t *testing.T) (*kv.Store, *kv.Tx) {
	t.Helper()
	s, err := kv.Open("db", kv.Options{FS: vfs.NewMem(), NoSync: true, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	tx := s.NewTx()
	tx.Begin()
	t.Cleanup(func() {
		if err := errors.Join(tx.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, tx
}

func commit(t *testing.T, tx *kv.Tx) {
	t.Helper()
	p, err := tx.Commit()
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	tx.Begin()
}

func owner(partition byte, resource uint32) Owner {
	return Owner{Space{3, [16]byte{partition}}, resource}
}

func TestARowIsReadBackFromTransactionAndSnapshot(t *testing.T) {
	for _, tab := range []Table[itemKey, item]{items, hotItems} {
		s, tx := openStore(t)
		k := itemKey{owner(1, 2), "a\x00b"}
		tab.Put(tx, k, &item{N: 7, Names: []string{"x"}})
		check := func(r kv.Reader, where string) {
			t.Helper()
			v, ok, err := tab.Get(r, k)
			if err != nil || !ok || v.N != 7 || len(v.Names) != 1 || v.Names[0] != "x" {
				t.Errorf("%s: %+v, %v, %v", where, v, ok, err)
			}
			shared, err := tab.Shared(r, k)
			if err != nil || shared == nil || shared.N != 7 {
				t.Errorf("%s: shared %+v, %v", where, shared, err)
			}
			if has, err := tab.Has(r, k); !has || err != nil {
				t.Errorf("%s: has %v, %v", where, has, err)
			}
			other := itemKey{owner(1, 3), "a\x00b"}
			if _, ok, err := tab.Get(r, other); ok || err != nil {
				t.Errorf("%s: another owner has the row (%v)", where, err)
			}
			if shared, err := tab.Shared(r, other); shared != nil || err != nil {
				t.Errorf("%s: another owner shares the row (%v)", where, err)
			}
		}
		check(tx, "before commit")
		commit(t, tx)
		check(tx, "after commit")
		snap := s.NewSnapshot()
		check(snap, "snapshot")
		tab.Delete(tx, k)
		if _, ok, _ := tab.Get(tx, k); ok {
			t.Error("a deleted row is there")
		}
		check(snap, "snapshot after a deletion")
		if err := snap.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheKeyOfARowStartsWithTableShardPartitionAndResource(t *testing.T) {
	k := itemKey{Owner{Space{0x0102, [16]byte{0xAA, 15: 0xBB}}, 0x03040506}, "n"}
	want := append([]byte{200, 1, 2, 0xAA}, make([]byte, 14)...)
	want = append(want, 0xBB, 3, 4, 5, 6, 'n', 0, 1)
	if got := items.Bytes(k); !bytes.Equal(got, want) {
		t.Errorf("the key is %x, want %x", got, want)
	}
	if len(k.Owner.Append(nil)) != OwnerBytes {
		t.Errorf("an owner takes %d bytes, OwnerBytes says %d", len(k.Owner.Append(nil)), OwnerBytes)
	}
	r := codec.NewKeyReader(k.Owner.Append(nil))
	if got := ReadOwner(&r); got != k.Owner || r.End() != nil {
		t.Errorf("the owner came back as %+v (%v)", got, r.End())
	}
}

// Rows of one owner are together and those of no other are among them, whatever
// the numbers and names are.
func TestAScanOfAnOwnerSeesItsRowsInOrderAndNoOthers(t *testing.T) {
	_, tx := openStore(t)
	owners := []Owner{owner(1, 1), owner(1, 2), owner(1, 0x01000000), owner(2, 1), {Space{4, [16]byte{1}}, 1}}
	names := []string{"", "\x00", "\x00\xFF", "a", "a\x00", "ab", "\xFF", "\xFF\xFF"}
	for _, o := range owners {
		for i, n := range names {
			items.Insert(tx, itemKey{o, n}, &item{N: uint64(i)})
			hotItems.Insert(tx, itemKey{o, n}, &item{N: 99}) // the table next to it
		}
	}
	commit(t, tx)
	for _, o := range owners {
		for _, reverse := range []bool{false, true} {
			var got []string
			err := items.Scan(tx, Range{Prefix: o.Append(nil), Reverse: reverse}, func(k itemKey, v *item) (bool, error) {
				if k.Owner != o || names[v.N] != k.Name {
					return false, fmt.Errorf("row %+v with %d is among those of %+v", k, v.N, o)
				}
				got = append(got, k.Name)
				return true, nil
			})
			if err != nil || len(got) != len(names) {
				t.Fatalf("%d of %d rows (%v)", len(got), len(names), err)
			}
			for i, n := range names {
				if at := map[bool]int{false: i, true: len(names) - 1 - i}[reverse]; got[at] != n {
					t.Errorf("reverse %v: row %d is %q, want %q", reverse, at, got[at], n)
				}
			}
		}
	}
}

func TestAScanStartsAtFromAndAReverseOneEndsBeforeIt(t *testing.T) {
	_, tx := openStore(t)
	o := owner(1, 1)
	for _, n := range []string{"a", "b", "c", "d"} {
		items.Put(tx, itemKey{o, n}, &item{})
	}
	from := codec.AppendText(o.Append(nil), "c")
	for reverse, want := range map[bool]string{false: "cd", true: "ba"} {
		got := ""
		err := items.Scan(tx, Range{Prefix: o.Append(nil), From: from, Reverse: reverse}, func(k itemKey, _ *item) (bool, error) {
			got += k.Name
			return true, nil
		})
		if err != nil || got != want {
			t.Errorf("reverse %v: %q (%v), want %q", reverse, got, err, want)
		}
	}
}

// A damaged row is Damage wherever it is met, and names table and key.
func TestADamagedRowIsReportedAndNeverReadAsSomethingElse(t *testing.T) {
	for _, tab := range []Table[itemKey, item]{items, hotItems} {
		s, tx := openStore(t)
		k := itemKey{owner(1, 1), "a"}
		tx.Put(tab.Bytes(k), []byte{0xFF, 0x00})
		commit(t, tx)
		snap := s.NewSnapshot()
		for _, r := range []kv.Reader{tx, snap} {
			_, _, err := tab.Get(r, k)
			isDamage(t, err, tab.Bytes(k))
			_, err = tab.Shared(r, k)
			isDamage(t, err, tab.Bytes(k))
			err = tab.Scan(r, Range{Prefix: k.Owner.Append(nil)}, func(itemKey, *item) (bool, error) { return true, nil })
			isDamage(t, err, tab.Bytes(k))
		}
		if err := snap.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAKeyOfAnotherFormIsDamage(t *testing.T) {
	_, tx := openStore(t)
	bad := append(items.Bytes(itemKey{owner(1, 1), "a"}), 0)
	tx.Put(bad, EncodeCBOR(nil, &item{}))
	err := items.Scan(tx, Range{Prefix: owner(1, 1).Append(nil)}, func(itemKey, *item) (bool, error) { return true, nil })
	isDamage(t, err, bad)
}

func isDamage(t *testing.T, err error, key []byte) {
	t.Helper()
	var d *Damage
	if !errors.As(err, &d) || !errors.Is(err, kv.ErrCorrupt) || d.Table != "item" || !bytes.Equal(d.Key, key) {
		t.Errorf("the damage was answered with %v", err)
	}
}

func TestSharedIsOneValueUntilTheRowIsWritten(t *testing.T) {
	_, tx := openStore(t)
	k := itemKey{owner(1, 1), "a"}
	read := func() *item {
		t.Helper()
		v, err := hotItems.Shared(tx, k)
		if err != nil || v == nil {
			t.Fatalf("%v, %v", v, err)
		}
		return v
	}
	hotItems.Put(tx, k, &item{N: 1})
	commit(t, tx)
	first := read()
	if read() != first {
		t.Error("an unchanged row was decoded again")
	}
	copied, _, _ := hotItems.Get(tx, k)
	copied.N = 50 // a copy may be changed
	if first.N != 1 || read().N != 1 {
		t.Error("changing a copy changed the row")
	}
	copied.N = 2
	hotItems.Put(tx, k, &copied)
	copied.N = 51 // also after it was put
	if read().N != 2 || first.N != 1 {
		t.Errorf("the row is %d, the old one %d", read().N, first.N)
	}
	tx.Drop()
	if read() != first {
		t.Error("dropping the change did not bring back the shared value")
	}
}

func TestAnIndexRowHasNoValueAndRefusesOne(t *testing.T) {
	index := Table[itemKey, None]{ID: 202, Name: "index", Key: items.Key, ParseKey: items.ParseKey, Encode: EncodeNone, Decode: DecodeNone}
	_, tx := openStore(t)
	k := itemKey{owner(1, 1), "a"}
	index.Put(tx, k, &None{})
	commit(t, tx)
	if ok, err := index.Has(tx, k); !ok || err != nil {
		t.Errorf("the row is absent (%v)", err)
	}
	if index.Size(k, &None{}) != len(index.Bytes(k)) {
		t.Error("an index row has a value")
	}
	tx.Put(index.Bytes(k), []byte{1})
	if _, _, err := index.Get(tx, k); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a value was passed over: %v", err)
	}
}

func TestSizeIsWhatIsStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := itemKey{owner(rapid.Byte().Draw(t, "p"), rapid.Uint32().Draw(t, "r")), rapid.String().Draw(t, "name")}
		v := item{N: rapid.Uint64().Draw(t, "n"), Names: rapid.SliceOf(rapid.String()).Draw(t, "names")}
		if got, want := items.Size(k, &v), len(items.Bytes(k))+len(EncodeCBOR(nil, &v)); got != want {
			t.Fatalf("size %d, want %d", got, want)
		}
	})
}

func TestACBORRecordIsReadStrictly(t *testing.T) {
	good := EncodeCBOR(nil, &item{N: 1})
	var v item
	if err := DecodeCBOR(good, &v); err != nil || v.N != 1 {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"nothing": {}, "cut short": good[:len(good)-1], "followed by more": append(bytes.Clone(good), 0),
		"an unknown field": {0xA1, 0x18, 0x63, 0x01},
	} {
		if err := DecodeCBOR(b, new(item)); fault.CodeOf(err) != fault.Corruption {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDamageNamesTheRowButNotTheFieldsOfAnIndex(t *testing.T) {
	for id, whole := range map[ID]bool{Document: true, DocumentIndex: false, DocumentUniq: false, Message: true} {
		key := append(owner(1, 2).Append([]byte{byte(id)}), "secret"...)
		text := (&Damage{"t", key, errors.New("torn")}).Error()
		if !strings.Contains(text, fmt.Sprintf("%x", key[:1+OwnerBytes])) || strings.Contains(text, fmt.Sprintf("%x", "secret")) != whole {
			t.Errorf("table %d: %s", id, text)
		}
	}
}
