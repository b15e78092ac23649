package course

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// volatile are the members that differ between two stores that did the same: what
// is drawn at random, and positions of commands and what begins at one, since a
// command that is repeated takes one too.
var volatile = []string{"receipt", "generation", "ownershipEpoch", "effectsToken", "cursor", "token", "keyId", "apiKey", "examined"}

// look notes what the store shows at this step, and of what was processed with it.
func look(name string) Step {
	return Step{Name: "look " + name, act: func(ctx context.Context, r *Run) error {
		seen, err := r.View(ctx)
		if err == nil {
			var probed []string
			probed, err = r.probe(ctx)
			seen = append(seen, probed...)
		}
		if err == nil {
			var listed []string
			listed, err = r.nodes()
			seen = append(seen, listed...)
		}
		if err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.state.Views[r.state.Next] = seen
		return nil
	}}
}

// View is everything that queries show of the store, a line for each thing.
func (r *Run) View(ctx context.Context) ([]string, error) {
	v := &view{ctx: ctx, run: r}
	v.all()
	return v.lines, v.err
}

// Examine is a view of a store that may be damaged: what queries were answered,
// the lines of each, and the errors of those that met damage.
func (r *Run) Examine(ctx context.Context) (lines map[string][]string, damage []error, err error) {
	v := &view{ctx: ctx, run: r, answers: map[string][]string{}}
	v.all()
	return v.answers, v.damage, v.err
}

func (v *view) all() {
	v.see(api.ResourcesList.Operation, &api.ResourcesListRequest{Limit: 1000})
	v.see(api.PrincipalsList.Operation, &api.PrincipalsListRequest{Limit: 1000})
	v.see(api.APIKeysList.Operation, &api.APIKeysListRequest{Limit: 1000})
	for _, p := range []api.PartitionRef{here, there} {
		for _, c := range []string{"docs", "spare"} {
			v.see(api.DocumentsList.Operation, &api.DocumentsListRequest{Partition: p, Collection: c, Limit: 1000})
		}
		for _, s := range []api.SourceRef{news, {Resource: "brief"}, {Resource: "past"}, trail} {
			s.Partition = p
			v.source(s)
		}
		for _, q := range []string{"jobs", "old"} {
			v.lane(api.LaneRef{Partition: p, Queue: q})
		}
	}
}

// probe repeats the inputs that the course has processed, with the same effects
// and under other ids: they are known, until inbox records go.
func (r *Run) probe(ctx context.Context) ([]string, error) {
	v, now := &view{ctx: ctx, run: r}, r.State()
	for i, s := range inputs() {
		if s.refused == "" {
			req := s.request(nil)
			req.SetCommandID(commandID(1_000*(now.Next+1)+i, now.Now))
			v.see(s.Operation, req)
		}
	}
	return v.lines, v.err
}

type view struct {
	ctx     context.Context
	run     *Run
	lines   []string
	err     error
	answers map[string][]string // when the store may be damaged
	damage  []error
}

// see asks one question. A refusal is an answer too.
func (v *view) see(o *api.Operation, req any) any {
	if v.err != nil {
		return nil
	}
	api.ApplyDefaults(req)
	a := Answer{operation: o, request: req}
	text, _ := json.Marshal(req)
	question := o.Name + " " + string(text)
	resp, err := v.run.send(v.ctx, &a)
	switch {
	case err != nil && v.answers != nil && fault.CodeOf(err) == fault.Corruption:
		v.damage = append(v.damage, err)
		return nil
	case err != nil && Failed(err):
		v.err = err
		return nil
	case err != nil:
		v.answer(question, []string{question + ": " + a.Reply})
		return nil
	}
	var whole map[string]any
	if v.err = json.Unmarshal([]byte(a.Reply), &whole); v.err != nil {
		return nil
	}
	v.answer(question, split(question, strip(whole).(map[string]any)))
	return resp
}

func (v *view) answer(question string, lines []string) {
	v.lines = append(v.lines, lines...)
	if v.answers != nil {
		v.answers[question] = lines
	}
}

// split makes a line of each element of a listing and one of the rest.
func split(what string, whole map[string]any) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		list, ok := whole[name].([]any)
		if !ok {
			list = []any{whole[name]}
		}
		for _, e := range list {
			b, _ := json.Marshal(e)
			lines = append(lines, fmt.Sprintf("%s %s: %s", what, name, b))
		}
	}
	return lines
}

// strip removes what is volatile.
func strip(x any) any {
	switch x := x.(type) {
	case map[string]any:
		for k := range x {
			if slices.Contains(volatile, k) {
				delete(x, k)
			} else {
				x[k] = strip(x[k])
			}
		}
	case []any:
		for i := range x {
			x[i] = strip(x[i])
		}
	}
	return x
}

func (v *view) source(s api.SourceRef) {
	read := &api.EventsReadRequest{Source: s, Limit: 1000}
	first := *read
	api.ApplyDefaults(&first)
	if _, err := v.run.engine.Do(v.ctx, v.run.engine.Root(), api.EventsRead.Operation, &first); fault.CodeOf(err) == fault.HistoryUnavailable {
		at, _ := strconv.ParseUint(fault.From(err).Facts["firstAvailable"], 10, 64)
		read.AfterPosition = at - 1
	}
	v.see(api.EventsRead.Operation, read)
	groups, _ := v.see(api.SubscriptionsList.Operation, &api.SubscriptionsListRequest{Source: s, Limit: 1000}).(*api.SubscriptionsListResponse)
	if groups == nil {
		return
	}
	for _, g := range groups.Groups {
		ref := api.GroupRef{Source: s, Group: g.Group}
		v.see(api.SubscriptionsStatus.Operation, &api.SubscriptionsStatusRequest{Group: ref, Rows: 1000})
		v.see(api.SubscriptionsDeadLettersList.Operation, &api.SubscriptionsDeadLettersListRequest{Group: ref, Limit: 1000})
	}
}

func (v *view) lane(l api.LaneRef) {
	v.see(api.QueuesStatus.Operation, &api.QueuesStatusRequest{Lane: l})
	list, _ := v.see(api.QueuesList.Operation, &api.QueuesListRequest{Lane: l, Limit: 1000}).(*api.QueuesListResponse)
	if list == nil {
		return
	}
	for _, m := range list.Messages {
		v.see(api.QueuesInspect.Operation, &api.QueuesInspectRequest{Lane: l, MessageID: m.MessageID, IncludePayload: true})
	}
}

// Difference shows what two views do not share; "" when they are equal.
func Difference(want, got []string) string {
	var b strings.Builder
	for _, l := range want {
		if !slices.Contains(got, l) {
			fmt.Fprintf(&b, "- %s\n", l)
		}
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			fmt.Fprintf(&b, "+ %s\n", l)
		}
	}
	if b.Len() == 0 && len(want) != len(got) {
		fmt.Fprintf(&b, "%d lines and %d\n", len(want), len(got))
	}
	return b.String()
}
