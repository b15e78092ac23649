package group

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

// same encodes a record, reads it back and wants the same; no beginning of it
// and nothing longer may be read.
func same[V any](t *testing.T, what string, v V, encode func([]byte, *V) []byte, decode func([]byte, *V) error) int {
	t.Helper()
	b := encode(nil, &v)
	var got V
	if err := decode(b, &got); err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("%s: %+v, %v; want %+v", what, got, err, v)
	}
	for n := range b {
		if decode(b[:n:n], new(V)) == nil {
			t.Errorf("%s: the first %d bytes of %d are read", what, n, len(b))
		}
	}
	if decode(append(bytes.Clone(b), 0), new(V)) == nil {
		t.Errorf("%s: a byte more is read", what)
	}
	if b[0] != recordVersion {
		t.Errorf("%s: version %d", what, b[0])
	}
	return len(b)
}

const huge = math.MaxUint64

func entries() map[string]entry {
	return map[string]entry{
		"ready": {State: ready, Attempts: 1, IssuedAt: start}, "blocked": {State: blocked, IssuedAt: start, Key: "k"},
		"waiting": {State: waiting, Attempts: 2, Failures: 1, LeaseLosses: 1, NotBefore: start + 5, LastFailure: "because"},
		"leased":  {State: leased, Attempts: 1, Until: start + 9, Batch: 7, First: start + 1}, "held": {State: held, Attempts: 5, Failures: 5},
		"longest": {State: leased, Attempts: huge, Failures: huge, LeaseLosses: huge, IssuedAt: math.MinInt64, Until: math.MinInt64, Batch: huge, First: math.MinInt64,
			Key: strings.Repeat("k", maxKeyBytes), LastFailure: strings.Repeat("f", 1024)},
	}
}

func TestRecordsAreReadBackAsTheyWereWritten(t *testing.T) {
	for what, e := range entries() {
		same(t, what, row{entry: e}, encodeRow, decodeRow)
		if e.State != blocked && e.State != held {
			same(t, "dead letter, "+what, deadLetter{entry: e, Version: 3, Redrives: 1, At: start, Event: []byte("event")}, encodeDead, decodeDead)
		}
	}
	same(t, "a run", row{End: 8, Matched: 3}, encodeRow, decodeRow)
	same(t, "the longest run", row{End: huge, Matched: huge}, encodeRow, decodeRow)
	same(t, "the start of a run", runStart{7}, runEnds.Encode, runEnds.Decode)
	same(t, "a skip", skip{Position: 5, Reason: "because", Principal: "root", At: start}, encodeSkip, decodeSkip)
	same(t, "a lease", lease{Principal: "p", Epoch: 4, Session: "s", Places: []uint64{2, 3, 900}}, encodeLease, decodeLease)
	full := lease{Principal: strings.Repeat("p", 256), Epoch: huge, Session: strings.Repeat("s", 256), Places: make([]uint64, maxLeasePlaces)}
	for i := range full.Places {
		full.Places[i] = uint64(i+1) << 55
	}
	if n := same(t, "the longest lease", full, encodeLease, decodeLease); n > 4<<10 {
		t.Errorf("the longest lease row has %d bytes", n)
	}
	for _, n := range []int{0, maxLeasePlaces + 1} {
		bad := full
		bad.Places = make([]uint64, n)
		if decodeLease(encodeLease(nil, &bad), new(lease)) == nil {
			t.Errorf("a lease of %d places is read", n)
		}
	}
}

func TestAHeadIsReadBackWithEveryField(t *testing.T) {
	var h head
	n := uint64(100)
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		n++
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		case reflect.Array:
			for i := range v.Len() {
				fill(v.Index(i))
			}
		case reflect.Uint64:
			v.SetUint(n)
		case reflect.Int64:
			v.SetInt(int64(n))
		case reflect.String:
			v.SetString("text")
		case reflect.Bool:
			v.SetBool(true)
		default:
			t.Fatalf("a field of kind %s", v.Kind())
		}
	}
	fill(reflect.ValueOf(&h).Elem())
	h.Counts[finished], h.DeadCounts[finished] = 0, 0 // no position is counted there
	same(t, "a head", h, encodeHead, decodeHead)
	same(t, "an empty head", head{}, encodeHead, decodeHead)
	worst := head{FailureCode: failedAttempts}
	for _, v := range worst.unsigned() {
		*v = huge
	}
	if size := len(encodeHead(nil, &worst)); size > 512 {
		t.Errorf("a head has %d bytes", size)
	}
}

func TestADefinitionIsReadBackWhole(t *testing.T) {
	d := definition{
		ID: 7, CreatedAt: start, Tenant: "default", Wanted: defined(api.GroupDefinition{
			DataPrincipal: "data", Filter: api.GroupFilter{EventTypes: []string{"a", "b*"}, Headers: map[string][]string{"x": {"1", "2"}, "y": {}}},
			Policy: api.GroupPolicy{Ordered: api.OrderPerKey, OrderingHeader: "account"},
		}),
	}
	d.Fingerprint = fingerprintOf(&d.Wanted)
	same(t, "a definition", d, encodeDefinition, decodeDefinition)
}

func TestRecordsOfUnknownStatesAreDamage(t *testing.T) {
	e := entry{State: ready, Attempts: 1, IssuedAt: start}
	b := encodeRow(nil, &row{entry: e})
	for s := range byte(255) {
		b[1] = s
		err := decodeRow(b, new(row))
		if fine := state(s) == ready || state(s) == blocked || state(s) == held; fine != (err == nil) {
			t.Errorf("state %d: %v", s, err)
		}
	}
	b = encodeRow(nil, &row{entry: e})
	for flags := range byte(255) {
		b[2] = flags
		if err := decodeRow(b, new(row)); (err == nil) != (flags == 0) { // the others want more bytes, or are unknown
			t.Errorf("flags %d: %v", flags, err)
		}
	}
}

func TestKeysSortAsTheRowsAreLookedForAndAreReadBack(t *testing.T) {
	f := ref{Owner: table.Owner{Space: table.Space{Shard: 1, Partition: [16]byte{3}}, Resource: 9}, ID: 77}
	source := source.Key{Owner: f.Owner, StreamID: "s\x00\xff", Generation: 2}
	back := func(what string, b []byte, want any, got func(r *codec.KeyReader) any) {
		t.Helper()
		r := codec.NewKeyReader(b)
		if g := got(&r); r.End() != nil || !reflect.DeepEqual(g, want) {
			t.Errorf("%s: %+v (%v), want %+v", what, g, r.End(), want)
		}
	}
	n := name{source, "g"}
	back("name", n.append(nil), n, func(r *codec.KeyReader) any { return readName(r) })
	k := rowKey{f, 5}
	back("row", appendRow(nil, k), k, func(r *codec.KeyReader) any { return readRow(r) })
	o := orderKey{f, "k\x00", 5}
	back("order", appendOrder(nil, o), o, func(r *codec.KeyReader) any { return readOrder(r) })
	var readyKeys, timeKeys [][]byte
	for _, p := range []place{{false, 1}, {false, 300}, {true, 1}, {true, 256}} {
		k := readyKey{f, p}
		back("ready", appendReady(nil, k), k, func(r *codec.KeyReader) any { return readReady(r) })
		readyKeys = append(readyKeys, appendReady(nil, k))
		if placeOf(p.code()) != p || p.code() == gone {
			t.Errorf("place %+v has code %d", p, p.code())
		}
	}
	for _, x := range []timeKey{{f, -5, 9}, {f, 5, 1}, {f, 5, 2}, {f, 300, 0}} {
		back("time", appendTime(nil, x), x, func(r *codec.KeyReader) any { return readTime(r) })
		timeKeys = append(timeKeys, appendTime(nil, x))
	}
	for _, list := range [][][]byte{readyKeys, timeKeys} {
		for i := 1; i < len(list); i++ {
			if bytes.Compare(list[i-1], list[i]) >= 0 {
				t.Errorf("key %d does not sort before the next", i)
			}
		}
	}
}

func FuzzARowIsReadOrRefused(f *testing.F) {
	for _, e := range entries() {
		f.Add(encodeRow(nil, &row{entry: e}))
	}
	f.Add(encodeRow(nil, &row{End: 5, Matched: 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again row
		if decodeRow(b, &r) != nil {
			return
		}
		if err := decodeRow(encodeRow(nil, &r), &again); err != nil || again != r {
			t.Errorf("%+v is read back as %+v, %v", r, again, err)
		}
	})
}
