package op

import (
	"errors"
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// Finding is one violated invariant. It never holds a payload, a token or the
// fields of an index.
type Finding struct {
	Invariant string `json:"invariant"`
	Where     string `json:"where"`
	Text      string `json:"text"`
	// Derived says that rows which follow from others are not what these imply, so
	// that they can be made anew; every other finding needs a person.
	Derived bool `json:"derived,omitempty"`
}

// maxFindings bounds what one audit keeps: a shard with more is known to be
// unsound.
const maxFindings = 1000

// Audit is the check of one shard on one state. Every row is read once, in the
// order of keys; what rows say of each other is compared by sums (derive.go), so
// the memory follows the owners there are and not the rows.
type Audit struct {
	Scope
	Findings []Finding
	Left     int64 // findings beyond those that are kept
	Counts   map[string]int64
	// Rows and Bytes are of everything that was read, each row once.
	Rows, Bytes int64
	// Shards is how many data shards the store has; 0 when it is not known, and what
	// depends on it is not verified.
	Shards uint16
	// Position and Epoch are where the shard stands; 0 when it is not known.
	Position, Epoch uint64
	// Partitions are the named partitions of the shard, and Standing says how a
	// resource number stands. They are known before any check runs, from one of the
	// resources (Resource.Before) or from who makes the audit.
	Partitions map[[16]byte]bool
	Standing   func(number uint32) (Standing, error)
	// Hold is how many rows a check may hold at once to find out which rows are wrong
	// where sums say that some are; 0 is any number. Beyond it the sums are all that is
	// told.
	Hold int64
	// Step is called for every 512 rows with how many of the shard were read; in a
	// second pass over them it begins again. Its error ends the audit.
	Step func(rows int64) error

	resources []Resource
	home      map[table.ID]int  // place in resources of the one that keeps a table
	read      map[table.ID]bool // tables that were read in full
	counted   map[table.ID]bool // tables whose rows are in Rows
	current   int               // place of the resource whose check runs
	broken    map[int]bool      // resources with rows that cannot be read or trusted
	derived   map[table.ID]*derivation
	order     []table.ID // of derived, as they were declared
	place     place      // of the row read last
	picked    *picked    // the second pass; nil in the first
	doubted   map[table.Owner]bool
	stopped   bool // by an error of Step
	key       []byte
	value     []byte
}

// Standing is what becomes of the rows of a resource number.
type Standing struct {
	Known bool // the number was given
	Kind  api.ResourceKind
	Name  string
	Gone  bool // deleted
	// Removing says that the rows of a deleted one are being removed, from the
	// partition From on.
	Removing bool
	From     [16]byte
}

// NewAudit makes the audit of the scope's shard by the checks of some resources.
func NewAudit(s Scope, resources []Resource) *Audit {
	a := &Audit{
		Scope: s, Counts: map[string]int64{}, resources: resources, home: map[table.ID]int{}, read: map[table.ID]bool{}, counted: map[table.ID]bool{},
		broken: map[int]bool{}, derived: map[table.ID]*derivation{}, doubted: map[table.Owner]bool{},
	}
	for i := range resources {
		for _, t := range resources[i].Tables {
			a.home[t.ID] = i
		}
	}
	return a
}

// Run carries out every check, compares the derived rows and reads what no check
// has read. It is called once. The error says that the state could not be read;
// what is wrong with what was read is in Findings.
func (a *Audit) Run() error {
	watch(a)
	if err := before(a); err != nil {
		return err
	}
	if err := a.checks(); err != nil {
		return err
	}
	if err := (comparison{a}).compare(); err != nil {
		return err
	}
	return rest(a)
}

// before makes known what checks ask for, so that none depends on which ran first.
func before(a *Audit) error {
	for i := range a.resources {
		a.current = i
		if tell := a.resources[i].Before; tell != nil {
			if err := a.Survive(tell(a)); err != nil {
				return fmt.Errorf("%s: %w", a.resources[i].Name, err)
			}
		}
	}
	if a.Partitions == nil || a.Standing == nil {
		panic("op: an audit does not know the partitions of its shard, or how resources stand")
	}
	return nil
}

func (a *Audit) checks() error {
	for i := range a.resources {
		a.current = i
		if check := a.resources[i].Check; check != nil {
			if err := a.Survive(check(a)); err != nil {
				return fmt.Errorf("%s: %w", a.resources[i].Name, err)
			}
		}
	}
	return nil
}

// Survive notes a row that cannot be read or used, and lets an error of reading pass.
func (a *Audit) Survive(err error) error {
	var d *table.Damage
	switch {
	case errors.As(err, &d):
		a.Distrust()
		a.Report("record", a.Place(d.Key), "a row of table %s cannot be read: %v", d.Table, d.Cause)
	case err != nil && unread(a):
		return err
	case err != nil:
		a.Distrust()
		a.Report("record", a.resources[a.current].Name, "a row cannot be used, and what goes with it is not verified: %v", err)
	}
	return nil
}

// Distrust says that the rows which the running check has read, and found wrong,
// must not be taken for what others follow from: those are not compared.
func (a *Audit) Distrust() { a.broken[a.current] = true }

// rest reads the tables that no check has read.
func rest(a *Audit) error {
	for i := range a.resources {
		a.current = i
		for _, t := range a.resources[i].Tables {
			if a.read[t.ID] || t.ID == table.StoreInfo {
				continue
			}
			err := a.EachRaw(t, func(key, value []byte) error {
				_, _, err := t.Read(key, value)
				return a.Survive(err)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Each calls fn for every row of a table in the shard, in the order of keys. Rows
// that cannot be read are reported, those of a resource that is being removed
// counted; neither reaches fn.
func Each[K, V any](a *Audit, t *table.Table[K, V], fn func(k K, v *V) error) error {
	return a.EachRaw(t.Info(), func(key, value []byte) error {
		k, v, err := t.Row(key, value)
		if err == nil {
			err = fn(k, v)
		}
		return a.Survive(err)
	})
}

// stepRows is how many rows are read between calls of Step, about a millisecond.
const stepRows = 512

// EachRaw is Each without decoding; key and value are valid within the call only.
func (a *Audit) EachRaw(t table.Info, fn func(key, value []byte) error) error {
	prefix := codec.AppendUint16([]byte{byte(t.ID)}, a.Space.Shard)
	first := !a.read[t.ID]
	count := !a.counted[t.ID]
	a.read[t.ID], a.counted[t.ID] = true, true
	return a.R.Scan(prefix, codec.PrefixEnd(prefix), false, func(key, value []byte) (bool, error) {
		if count {
			a.Rows++
			a.Bytes += int64(len(key) + len(value))
			if a.Step != nil && a.Rows%stepRows == 0 {
				if err := a.Step(a.Rows); err != nil {
					a.stopped = true
					return false, err
				}
			}
		}
		if removed, err := visit(a, t.ID, key, first); err != nil || removed {
			return err == nil, err
		}
		return true, fn(key, value)
	})
}

// Report adds a finding.
func (a *Audit) Report(invariant, where, format string, args ...any) {
	a.add(Finding{Invariant: invariant, Where: where, Text: fmt.Sprintf(format, args...)})
}

// ReportDerived is Report of rows that follow from others and can be made anew, where
// the audit is not to say which.
func ReportDerived(a *Audit, invariant, where, format string, args ...any) {
	a.add(Finding{invariant, where, fmt.Sprintf(format, args...), true})
}

// Holds says that a check may hold so many rows.
func Holds(a *Audit, rows int64) bool { return a.Hold == 0 || rows <= a.Hold }

func (a *Audit) add(f Finding) {
	switch {
	case a.picked != nil: // the first pass has told of it
	case len(a.Findings) >= maxFindings:
		a.Left++
	default:
		a.Findings = append(a.Findings, f)
	}
}

// Count adds n to a named count.
func (a *Audit) Count(name string, n int64) { a.Counts[name] += n }

// Applied reports a position or epoch that the shard has not reached, or that is
// none.
func (a *Audit) Applied(where, what string, position, epoch uint64) {
	if !a.Reached(position, epoch) {
		a.Report("position", where, "%s is of position %d, epoch %d; the shard is at %d, %d", what, position, epoch, a.Position, a.Epoch)
	}
}

// Reached says that the shard has applied a position of an epoch, as far as is known.
func (a *Audit) Reached(position, epoch uint64) bool {
	return position > 0 && epoch > 0 && (a.Position == 0 || position <= a.Position) && (a.Epoch == 0 || epoch <= a.Epoch)
}

// Past reports an instant that logged time has not reached. Who reads millions of
// rows asks Future first: naming the place costs more than reading the row.
func (a *Audit) Past(where, what string, instant int64) {
	if a.Future(instant) {
		a.Report("time", where, "%s happened at %d, and the shard has reached %d only", what, instant, a.Now)
	}
}

// Future says that logged time has not reached one of the instants.
func (a *Audit) Future(instants ...int64) bool {
	for _, i := range instants {
		if i > a.Now {
			return true
		}
	}
	return false
}
