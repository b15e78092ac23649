package op

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/table"
)

// purges is a Purge over a count of rows; nil has none.
func purges(rows *int) func(*Ctx, table.Owner, int) (int, error) {
	return func(_ *Ctx, _ table.Owner, budget int) (int, error) {
		if rows == nil {
			return 0, nil
		}
		n := min(budget, *rows)
		*rows -= n
		return n, nil
	}
}

// pins visits pins in the given order until it is told to stop.
func pins(of string, list ...Pin) func(*Scope, []byte, func(Pin) (bool, error)) error {
	return func(_ *Scope, source []byte, visit func(Pin) (bool, error)) error {
		for _, p := range list {
			if string(source) != of {
				continue
			}
			if more, err := visit(p); !more || err != nil {
				return err
			}
		}
		return nil
	}
}

func registry(t *testing.T, list ...Resource) *Registry {
	t.Helper()
	r, err := NewRegistry(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheLowestPinDoesNotDependOnTheOrderOfPinsAndPackages(t *testing.T) {
	all := []Pin{{"c", 3}, {"d", 2}, {"b", 2}, {"a", 9}}
	for i := range all {
		list := append(slices.Clone(all[i:]), all[:i]...)
		r := registry(t, Resource{}, Resource{Pins: pins("s", list[:1]...)}, Resource{}, Resource{Pins: pins("s", list[1:]...)})
		got, found, err := r.LowestPin(&Scope{}, []byte("s"))
		if !found || err != nil || got != (Pin{"b", 2}) {
			t.Errorf("of %v the lowest is %v (%t, %v)", list, got, found, err)
		}
		if got, found, err := r.LowestPin(&Scope{}, []byte("another")); found || err != nil {
			t.Errorf("another source has the pin %v (%v)", got, err)
		}
	}
	broken := errors.New("broken")
	r := registry(t, Resource{Pins: pins("s", Pin{"a", 1})}, Resource{Pins: func(*Scope, []byte, func(Pin) (bool, error)) error { return broken }})
	if got, found, err := r.LowestPin(&Scope{}, []byte("s")); !errors.Is(err, broken) || found {
		t.Errorf("with a package that fails: %v, %t, %v", got, found, err)
	}
}

func TestRowsOfAKindArePurgedPackageByPackageWithinOneBudget(t *testing.T) {
	for _, c := range []struct {
		budget  int
		removed []int
	}{{10, []int{7, 0}}, {7, []int{7, 0}}, {6, []int{6, 1, 0}}, {4, []int{4, 3, 0}}, {3, []int{3, 3, 1, 0}}, {1, []int{1, 1, 1, 1, 1, 1, 1, 0}}} {
		first, second, third, other := 3, 0, 4, 5
		kind := []api.ResourceKind{api.KindTopic}
		r := registry(t,
			Resource{Kinds: kind, Purge: purges(&first)}, Resource{Kinds: []api.ResourceKind{api.KindQueue}, Purge: purges(&other)},
			Resource{Kinds: kind, Purge: purges(&second)}, Resource{Kinds: kind, Purge: purges(&third)})
		for step, want := range c.removed {
			if third < 4 && first > 0 {
				t.Errorf("budget %d: the last package is purged before the first", c.budget)
			}
			got, err := r.Purge(nil, api.KindTopic, table.Owner{}, c.budget)
			if got != want || err != nil {
				t.Errorf("budget %d, step %d: %d rows (%v), want %d", c.budget, step, got, err, want)
			}
		}
		if other != 5 {
			t.Error("rows of another kind went")
		}
	}
	broken := errors.New("broken")
	r := registry(t, Resource{Kinds: []api.ResourceKind{api.KindTopic}, Purge: func(*Ctx, table.Owner, int) (int, error) { return 0, broken }})
	if _, err := r.Purge(nil, api.KindTopic, table.Owner{}, 1); !errors.Is(err, broken) {
		t.Errorf("a package that fails: %v", err)
	}
}

func TestEveryPackageOfAKindIsToldOfAChange(t *testing.T) {
	var told []string
	tell := func(name string) func(*Ctx, *api.Resource, *api.Resource) error {
		return func(_ *Ctx, old, now *api.Resource) error {
			told = append(told, fmt.Sprintf("%s%d%d", name, old.Version, now.Version))
			return nil
		}
	}
	topic, queue := []api.ResourceKind{api.KindTopic}, []api.ResourceKind{api.KindQueue}
	r := registry(t, Resource{Kinds: topic, Purge: purges(nil), Changed: tell("a")}, Resource{Kinds: topic, Purge: purges(nil)},
		Resource{Kinds: queue, Purge: purges(nil), Changed: tell("b")}, Resource{Kinds: topic, Purge: purges(nil), Changed: tell("c")})
	err := r.Changed(nil, &api.Resource{Kind: api.KindTopic, Version: 1}, &api.Resource{Kind: api.KindTopic, Version: 2})
	if err != nil || !slices.Equal(told, []string{"a12", "c12"}) {
		t.Errorf("told: %v (%v)", told, err)
	}
}

func TestAKindWithoutAPurgeIsRefused(t *testing.T) {
	if _, err := NewRegistry([]Resource{{Name: "half", Kinds: []api.ResourceKind{api.KindTopic}}}); err == nil {
		t.Error("nothing was said")
	}
}

func TestAResourceHoldsARowInAnyTableOfAnyPackageOfItsKind(t *testing.T) {
	s, err := kv.Open("db", kv.Options{FS: vfs.NewMem(), NoSync: true, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	tx := s.NewTx()
	defer func() {
		if err := errors.Join(tx.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}()
	topic := []api.ResourceKind{api.KindTopic}
	r := registry(t, Resource{Tables: []table.Info{{ID: 200}, {ID: 202}}, Kinds: topic, Purge: purges(nil)},
		Resource{Tables: []table.Info{{ID: 201}}}, Resource{Tables: []table.Info{{ID: 203}}, Kinds: topic, Purge: purges(nil)})
	owner := func(n uint32) table.Owner {
		return table.Owner{Space: table.Space{Shard: 1, Partition: [16]byte{1}}, Resource: n}
	}
	for _, row := range []struct {
		id    byte
		owner uint32
	}{{201, 5}, {200, 4}, {202, 6}, {203, 8}} {
		tx.Begin()
		tx.Put(append(owner(row.owner).Append([]byte{row.id}), 'x'), []byte{1})
	}
	for n, want := range map[uint32]bool{3: false, 4: true, 5: false, 6: true, 7: false, 8: true} {
		if got, err := r.Holds(tx, api.KindTopic, owner(n)); got != want || err != nil {
			t.Errorf("resource %d holds rows: %v, want %v (%v)", n, got, want, err)
		}
	}
	if got, err := r.Holds(tx, api.KindQueue, owner(4)); got || err != nil {
		t.Errorf("rows of another kind are held: %v", err)
	}
}
