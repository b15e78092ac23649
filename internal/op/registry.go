package op

import (
	"fmt"
	"slices"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/table"
)

// Resource is everything one resource package brings.
type Resource struct {
	Name      string
	Tables    []table.Info
	Handlers  []Handler
	Mutations []Mutation
	Dues      []Due
	// Before tells an audit what the checks of all packages ask it (Audit.Partitions,
	// Audit.Standing). It runs before any Check, and reports nothing.
	Before func(*Audit) error
	// Check verifies the package's invariants over one shard: it reads its rows with
	// Each, reports what is wrong, and says which rows they imply (derive.go).
	Check func(*Audit) error
	// Owned says that the keys of all tables begin with a table.Owner, whose resource
	// may be deleted while rows of it stay. Packages with Kinds need not say it.
	Owned bool
	// Kinds are the kinds of resources the package keeps rows of. Several packages
	// may keep rows of one kind; the keys of all of them start with the owner.
	Kinds []api.ResourceKind
	// Purge removes at most budget rows of one deleted resource in one partition;
	// fewer than budget means that the package has none left there.
	Purge func(c *Ctx, owner table.Owner, budget int) (removed int, err error)
	// Changed is told, in a data shard, that a definition of one of the Kinds was
	// replaced; nil where that changes nothing that is stored. Its work must be
	// bounded, whatever the resource holds.
	Changed func(c *Ctx, old, now *api.Resource) error
	// Pins visits what the package holds back in a source, in an order that the
	// state alone decides; nil where it never does. source is the key of the
	// source: the scope may be a tick's, without its partition and principal.
	Pins func(s *Scope, source []byte, visit func(Pin) (more bool, err error)) error
}

// Registry is the frozen set of operations. It is read only after NewRegistry.
type Registry struct {
	resources []Resource
	byName    map[string]*Handler
	byNumber  map[uint16]*Handler
	mutations map[string]*Mutation
	dues      map[table.DueKind]*Due
	kinds     map[api.ResourceKind][]*Resource
}

// NewRegistry joins the resources and refuses any clash.
func NewRegistry(resources []Resource) (*Registry, error) {
	r := &Registry{
		resources: resources,
		byName:    map[string]*Handler{}, byNumber: map[uint16]*Handler{},
		mutations: map[string]*Mutation{}, dues: map[table.DueKind]*Due{},
		kinds: map[api.ResourceKind][]*Resource{},
	}
	tables := map[table.ID]string{}
	for i := range resources {
		res := &resources[i]
		for _, t := range res.Tables {
			if other, taken := tables[t.ID]; taken {
				return nil, fmt.Errorf("op: table id %d belongs to %s and %s", t.ID, other, t.Name)
			}
			tables[t.ID] = t.Name
		}
		if err := r.add(res); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Registry) add(res *Resource) error {
	for i := range res.Handlers {
		h := &res.Handlers[i]
		if r.byName[h.Op.Name] != nil || r.byNumber[h.Op.Number] != nil {
			return fmt.Errorf("op: operation %s (%d) is declared twice", h.Op.Name, h.Op.Number)
		}
		r.byName[h.Op.Name], r.byNumber[h.Op.Number] = h, h
	}
	for i := range res.Mutations {
		m := &res.Mutations[i]
		if r.mutations[m.Kind] != nil {
			return fmt.Errorf("op: mutation %s is declared twice", m.Kind)
		}
		r.mutations[m.Kind] = m
	}
	for i := range res.Dues {
		d := &res.Dues[i]
		if r.dues[d.Kind] != nil {
			return fmt.Errorf("op: due kind %d is declared twice", d.Kind)
		}
		r.dues[d.Kind] = d
	}
	for _, k := range res.Kinds {
		if res.Purge == nil || slices.Contains(r.kinds[k], res) {
			return fmt.Errorf("op: %s cannot purge kind %s, or says it twice", res.Name, k)
		}
		r.kinds[k] = append(r.kinds[k], res)
	}
	return nil
}

// Resources lists what the registry was made of, in order.
func (r *Registry) Resources() []Resource { return r.resources }

// Handler finds an operation by name.
func (r *Registry) Handler(name string) (*Handler, bool) { h, ok := r.byName[name]; return h, ok }

// Numbered finds an operation by its number in the log.
func (r *Registry) Numbered(n uint16) (*Handler, bool) { h, ok := r.byNumber[n]; return h, ok }

// Mutation finds a kind of mutation.
func (r *Registry) Mutation(kind string) (*Mutation, bool) {
	m, ok := r.mutations[kind]
	return m, ok
}

// Due finds the handler of a kind of due row.
func (r *Registry) Due(k table.DueKind) (*Due, bool) { d, ok := r.dues[k]; return d, ok }
