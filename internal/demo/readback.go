package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/internal/check"
)

// found is everything a fresh process read back with public operations.
type found struct {
	Repositories []foundDocument         `json:"repositories"`
	History      map[string][]foundEvent `json:"history"` // by stream
	Topic        []foundEvent            `json:"topic"`
	Messages     []foundMessage          `json:"messages"`
	Notified     []foundDocument         `json:"notified"`
	Effects      []foundEvent            `json:"effects"`
	Totals       []foundDocument         `json:"totals"`
	Tallies      []foundDocument         `json:"tallies"` // by group
	Groups       map[string]foundGroup   `json:"groups"`
	Findings     []string                `json:"findings"` // of the check of the whole store
	Rows         int64                   `json:"rows"`     // it looked at
}

type foundDocument struct {
	ID       string          `json:"id"`
	Revision uint64          `json:"revision"`
	Document json.RawMessage `json:"document"`
}

type foundEvent struct {
	Position uint64 `json:"position"`
	ID       string `json:"id"`
	Digest   string `json:"digest"`
}

type foundMessage struct {
	ID          string           `json:"id"`
	State       api.MessageState `json:"state"`
	Failures    int64            `json:"failures"`
	LeaseLosses int64            `json:"leaseLosses"`
}

// foundGroup is where a group stands, and what its handlers appended.
type foundGroup struct {
	Checkpoint  uint64       `json:"checkpoint"`
	Tail        uint64       `json:"tail"`
	Runs        int64        `json:"runs"` // gap runs
	Rows        int64        `json:"rows"` // of the window: unfinished positions and gap runs
	DeadLetters int64        `json:"deadLetters"`
	Retries     int64        `json:"retries"`
	LeaseLosses int64        `json:"leaseLosses"`
	Trail       []foundEvent `json:"trail"`
}

// readBack reads everything, checks the store, and tells the parent.
func readBack(ctx context.Context, dir string, w *lineWriter) error {
	f, err := read(ctx, dir)
	if err != nil {
		return err
	}
	report, err := check.Dir(ctx, dir, nil)
	if err != nil {
		return fmt.Errorf("check of the store: %w", err)
	}
	f.Rows = report.Rows
	for _, x := range report.Findings {
		f.Findings = append(f.Findings, x.Invariant+" at "+x.Where+": "+x.Text)
	}
	return w.write(line{Kind: lineFound, Found: f})
}

func read(ctx context.Context, dir string) (f *found, err error) {
	input, err := readInput()
	if err != nil {
		return nil, err
	}
	db, err := keyload.Open(dir, keyload.Options{MustExist: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	calls := client.CallsOf(db)
	f = &found{History: map[string][]foundEvent{}, Groups: map[string]foundGroup{}}
	for _, c := range []struct {
		collection string
		to         *[]foundDocument
	}{{repositories, &f.Repositories}, {notified, &f.Notified}, {totals, &f.Totals}, {tallies, &f.Tallies}} {
		if *c.to, err = collect(calls.Documents(ctx, partition(), c.collection, ""), document); err != nil {
			return nil, err
		}
	}
	for _, x := range input {
		if _, done := f.History[x.repository]; done {
			continue
		}
		if f.History[x.repository], err = stream(ctx, calls, history, x.repository); err != nil {
			return nil, err
		}
	}
	if f.Effects, err = stream(ctx, calls, effects, effectsStream); err != nil {
		return nil, err
	}
	source := keyload.Topic(partition(), topic)
	if f.Topic, err = collect(calls.Events(ctx, source, 0), event); err != nil {
		return nil, err
	}
	if f.Messages, err = collect(calls.Messages(ctx, lane(), ""), message); err != nil {
		return nil, err
	}
	for i := range groups {
		if f.Groups[groups[i].name], err = readGroup(ctx, calls, db, &groups[i]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func readGroup(ctx context.Context, calls client.Calls, d api.Doer, g *group) (foundGroup, error) {
	s, err := api.Call(ctx, d, api.SubscriptionsStatus, &api.SubscriptionsStatusRequest{Group: g.ref(), Rows: 1})
	if err != nil {
		return foundGroup{}, err
	}
	f := foundGroup{
		Checkpoint: s.State.Checkpoint, Tail: s.State.Tail, Runs: s.Counts.Runs, Rows: s.Counts.Rows,
		DeadLetters: s.Counts.DeadLetters, Retries: s.Totals.Nacked, LeaseLosses: s.Totals.LeasesLost,
	}
	f.Trail, err = stream(ctx, calls, trails, g.name)
	return f, err
}

func stream(ctx context.Context, calls client.Calls, set, id string) ([]foundEvent, error) {
	return collect(calls.Stream(ctx, api.StreamRef{Partition: partition(), StreamSet: set, StreamID: id}, 0), event)
}

// collect reads a whole iterator.
func collect[T, U any](all iter.Seq2[T, error], as func(T) U) ([]U, error) {
	out := []U{}
	for x, err := range all {
		if err != nil {
			return nil, err
		}
		out = append(out, as(x))
	}
	return out, nil
}

func document(d api.Document) foundDocument {
	return foundDocument{d.ID, d.Revision, json.RawMessage(d.Document)}
}

func event(e api.StoredEvent) foundEvent {
	return foundEvent{e.Position, e.EventID, digest(e.Type, e.Payload)}
}

func message(m api.MessageInfo) foundMessage {
	return foundMessage{m.MessageID, m.State, m.Failures, m.LeaseLosses}
}
