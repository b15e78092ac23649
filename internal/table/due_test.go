package table

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
)

func dueOf(t interface{ Fatal(...any) }, r kv.Reader, shard uint16) (rows []DueKey) {
	err := DueRows.Scan(r, Range{Prefix: codec.AppendUint16(nil, shard)}, func(k DueKey, _ *None) (bool, error) {
		rows = append(rows, k)
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestArmMovesTheOneRowOfAnOwner(t *testing.T) {
	_, tx := openStore(t)
	owner := owner(1, 2).Append(nil)
	armed := int64(0)
	for _, when := range []int64{50, 50, 20, 90, 0, 0, -5, 7} {
		before := tx.Work()
		old := armed
		Arm(tx, 3, DueLane, owner, &armed, when)
		if armed != when {
			t.Errorf("armed is %d, want %d", armed, when)
		}
		want := []DueKey{{3, when, DueLane, string(owner)}}
		if when == 0 {
			want = nil
		}
		if got := dueOf(t, tx, 3); !slices.Equal(got, want) {
			t.Errorf("after arming %d: %v", when, got)
		}
		if w := tx.Work(); old == when && w.Puts+w.Deletes != before.Puts+before.Deletes {
			t.Errorf("arming %d again wrote", when)
		}
	}
}

func TestArmByNeverMovesAnInstantLater(t *testing.T) {
	_, tx := openStore(t)
	armed := int64(0)
	for _, step := range []struct{ when, want int64 }{{0, 0}, {50, 50}, {51, 50}, {50, 50}, {49, 49}, {0, 49}} {
		ArmBy(tx, 3, DueLane, []byte("o"), &armed, step.when)
		if armed != step.want {
			t.Errorf("after %d armed is %d, want %d", step.when, armed, step.want)
		}
	}
	if got := dueOf(t, tx, 3); len(got) != 1 || got[0].When != 49 {
		t.Errorf("the rows are %v", got)
	}
}

func TestKindsAndOwnersHaveRowsOfTheirOwn(t *testing.T) {
	_, tx := openStore(t)
	var a, b, c int64
	Arm(tx, 3, DueLane, []byte("o"), &a, 10)
	Arm(tx, 3, DuePurge, []byte("o"), &b, 10)
	Arm(tx, 3, DueLane, []byte("p"), &c, 10)
	Arm(tx, 3, DueLane, []byte("o"), &a, 0)
	want := []DueKey{{3, 10, DueLane, "p"}, {3, 10, DuePurge, "o"}}
	if got := dueOf(t, tx, 3); !slices.Equal(got, want) {
		t.Errorf("the rows are %v, want %v", got, want)
	}
}

func TestDueRowsAreInTheOrderOfTimeWithinAShard(t *testing.T) {
	_, tx := openStore(t)
	for i, when := range []int64{math.MaxInt64, 5, -3, 1 << 40, 1, math.MinInt64} {
		armed := int64(0)
		Arm(tx, 3, DueLane, fmt.Append(nil, "owner", i), &armed, when)
		Arm(tx, 4, DueLane, fmt.Append(nil, "owner", i), new(int64), 2)
	}
	rows := dueOf(t, tx, 3)
	if len(rows) != 6 || !slices.IsSortedFunc(rows, func(a, b DueKey) int {
		return map[bool]int{true: -1, false: 1}[a.When < b.When]
	}) {
		t.Errorf("the rows are %v", rows)
	}
}

// Whatever is armed in whatever order, there is exactly one row for each armed
// owner and kind, and it says what the owner remembers.
func TestTheDueTableAlwaysAgreesWithWhatOwnersRemember(t *testing.T) {
	_, tx := openStore(t)
	type who struct {
		kind  DueKind
		owner string
	}
	rapid.Check(t, func(t *rapid.T) {
		tx.Begin()
		defer tx.Drop()
		armed := map[who]*int64{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w := who{DueKind(rapid.IntRange(1, 3).Draw(t, "kind")), rapid.SampledFrom([]string{"a", "ab", "b"}).Draw(t, "owner")}
			if armed[w] == nil {
				armed[w] = new(int64)
			}
			arm := Arm
			if rapid.Bool().Draw(t, "by") {
				arm = ArmBy
			}
			arm(tx, 3, w.kind, []byte(w.owner), armed[w], int64(rapid.IntRange(0, 5).Draw(t, "when")))
		}
		rows := dueOf(t, tx, 3)
		for _, r := range rows {
			if p := armed[who{r.Kind, r.Owner}]; p == nil || *p != r.When {
				t.Fatalf("nobody remembers %+v", r)
			}
		}
		for w, p := range armed {
			if *p != 0 && !slices.Contains(rows, DueKey{3, *p, w.kind, w.owner}) {
				t.Fatalf("%+v remembers %d and has no row", w, *p)
			}
		}
	})
}
