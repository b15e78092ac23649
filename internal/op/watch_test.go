package op

import (
	ending "context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keyload/keyload/internal/kv"
)

// A check may end with any error: what rows say is a finding, and that they could not
// be read, or that nobody waits any more, ends the audit.
func TestOnlyReadingAndStepsEndAnAudit(t *testing.T) {
	b := newAuditBed(t)
	b.write(func(tx *kv.Tx) {
		for i := range 2 * stepRows {
			things.Put(tx, thingKey{here, fmt.Sprint(i)}, &thing{Color: "red"})
		}
	})
	unusable, nobody := errors.New("is no color"), errors.New("nobody waits")
	ended, end := ending.WithCancel(t.Context())
	end()
	for what, c := range map[string]struct {
		row  error // of each row
		read error // of a look at another row
		step error
		ctx  ending.Context
		want error
	}{
		"nothing":                     {},
		"a row":                       {row: unusable},
		"a look at another row":       {read: unusable},
		"a step":                      {step: nobody, want: nobody},
		"a step, and a row":           {row: unusable, step: nobody, want: nobody},
		"reading":                     {ctx: ended, want: ending.Canceled},
		"reading, and a row":          {row: unusable, ctx: ended, want: ending.Canceled},
		"reading, and another's look": {read: unusable, ctx: ended, want: ending.Canceled},
	} {
		snap := b.store.NewSnapshot()
		if c.ctx != nil {
			snap.Within(c.ctx)
		}
		check := func(a *Audit) error {
			if c.read != nil {
				_, err := a.R.Shared(things.Bytes(thingKey{here, "1"}), func([]byte) (any, error) { return nil, c.read })
				if err = a.Survive(err); err != nil {
					return err
				}
			}
			return Each(a, &things, func(thingKey, *thing) error { return c.row })
		}
		r := shelf(Derived{})
		r.Check = check
		registry, err := NewRegistry([]Resource{r})
		b.must(err)
		a := NewAudit(Scope{R: snap, Space: here.Space, Registry: registry}, registry.Resources())
		a.Partitions, a.Standing = map[[16]byte]bool{here.Partition: true}, func(uint32) (Standing, error) { return queued, nil }
		a.Step = func(int64) error { return c.step }
		err = a.Run()
		b.must(snap.Close())
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: it ends with %v", what, err)
		}
		text := fmt.Sprint(a.Findings)
		if c.want == nil && strings.Contains(text, unusable.Error()) != (c.row != nil || c.read != nil) {
			t.Errorf("%s: it finds %s", what, text)
		}
	}
}
