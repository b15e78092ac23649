package script

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/wire"
)

// call is one operation on its way through the steps of the door.
type call struct {
	h     *op.Handler
	req   any
	who   machine.Identity
	scope op.Scope
	door  op.Door
}

// newCall reads the request; the fault is a refusal at the door.
func (b *bed) newCall(name string, w *words, body string) (*call, *fault.Error) {
	h, ok := b.registry.Handler(name)
	if !ok {
		b.t.Fatalf("there is no operation %q", name)
	}
	c := &call{h: h, req: h.NewRequest(), door: op.Door{Tokens: sealer, Now: b.now}}
	c.who = machine.Identity{Principal: access.Root}
	if w.as != "" {
		c.who.Tenant, c.who.Principal = "default", w.as
	}
	if strings.TrimSpace(body) == "" {
		body = "{}"
	}
	if f := wire.DecodeJSON([]byte(b.literal(body)), c.req); f != nil {
		return nil, f
	}
	if r, ok := c.req.(api.CommandRequest); ok {
		c.who.ID = b.identity(w)
		r.SetCommandID(uuid.UUID(c.who.ID).String())
	}
	if r, ok := c.req.(api.CompositeRequest); ok {
		r.NameParts()
	}
	if v := api.Validate(c.req); len(v) > 0 {
		return nil, api.ValidationError(v)
	}
	b.place(c)
	return c, nil
}

// place finds the shard and the partition of a call.
func (b *bed) place(c *call) {
	c.scope = op.Scope{Now: b.now, Incarnation: incarnation, Registry: b.registry, Space: table.Space{Shard: system.CatalogShard}}
	if r, ok := c.req.(api.PartitionRequest); ok && c.h.Op.Scope == api.PartitionScope {
		c.scope.Partition = r.TargetPartition()
		c.scope.Space = table.Space{Shard: dataShard, Partition: partitions.Hash(c.scope.Partition)}
		c.who.Partition, c.who.Hash = c.scope.Partition, c.scope.Space.Partition
	}
}

// view is the call as a query over the present state. Queries are authorized
// here; commands by the machine.
func (b *bed) view(c *call, snap *kv.Snapshot) (*op.View, error) {
	v := &op.View{Scope: c.scope, Door: c.door}
	v.R = snap
	p, err := access.Find(snap, c.scope.Space.Shard, c.who.Tenant, c.who.Principal)
	if err == nil {
		v.Principal, err = p, access.Active(p, b.now)
	}
	for _, n := range c.h.Needs(c.req) {
		if err == nil {
			err = access.Allow(p, n)
		}
	}
	return v, err
}

func (b *bed) query(name string, w *words, body string) string {
	c, f := b.newCall(name, w, body)
	if f != nil {
		return b.refusal(f, "at the door")
	}
	snap := b.store.NewSnapshot()
	defer snap.Close()
	v, err := b.view(c, snap)
	var resp any
	if err == nil {
		resp, err = c.h.Run(v, c.req)
	}
	if err != nil {
		return b.refusal(b.rejection(err), "")
	}
	return b.answer(resp)
}

// rejection is the error as a value of the contract; any other ends the script.
func (b *bed) rejection(err error) *fault.Error {
	f := fault.From(err)
	if f == nil {
		b.t.Fatalf("not a refusal: %v", err)
	}
	return f
}

// apply sends a command. An answer that needed no place in the log says so.
func (b *bed) apply(name string, w *words, body string) string {
	c, f := b.newCall(name, w, body)
	if f != nil {
		return b.refusal(f, "at the door")
	}
	if c.h.Parts != nil {
		return b.answer(b.compose(c))
	}
	resp, f, note := b.send(c)
	if f != nil {
		return b.refusal(f, note)
	}
	if note != "" {
		note = "\n(" + note + ")"
	}
	return b.answer(resp) + note
}

// compose sends the parts of a composite one after the other. Later commands name
// the n-th part of "id x" with "id x.n".
func (b *bed) compose(c *call) any {
	parts := c.h.Parts(c.req)
	outcomes := make([]op.PartOutcome, len(parts))
	for i, p := range parts {
		id := uuid.MustParse(p.Req.GetCommandID())
		name := fmt.Sprintf("%s.%d", strings.TrimPrefix(b.idText[uuid.UUID(c.who.ID).String()], "id:"), i+1)
		b.ids[name], b.idText[id.String()] = id, "id:"+name
		h, _ := b.registry.Handler(p.Op.Name)
		part := &call{h: h, req: p.Req, who: c.who, door: c.door}
		part.who.ID = id
		b.place(part)
		resp, f, _ := b.send(part)
		outcomes[i] = op.PartOutcome{Status: api.PartCommitted, Response: resp}
		if f != nil {
			outcomes[i] = op.PartOutcome{Status: api.PartRejected, Err: f}
		}
	}
	return c.h.Join(c.req, outcomes)
}

// send is the way of one command through the door and the log. The note says where
// an answer came from, if not from evaluation.
func (b *bed) send(c *call) (resp any, f *fault.Error, note string) {
	fingerprint, encoded, err := wire.Fingerprint(c.h.Op.Number, c.req)
	b.must(err)
	if c.h.Prepare != nil {
		if _, err := c.h.Prepare(&c.door, c.req); err != nil {
			return nil, b.rejection(err), "at the door"
		}
		encoded, err = wire.EncodeLog(c.req)
		b.must(err)
	}
	cmd := machine.NewCommand(c.h.Op, c.who, fingerprint, encoded, nil)
	deletion, _ := c.req.(*api.ResourcesDeleteRequest)
	if deletion != nil && b.known(c, &cmd) {
		deletion = nil // its receipt answers
	}
	if deletion != nil {
		deletion.Fence = b.freeze(deletion, true)
		deletion.HoldsRows = b.holds(deletion)
		cmd.Request, err = wire.EncodeLog(deletion)
		b.must(err)
	}
	if resp, err := b.cheap(c, &cmd); err != nil {
		return nil, b.rejection(err), "without the log"
	} else if resp != nil {
		return resp, nil, "without the log"
	}
	out := b.entry(c.scope.Space.Shard, cmd)
	if out.Replayed {
		note = "from the receipt"
	}
	if deletion != nil && out.Err != nil {
		b.freeze(deletion, false)
	}
	if c.h.Op.Scope == api.CatalogScope {
		b.propagate()
	}
	if out.Err != nil {
		return nil, out.Err, note
	}
	if c.h.Finish != nil {
		b.must(c.h.Finish(&c.door, c.req, out.Response))
	}
	return out.Response, nil, note
}

// cheap is the certain answer from a snapshot, if the operation has one.
func (b *bed) cheap(c *call, cmd *machine.Command) (any, error) {
	if c.h.Cheap == nil || b.known(c, cmd) {
		return nil, nil
	}
	snap := b.store.NewSnapshot()
	defer snap.Close()
	v, err := b.view(c, snap)
	if err != nil {
		return nil, err
	}
	return c.h.Cheap(v, c.req)
}

// known says that the outcome of a command is stored.
func (b *bed) known(c *call, cmd *machine.Command) bool {
	snap := b.store.NewSnapshot()
	defer snap.Close()
	known, err := machine.HasReceipt(snap, c.scope.Space.Shard, cmd)
	b.must(err)
	return known
}

// freeze is the first step of a deletion, and what is undone after a refusal.
// A resource that does not exist is left to the deletion to refuse.
func (b *bed) freeze(r *api.ResourcesDeleteRequest, frozen bool) (fence uint64) {
	if b.resource(r) == nil {
		return 0
	}
	out := b.internal(system.CatalogShard, directory.Freeze.Operation, &directory.FreezeRequest{
		Tenant: r.Tenant, Database: r.Database, Name: r.Name, Frozen: frozen,
	})
	b.propagate()
	return out.(*directory.FreezeResponse).Fence
}

func (b *bed) resource(r *api.ResourcesDeleteRequest) *api.Resource {
	snap := b.store.NewSnapshot()
	defer snap.Close()
	found, err := directory.Lookup(snap, system.CatalogShard, r.Tenant, r.Database, r.Name)
	b.must(err)
	return found
}

// holds says whether any partition has a row of the resource.
func (b *bed) holds(r *api.ResourcesDeleteRequest) (found bool) {
	res := b.resource(r)
	if res == nil {
		return false
	}
	snap := b.store.NewSnapshot()
	defer snap.Close()
	b.must(partitions.Each(snap, dataShard, [16]byte{}, func(s table.Space, _ api.PartitionRef) (bool, error) {
		var err error
		found, err = b.registry.Holds(snap, res.Kind, table.Owner{Space: s, Resource: res.ID})
		return !found && err == nil, err
	}))
	return found
}

// configure is resources.configure in one line.
func (b *bed) configure(w *words, body string) string {
	kind, name := w.take(), w.take()
	request := fmt.Sprintf(`{"kind":%q,"name":%q`, kind, name)
	if body = strings.TrimSpace(body); body == "" {
		body = "{}"
	}
	if rest := strings.TrimSpace(body[1:]); rest != "}" {
		request += ","
	}
	return b.brief(b.apply("resources.configure", w, request+body[1:]))
}

// principal is principals.configure for one who has roles and nothing else.
func (b *bed) principal(w *words) string {
	return b.brief(b.apply("principals.configure", w,
		fmt.Sprintf(`{"principal":{"id":%q,"roles":["%s"],"policyEpoch":1}}`, w.take(), strings.Join(w.rest, `","`))))
}

// brief leaves of an accepted configuration no more than that.
func (b *bed) brief(answer string) string {
	switch {
	case strings.HasPrefix(answer, "refused"):
		return answer
	case strings.Contains(answer, `"created": true`):
		return "created"
	case strings.Contains(answer, `"changed": true`):
		return "changed"
	}
	return "unchanged"
}

// mutations makes the request of a commit from the objects of its body.
func (b *bed) mutations(body string) string {
	if strings.HasPrefix(strings.TrimSpace(body), `{"mutations"`) || strings.HasPrefix(strings.TrimSpace(body), `{"partition"`) {
		return body
	}
	return `{"mutations":[` + strings.Join(objects(b.t, body), ",") + `]}`
}

var (
	namedTexts = regexp.MustCompile(`"(?:token|cursor):[^"]*"`)
	commandIDs = regexp.MustCompile(`"id:[^"]*"`)
	instants   = regexp.MustCompile(`"t\+[0-9a-z.]+"`)
)

// literal puts what a caller would have in place of the names of a script.
func (b *bed) literal(body string) string {
	body = namedTexts.ReplaceAllStringFunc(body, func(name string) string {
		text, ok := b.given[strings.Trim(name, `"`)]
		if !ok {
			b.t.Fatalf("%s was not given out", name)
		}
		return `"` + text + `"`
	})
	body = commandIDs.ReplaceAllStringFunc(body, func(name string) string {
		u, ok := b.ids[strings.Trim(name, `"`)[len("id:"):]]
		if !ok {
			b.t.Fatalf("no command had the id %s", name)
		}
		return `"` + u.String() + `"`
	})
	return instants.ReplaceAllStringFunc(body, func(text string) string {
		return `"` + api.Time(b.instant(strings.Trim(text, `"`))).String() + `"`
	})
}

// name gives a text its name, always the same.
func (b *bed) name(prefix, text string) string {
	known := prefix + "=" + text
	if n, ok := b.names[known]; ok {
		return n
	}
	b.counts[prefix]++
	n := fmt.Sprintf("%s:%d", prefix, b.counts[prefix])
	if strings.HasPrefix(prefix, "token:") {
		n = fmt.Sprintf("%s#%d", prefix, b.counts[prefix])
	}
	b.names[known], b.given[n] = n, text
	return n
}

// refusal shows an error of the contract.
func (b *bed) refusal(f *fault.Error, note string) string {
	recorded := "not recorded"
	if f.Recorded {
		recorded = "recorded"
	}
	if note != "" {
		recorded += ", " + note
	}
	out := fmt.Sprintf("refused %s (%s), retry %s, %s\n  %s", f.Code, f.Reason, f.Retry, recorded, b.readable(f.Detail))
	for _, v := range f.Violations {
		out += fmt.Sprintf("\n  %s: %s", v.Path, b.readable(v.Message))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Facts)) {
		out += fmt.Sprintf("\n  %s = %s", name, b.readable(f.Facts[name]))
	}
	if f.RetryAfterMillis != 0 {
		out += fmt.Sprintf("\n  retry after %d ms", f.RetryAfterMillis)
	}
	return out
}
