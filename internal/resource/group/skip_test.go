package group

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
)

func TestTheFirstSkipIsTheOldestThatIsRemembered(t *testing.T) {
	for last, want := range map[uint64]uint64{0: 1, 1: 1, limits.GroupSkips - 1: 1, limits.GroupSkips: 1, limits.GroupSkips + 1: 2, limits.GroupSkips + 2: 3} {
		if got := firstSkip(&head{Skip: last}); got != want {
			t.Errorf("after %d skips it is %d, want %d", last, got, want)
		}
	}
}

func TestTheSkipsOfAStatusAreNotLookedForAmongForgottenOnes(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	const n = limits.GroupSkips + 4
	b.fill(n)
	for p := range uint64(n) {
		b.must(b.skip(p + 1))
	}
	stray := rowKey{b.number("g"), 1}
	b.write(func(c *op.Ctx) error { skips.Put(c.Tx, stray, &skip{Position: 1}); return nil })
	if s := b.status().Skipped; len(s) != limits.GroupSkips || s[0].Position != 5 || s[len(s)-1].Position != n {
		t.Errorf("%+v", s)
	}
	b.write(func(c *op.Ctx) error { skips.Delete(c.Tx, stray); return nil })
}
