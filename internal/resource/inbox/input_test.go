package inbox

import (
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/table"
)

// Rows that are stored must stay readable, and a repeat must find them: neither
// the keys, nor the records, nor what a fingerprint covers may change.
func TestTheStoredFormOfAProcessedMessageIsTheRecordedOne(t *testing.T) {
	in := ofMessage(table.Owner{Space: table.Space{Shard: 1, Partition: [16]byte{2}}, Resource: 3}, "m-1")
	k := key{in.owner, in.id, "billing", 4}
	print, err := fingerprint(&k, []api.Mutation{output("out", "o")})
	if err != nil {
		t.Fatal(err)
	}
	const digest = "823543cf11de5b4350e0c1277cdf032818078b615f53348c5b2f82c60ad005d9"
	const id = "000102000000000000000000000000000000000000036d2d31000162696c6c696e6700010000000000000004"
	for what, c := range map[string]struct {
		got  []byte
		want string
	}{
		"fingerprint":  {print[:], digest},
		"key":          {processed.Bytes(k), "46" + id},
		"record":       {processed.Encode(nil, &record{print, 5, 6, 7}), "01" + digest + "05060e"},
		"order key":    {order.Bytes(orderKey{k.Owner, 7, 5}), "470001020000000000000000000000000000000000000380000000000000070000000000000005"},
		"order record": {order.Encode(nil, &k), "01" + id},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s is %s, was %s", what, got, c.want)
		}
	}
}

func TestEveryInputHasAnIdOfItsOwn(t *testing.T) {
	name := rapid.StringMatching(`[a-c0-2/:.|-]{1,4}`) // identifiers have no control characters
	number := rapid.Uint64Range(1, 12)
	rapid.Check(t, func(t *rapid.T) {
		type what struct {
			kind, a, b string
			m, n       uint64
		}
		space := table.Space{Shard: 1}
		owner := table.Owner{Space: space, Resource: 5}
		seen := map[string]what{}
		for range 30 {
			w := what{kind: rapid.SampledFrom([]string{"message", "topic", "stream", "elsewhere"}).Draw(t, "kind")}
			var in Input
			switch w.kind {
			case "message":
				w.a = name.Draw(t, "id")
				in = ofMessage(owner, w.a)
			case "topic":
				w.m, w.n = number.Draw(t, "generation"), number.Draw(t, "position")
				in = OfEvent(owner, "", w.m, w.n)
			case "stream":
				w.a, w.m, w.n = name.Draw(t, "stream"), number.Draw(t, "generation"), number.Draw(t, "position")
				in = OfEvent(owner, w.a, w.m, w.n)
			case "elsewhere":
				w.a, w.b = name.Draw(t, "source"), name.Draw(t, "id")
				in = ofElsewhere(space, w.a, w.b)
			}
			if other, taken := seen[in.id]; taken && other != w {
				t.Fatalf("%+v and %+v have one id", w, other)
			}
			seen[in.id] = w
			home := w.kind == "elsewhere"
			for resource, ours := range map[uint32]bool{elsewhere: home, 5: !home} {
				if wellFormed(table.Owner{Space: space, Resource: resource}, in.id) != ours {
					t.Fatalf("%+v: resource %d may have it: %v", w, resource, !ours)
				}
			}
			k := key{in.owner, in.id, "scope", 1}
			if info := processed.Info(); !sameKey(info, processed.Bytes(k), k) {
				t.Fatalf("%+v: its key is read as another", w)
			}
		}
	})
}

func sameKey(info table.Info, stored []byte, want key) bool {
	got, _, err := info.Read(stored, processed.Encode(nil, &record{}))
	return err == nil && got == want
}

func TestAnInputIsNamedForAPerson(t *testing.T) {
	owner := table.Owner{Resource: 5}
	long := strings.Repeat("x", 256)
	for want, in := range map[string]Input{
		`message "m-1"`:                                        ofMessage(owner, "m-1"),
		`input "evt" of source "pay"`:                          ofElsewhere(table.Space{}, "pay", "evt"),
		`the event at position 17 (generation 2)`:              OfEvent(owner, "", 2, 17),
		`the event at position 1 of stream "s" (generation 3)`: OfEvent(owner, "s", 3, 1),
		`message "` + long + `"`:                               ofMessage(owner, long),
	} {
		if got := describe(in.id); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
