package machine

import (
	"fmt"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/table"
)

// TickOp is the operation number of a tick: the machine's own command, which no
// gateway can send.
const TickOp = 0

const (
	// tickOwners and tickRows bound one tick: owners visited, and rows each may
	// touch. What is left stays due and the next tick goes on.
	tickOwners = 64
	tickRows   = 256
)

// Ticked says what a tick did.
type Ticked struct {
	Owners  int   // due rows handled
	NextDue int64 // exact next instant; 0 when nothing is due ever, or what is due waits
}

// Tick is the command that handles what is due at its entry's instant.
func Tick() Command { return Command{Op: TickOp, Principal: "system"} }

// FirstDue is the earliest due instant of a shard; 0 when there is none.
func FirstDue(r kv.Reader, shard uint16) (int64, error) {
	first := int64(0)
	err := table.DueRows.Scan(r, table.Range{Prefix: codec.AppendUint16(nil, shard)}, func(k table.DueKey, _ *table.None) (bool, error) {
		first = k.When
		return false, nil
	})
	return first, err
}

// tick takes the due rows of at most tickOwners owners and lets their handlers
// do a bounded amount of work. Internal work has no terminal failure: an error
// of a handler stops the shard, it is never put aside. In a store that was restored
// and not let go on, it does nothing, whoever asked for it: see NextDue.
func (m *Machine) tick(c *op.Ctx) Outcome {
	out := Outcome{Position: c.Position}
	d, err := dispatch.State(m.tx, m.shard)
	if err != nil {
		out.Fatal = err
		return out
	}
	if d.Restored {
		return out
	}
	var due []table.DueKey
	err = table.DueRows.Scan(m.tx, table.Range{Prefix: codec.AppendUint16(nil, m.shard)}, func(k table.DueKey, _ *table.None) (bool, error) {
		if k.When > c.Now {
			return false, nil
		}
		due = append(due, k)
		return len(due) < tickOwners, nil
	})
	for _, k := range due {
		if err != nil {
			break
		}
		// A handler before this one may have armed the owner for another instant: that
		// row is handled when its own turn comes.
		var stands bool
		if stands, err = table.DueRows.Has(m.tx, k); err != nil || !stands {
			continue
		}
		table.DueRows.Delete(m.tx, k)
		if k.Kind == table.DueReceipts {
			err = m.prune(c, tickRows)
			continue
		}
		d, ok := m.registry.Due(k.Kind)
		if !ok {
			err = fmt.Errorf("a due row of kind %d has no handler in this program", k.Kind)
			continue
		}
		err = d.Apply(c, []byte(k.Owner), tickRows)
	}
	if err != nil {
		out.Fatal = err
		return out
	}
	m.nextDue, out.Fatal = FirstDue(m.tx, m.shard)
	out.Tick = Ticked{len(due), m.nextDue}
	return out
}
