package script

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
)

// shower shows keys and records of one state. It names what rows hold as
// numbers and hashes: resources, partitions, principals, command ids, instants.
type shower struct {
	b          *bed
	resources  map[uint32]string
	partitions map[[16]byte]string
	principals map[[16]byte]string
}

// rows shows every row of the data shard but its head, and the list of members, which
// only the catalog's shard has, in key order by name of
// the table, key and record apart. Without prefixes it is all tables.
func (b *bed) rows(prefixes []string) map[string]string {
	b.t.Helper()
	snap := b.store.NewSnapshot()
	defer snap.Close()
	s := b.newShower(snap)
	out := map[string]string{}
	for _, res := range b.registry.Resources() {
		for _, t := range res.Tables {
			if t.ID == table.ShardHead || t.ID == table.StoreInfo || !selected(t.Name, prefixes) {
				continue
			}
			shard := uint16(dataShard)
			if t.ID == table.Member || t.ID == table.Leadership {
				shard = system.CatalogShard
			}
			lower := codec.AppendUint16([]byte{byte(t.ID)}, shard)
			b.must(snap.Scan(lower, codec.PrefixEnd(lower), false, func(key, value []byte) (bool, error) {
				k, v, err := t.Read(key, value)
				b.must(err)
				name := strings.TrimRight(t.Name+" "+s.key(reflect.ValueOf(k)), " ")
				if _, taken := out[name]; taken {
					b.t.Errorf("two rows are shown as %s", name)
				}
				out[name] = strings.Join(s.fields(reflect.ValueOf(v).Elem()), " ")
				return true, nil
			}))
		}
	}
	return out
}

func selected(name string, prefixes []string) bool {
	match := func(p string) bool { return strings.HasPrefix(name, p) }
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, match)
}

func (b *bed) newShower(snap *kv.Snapshot) *shower {
	s := &shower{b, map[uint32]string{0: "elsewhere"}, map[[16]byte]string{{}: "catalog"}, map[[16]byte]string{}}
	b.must(directory.Each(snap, dataShard, func(r *api.Resource) (bool, error) {
		s.resources[r.ID] = r.Name
		return true, nil
	}))
	b.must(partitions.Each(snap, dataShard, [16]byte{}, func(p table.Space, ref api.PartitionRef) (bool, error) {
		s.partitions[p.Partition] = ref.Key
		return true, nil
	}))
	s.principals[access.Hash("", access.Root)] = "root"
	for _, name := range []string{"alice", "bob", "worker", "reader", "operator", "producer", "admin"} {
		s.principals[access.Hash("default", name)] = name
	}
	return s
}

// key joins the parts of a key.
func (s *shower) key(v reflect.Value) string {
	if v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[table.Owner]() || v.Type() == reflect.TypeFor[table.Space]() {
		return s.value("", v)
	}
	var parts []string
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name != "Shard" {
			parts = append(parts, s.value(name, v.Field(i)))
		}
	}
	return strings.Join(parts, " ")
}

// fields are the fields of a record that are not zero.
func (s *shower) fields(v reflect.Value) (out []string) {
	if v.Kind() != reflect.Struct {
		return []string{s.value("", v)}
	}
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			out = append(out, v.Type().Field(i).Name+"="+s.value(v.Type().Field(i).Name, f))
		}
	}
	return out
}

// states are the states of a message by their stored number, from 1.
var states = []api.MessageState{
	api.StateScheduled, api.StateReady, api.StateLeased, api.StateAcked, api.StateDeadLettered,
	api.StatePendingDeadLetter, api.StateExpired, api.StateCancelled,
}

// groupStates are the states of a position of a group, or of its dead letters, by
// their stored number, from 1.
var groupStates = []api.PositionState{
	api.PositionReady, api.PositionLeased, api.PositionWaiting, api.PositionBlocked, api.PositionHeld, api.PositionDead,
}

// dues are the kinds of due rows by their stored number.
var dues = []string{
	table.DueLane: "lane", table.DuePurge: "purge", table.DuePurgedIDs: "purgedIds", table.DueTombstone: "tombstones",
	table.DueReceipts: "receipts", table.DueInbox: "inbox", table.DueDeletion: "deletion",
	table.DueGroup: "group", table.DueLimit: "limit", table.DueAge: "age", table.DueRemoval: "removal",
}

func (s *shower) value(name string, v reflect.Value) string {
	switch v.Type() {
	case reflect.TypeFor[table.Owner]():
		return s.owner(v.Interface().(table.Owner))
	case reflect.TypeFor[table.Space]():
		return s.partition(v.Interface().(table.Space).Partition)
	case reflect.TypeFor[table.DueKind]():
		if n := int(v.Uint()); n < len(dues) {
			return dues[n]
		}
	}
	switch v.Kind() {
	case reflect.Int64:
		if n := v.Int(); near(n) {
			return when(n)
		}
	case reflect.Uint8:
		if v.Type().Name() == "state" && v.Uint() > 0 {
			if strings.HasSuffix(v.Type().PkgPath(), "/group") {
				return string(groupStates[v.Uint()-1])
			}
			return string(states[v.Uint()-1])
		}
	case reflect.String:
		return s.text(v.String())
	case reflect.Struct:
		return "{" + strings.Join(s.fields(v), " ") + "}"
	case reflect.Pointer:
		return s.value(name, v.Elem())
	case reflect.Array, reflect.Slice:
		return s.list(name, v)
	}
	return fmt.Sprint(v)
}

func (s *shower) list(name string, v reflect.Value) string {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		raw := make([]byte, v.Len())
		for i := range raw { // the field may be unexported
			raw[i] = byte(v.Index(i).Uint())
		}
		return s.bytes(name, raw)
	}
	parts := make([]string, v.Len())
	for i := range parts {
		parts[i] = s.value(name, v.Index(i))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// bytes shows texts as they are and hashes by what they stand for. Of anything
// else it says nothing: the digest covers it.
func (s *shower) bytes(name string, raw []byte) string {
	if len(raw) == 16 {
		if id, ok := s.b.idText[uuid.UUID(raw).String()]; ok {
			return id
		}
		switch name {
		case "Partition":
			return s.partition([16]byte(raw))
		case "Principal":
			if p, ok := s.principals[[16]byte(raw)]; ok {
				return p
			}
		}
	}
	if printable(string(raw)) {
		return s.b.readable(string(raw))
	}
	return "(binary)"
}

// text shows a text, or the owner that a due row holds as one.
func (s *shower) text(text string) string {
	if printable(text) {
		return s.b.readable(text)
	}
	r := codec.NewKeyReader([]byte(text))
	switch {
	case len(text) >= table.OwnerBytes:
		if o := table.ReadOwner(&r); o.Shard == dataShard && s.resources[o.Resource] != "" {
			if rest := string(r.Rest()); rest != "" {
				return fmt.Sprintf("%s %q", s.owner(o), rest)
			}
			return s.owner(o)
		}
	case len(text) == 4:
		return fmt.Sprintf("number %d", r.Uint32())
	}
	return fmt.Sprintf("%q", text)
}

func printable(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, unicode.IsControl) < 0
}

// owner names a resource, and its partition where it is not the usual one.
func (s *shower) owner(o table.Owner) string {
	name, ok := s.resources[o.Resource]
	if !ok {
		name = fmt.Sprintf("number %d", o.Resource)
	}
	if p := s.partition(o.Partition); p != "main" {
		return name + "@" + p
	}
	return name
}

func (s *shower) partition(hash [16]byte) string {
	if name, ok := s.partitions[hash]; ok {
		return name
	}
	return "unknown"
}

// lines shows rows, each with a sign before it.
func lines(rows map[string]string, sign func(name string) string) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if sign != nil {
			out.WriteString(sign(name))
		}
		out.WriteString(name)
		if rows[name] != "" {
			out.WriteString(": " + rows[name])
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// diff shows what changed since mark, and marks again.
func (b *bed) diff(w *words) string {
	if b.marked == nil {
		b.t.Fatal("diff needs a mark")
	}
	now := b.rows(nil)
	old := b.marked
	b.marked = now
	shown := func(rows map[string]string) map[string]string {
		out := map[string]string{}
		for name, v := range rows {
			if selected(name, w.rest) {
				out[name] = v
			}
		}
		return out
	}
	if d := difference(shown(old), shown(now)); d != "" {
		return d
	}
	return "nothing"
}

// difference shows rows that were added (+), removed (-) or changed (~).
func difference(old, now map[string]string) string {
	changed := map[string]string{}
	for name, v := range now {
		if was, ok := old[name]; !ok || was != v {
			changed[name] = v
		}
	}
	for name, v := range old {
		if _, ok := now[name]; !ok {
			changed[name] = v
		}
	}
	return lines(changed, func(name string) string {
		_, before := old[name]
		_, after := now[name]
		switch {
		case !before:
			return "+ "
		case !after:
			return "- "
		}
		return "~ "
	})
}
