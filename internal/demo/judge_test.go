package demo

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
)

// doneStore does the whole job without a kill and leaves the store.
func doneStore(t *testing.T) (dir string, input []delivery) {
	t.Helper()
	dir = t.TempDir()
	runDemo(t, Options{Workers: 8, Dir: dir, Keep: true})
	input, err := readInput()
	if err != nil {
		t.Fatal(err)
	}
	return dir, input
}

func readFound(t *testing.T, dir string) *found {
	t.Helper()
	f, err := readStore(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// hello is the repository most deliveries are about.
const hello = "Codertocat/Hello-World"

func TestTheComparisonSees(t *testing.T) {
	dir, input := doneStore(t)
	t.Run("EveryKindOfDefect", func(t *testing.T) { everyDefectIsSeen(t, dir, input) })
	t.Run("WhatWasDoneToTheStore", func(t *testing.T) { damageIsSeen(t, dir, input) })
}

func everyDefectIsSeen(t *testing.T, dir string, input []delivery) {
	sound := mustJSON(t, readFound(t, dir))
	for _, c := range []struct {
		name                  string
		defect                func(*found)
		lost, repeated, wrong int
	}{
		{"none", func(*found) {}, 0, 0, 0},
		{"document lost with its one count", func(f *found) { drop(&f.Repositories, at(f.Repositories, "electron/electron")) }, 2, 0, 0},
		{"document of nobody", func(f *found) { f.Repositories[0].ID = "x/y" }, 1 + 49, 1, 0},
		{"one delivery counted twice", func(f *found) { recount(f, "push", 1, 1) }, 0, 1, 0},
		{"one delivery not counted", func(f *found) { recount(f, "push", -1, -1) }, 1, 0, 0},
		{"total and counts differ", func(f *found) { recount(f, "push", 0, 1) }, 0, 0, 1},
		{"event of a stream lost at the end", func(f *found) { f.History[hello] = f.History[hello][:229] }, 1, 0, 0},
		{"stream lost", func(f *found) { delete(f.History, "github/hello-world") }, 2, 0, 0},
		{"event of a stream lost, its position too", func(f *found) { f.History[hello] = slices.Delete(f.History[hello], 0, 1) }, 1, 0, 229},
		{"event of a stream twice", func(f *found) { f.History[hello] = again(f.History[hello], "") }, 0, 1, 0},
		{"event of a stream twice, under another id", func(f *found) { f.History[hello] = again(f.History[hello], "x") }, 0, 1, 0},
		{"event of the topic lost", func(f *found) { f.Topic = f.Topic[:328] }, 1, 0, 0},
		{"event of the topic twice", func(f *found) { f.Topic = again(f.Topic, "") }, 0, 1, 0},
		{"event with another payload", func(f *found) { f.Topic[7].Digest = digest("ping", []byte("{}")) }, 1, 1, 0},
		{"two events in the wrong order", func(f *found) { f.Topic[7].Digest, f.Topic[8].Digest = f.Topic[8].Digest, f.Topic[7].Digest }, 0, 0, 2},
		{"event under another id", func(f *found) { f.Topic[7].ID = "x" }, 0, 0, 1},
		{"gap in the positions", func(f *found) { f.Topic[328].Position++ }, 0, 0, 1},
		{"message lost", func(f *found) { drop(&f.Messages, 3) }, 1, 0, 0},
		{"message given up", func(f *found) { f.Messages[3].State = api.StateDeadLettered }, 1, 0, 0},
		{"message still leased", func(f *found) { f.Messages[3].State = api.StateLeased }, 1, 0, 0},
		{"message twice", func(f *found) { f.Messages = append(f.Messages, f.Messages[3]) }, 0, 1, 0},
		{"message of nobody", func(f *found) { f.Messages = append(f.Messages, foundMessage{ID: "x", State: api.StateReady}) }, 0, 1, 0},
		{"effect document lost", func(f *found) { drop(&f.Notified, 3) }, 1, 0, 0},
		{"effect document written twice", func(f *found) { f.Notified[3].Revision = 2 }, 0, 1, 0},
		{"effect document of nobody", func(f *found) { f.Notified = append(f.Notified, foundDocument{ID: "x", Revision: 1}) }, 0, 1, 0},
		{"effect document with other content", func(f *found) { f.Notified[3].Document = json.RawMessage(`{}`) }, 0, 0, 1},
		{"effect event lost", func(f *found) { f.Effects = f.Effects[:77] }, 1, 0, 0},
		{"effect event twice", func(f *found) { f.Effects = again(f.Effects, "x") }, 0, 1, 0},
		{"effect counted twice", func(f *found) { retotal(f, `"push":7`, `"push":8`) }, 0, 1, 0},
		{"effect not counted", func(f *found) { retotal(f, `"push":7`, `"push":6`) }, 1, 0, 0},
		{"effect of another event counted", func(f *found) { retotal(f, `"push":7`, `"push":7,"fork":1`) }, 0, 1, 0},
		{"totals lost", func(f *found) { f.Totals = nil }, 78, 0, 0},
		{"totals under another id", func(f *found) { f.Totals[0].ID = "x" }, 78, 0, 0},
		{"other document beside the totals", func(f *found) { f.Totals = append(f.Totals, foundDocument{ID: "x"}) }, 0, 0, 1},
		{"group effect lost", func(f *found) { regroup(f, "audit", func(g *foundGroup) { g.Trail = g.Trail[:328] }) }, 1, 0, 0},
		{"group effect twice", func(f *found) { regroup(f, "reviews", func(g *foundGroup) { g.Trail = again(g.Trail, "x") }) }, 0, 1, 0},
		{"group effect of another group's event", func(f *found) {
			regroup(f, "reviews", func(g *foundGroup) {
				g.Trail = append(g.Trail, foundEvent{Position: 42, ID: "x", Digest: f.Groups["audit"].Trail[0].Digest})
			})
		}, 0, 1, 0},
		{"group effect with another payload", func(f *found) {
			regroup(f, "audit", func(g *foundGroup) { g.Trail[7].Digest = digest(trailType, []byte("{}")) })
		}, 1, 1, 0},
		{"group effect counted twice", func(f *found) { retally(f, "audit", `"ping":4`, `"ping":5`) }, 0, 1, 0},
		{"group effect not counted", func(f *found) { retally(f, "reviews", `"pull_request.opened":4`, `"pull_request.opened":3`) }, 1, 0, 0},
		{"group effect of no type counted", func(f *found) { retally(f, "reviews", `"pull_request.opened":4`, `"pull_request.opened":4,"push":1`) }, 0, 1, 0},
		{"tally lost", func(f *found) { drop(&f.Tallies, at(f.Tallies, "reviews")) }, 41, 0, 0},
		{"tally of nobody", func(f *found) { f.Tallies = append(f.Tallies, foundDocument{ID: "x"}) }, 0, 0, 1},
		{"group lost", func(f *found) { delete(f.Groups, "reviews") }, 41 + 329, 0, 1},
		{"checkpoint one behind", func(f *found) { regroup(f, "audit", func(g *foundGroup) { g.Checkpoint = 328 }) }, 1, 0, 0},
		{"checkpoint one too far", func(f *found) { regroup(f, "audit", func(g *foundGroup) { g.Checkpoint = 330 }) }, 0, 0, 1},
		{"gap left", func(f *found) {
			regroup(f, "reviews", func(g *foundGroup) { g.Checkpoint, g.Runs, g.Rows = 327, 1, 2 })
		}, 2, 0, 2},
		{"gap run left and not more", func(f *found) { regroup(f, "audit", func(g *foundGroup) { g.Runs = 1 }) }, 0, 0, 1},
		{"row of the window left", func(f *found) { regroup(f, "audit", func(g *foundGroup) { g.Rows = 1 }) }, 0, 0, 1},
		{"tail elsewhere", func(f *found) { regroup(f, "audit", func(g *foundGroup) { g.Tail = 330 }) }, 0, 0, 1},
		{"dead letter", func(f *found) { regroup(f, "audit", func(g *foundGroup) { g.DeadLetters = 1 }) }, 0, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &found{}
			if err := json.Unmarshal([]byte(sound), f); err != nil {
				t.Fatal(err)
			}
			c.defect(f)
			v := judge(input, f)
			if got := v.sum(); got.lost != c.lost || got.repeated != c.repeated || got.wrong != c.wrong {
				t.Errorf("%d lost, %d repeated, %d wrong; want %d, %d, %d: %q", got.lost, got.repeated, got.wrong, c.lost, c.repeated, c.wrong, v.problems)
			}
			if broken := c.lost+c.repeated+c.wrong > 0; broken != (len(v.problems) > 0) {
				t.Errorf("problems are %q", v.problems)
			}
			r := run{options: Options{Kills: 0}, input: input}
			r.conclude(f, v, 0)
			if broken := c.lost+c.repeated+c.wrong > 0; r.summary.proved(0) == broken {
				t.Errorf("proved: %t", !broken)
			}
		})
	}
}

func at(all []foundDocument, id string) int {
	return slices.IndexFunc(all, func(d foundDocument) bool { return d.ID == id })
}

func drop[T any](all *[]T, i int) { *all = slices.Delete(*all, i, i+1) }

// again adds the last event once more, at the next position.
func again(all []foundEvent, id string) []foundEvent {
	e := all[len(all)-1]
	e.Position++
	if id != "" {
		e.ID = id
	}
	return append(all, e)
}

// recount changes a count of hello and its total.
func recount(f *found, event string, by, total int) {
	d := &f.Repositories[at(f.Repositories, hello)]
	var r repositoryDocument
	if err := json.Unmarshal(d.Document, &r); err != nil {
		panic(err)
	}
	r.Events[event] += by
	r.Total += total
	d.Document = json.RawMessage(api.Of(r))
}

func retotal(f *found, old, new string) { replace(&f.Totals[0], old, new) }

// retally changes the tally of a group.
func retally(f *found, group, old, new string) {
	replace(&f.Tallies[at(f.Tallies, group)], old, new)
}

func replace(d *foundDocument, old, new string) {
	changed := bytes.Replace(d.Document, []byte(old), []byte(new), 1)
	if bytes.Equal(changed, d.Document) {
		panic(old + " is not in " + string(changed))
	}
	d.Document = changed
}

func regroup(f *found, name string, change func(*foundGroup)) {
	g := f.Groups[name]
	change(&g)
	f.Groups[name] = g
}

func damageIsSeen(t *testing.T, dir string, input []delivery) {
	id := ""
	for _, d := range input {
		if d.notice != nil {
			id = d.id
			break
		}
	}
	audit := &groups[0]
	moved := &groups[1]
	trail := audit.work(input)[0].payload
	for _, step := range []struct {
		name           string
		damage         func(api.Doer) error
		lost, repeated int
	}{
		{"a handler's event once more", commit(t, keyload.Append(effects, effectsStream, keyload.Event(effectType, effectPayload{id, textOf(input, id)}))), 0, 1},
		{"a handler's document removed", commit(t, keyload.Delete(notified, id)), 1, 1},
		{"a group's event once more", commit(t, keyload.Append(trails, audit.name, keyload.Event(trailType, trail))), 1, 2},
		{"a group's event counted once more", commit(t, api.Mutation{PatchDocument: &api.PatchDocument{
			Collection: tallies, ID: audit.name, Patches: []api.Patch{{Op: api.PatchIncrement, Path: "/" + trail.Type, Value: api.Of(1)}},
		}}), 1, 3},
		{"a group moved back by one", func(d api.Doer) error {
			at, err := api.Call(t.Context(), d, api.SubscriptionsStatus, &api.SubscriptionsStatusRequest{Group: moved.ref()})
			if err != nil {
				return err
			}
			_, err = api.Call(t.Context(), d, api.SubscriptionsSeek, &api.SubscriptionsSeekRequest{
				Group: moved.ref(), ExpectedGeneration: at.State.Generation, To: api.SeekPosition, Position: 329,
			})
			return err
		}, 2, 3},
	} {
		if err := change(t, dir, step.damage); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		v := judge(input, readFound(t, dir))
		if got := v.sum(); got.lost != step.lost || got.repeated != step.repeated || got.wrong != 0 {
			t.Errorf("%s: %d lost, %d repeated, %d wrong: %q", step.name, got.lost, got.repeated, got.wrong, v.problems)
		}
	}
}

func textOf(input []delivery, id string) string {
	i := slices.IndexFunc(input, func(d delivery) bool { return d.id == id })
	return input[i].notice.text()
}

func commit(t *testing.T, m api.Mutation) func(api.Doer) error {
	return func(d api.Doer) error {
		_, err := client.CallsOf(d).Commit(t.Context(), partition(), m)
		return err
	}
}

// change opens the store and does something to it.
func change(t *testing.T, dir string, damage func(api.Doer) error) error {
	t.Helper()
	db, err := keyload.Open(dir, keyload.Options{MustExist: true})
	if err != nil {
		return err
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	return damage(db)
}
