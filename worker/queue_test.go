package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/worker"
)

func TestEffectsInboxAndAcknowledgementOfAHandlerCommitTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(3)
		r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			if m.Token != "" || m.LeaseUntil != 0 || m.Lane != b.lane || m.Attempt != 1 {
				t.Errorf("got %+v", m)
			}
			var n int
			if err := m.Decode(&n); err != nil {
				return err
			}
			tx.Put("docs", m.MessageID, map[string]int{"n": n})
			tx.Patch("docs", m.MessageID, api.Patch{Op: api.PatchIncrement, Path: "/n", Value: api.Of(10)})
			tx.Publish("news", client.Event("Worked", n))
			done(tx, m)
			if n == 2 {
				tx.PutAt("docs", "fixed", 0, map[string]int{})
				tx.Delete("docs", m.MessageID)
				tx.Enqueue("jobs", api.Message{MessageID: "next", Payload: api.Of(7)})
			}
			return nil
		}, worker.Options{})
		b.until("all are handled", b.emptied)
		check(t, r.end())
		if got := b.effects(); len(got) != 4 || !slices.Contains(got, "next") {
			t.Errorf("effects %v", got)
		}
		for id, want := range map[string]string{"m-1": `{"n":11}`, "next": `{"n":17}`, "fixed": `{}`} {
			doc, err := b.db.Get(t.Context(), b.lane.Partition, "docs", id)
			check(t, err)
			if string(doc.Document) != want {
				t.Errorf("%s is %s, want %s", id, doc.Document, want)
			}
		}
		_, err := b.db.Get(t.Context(), b.lane.Partition, "docs", "m-2")
		is(t, err, fault.NotFound, "")
		if s := b.message("m-0"); s.State != api.StateAcked {
			t.Errorf("state %s", s.State)
		}
	})
}

func TestAnErrorFailsTheAttemptWithItsTextAndThePolicySaysWhenToRetry(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.retryEvery(10*time.Second, 3)
		b.enqueue(1)
		var at []time.Time
		failed := errors.New("the mail server did not answer")
		var seen errorsOf
		r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			at = append(at, time.Now())
			done(tx, m) // not committed
			return failed
		}, worker.Options{OnError: seen.add})
		b.until("it is a dead letter", func() bool { return b.message("m-0").State == api.StateDeadLettered })
		check(t, r.end())
		m := b.message("m-0")
		if m.LastFailure != failed.Error() || m.Attempts != 3 || len(b.effects()) != 0 {
			t.Errorf("%+v, effects %v", m, b.effects())
		}
		if len(at) != 3 || at[1].Sub(at[0]) != 10*time.Second || at[2].Sub(at[1]) != 10*time.Second {
			t.Errorf("attempts at %v", at)
		}
		if len(seen.all()) != 3 || !seen.has(failed) {
			t.Errorf("told %v", seen.all())
		}
	})
}

func TestRetryAndTerminalDecideInsteadOfThePolicy(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.retryEvery(10*time.Second, 5)
		b.enqueue(3)
		at := map[string][]time.Time{}
		r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			at[m.MessageID] = append(at[m.MessageID], time.Now())
			switch {
			case m.MessageID == "m-0":
				return fmt.Errorf("wrapped: %w", worker.Terminal(errors.New("no such order")))
			case m.MessageID == "m-1" && m.Attempt == 1:
				return worker.Retry(time.Minute, errors.New("too many requests"))
			case m.MessageID == "m-2" && m.Attempt == 1:
				return worker.Retry(-time.Minute, nil)
			}
			return nil
		}, worker.Options{Concurrency: 1})
		b.until("all are handled", b.emptied)
		check(t, r.end())
		if m := b.message("m-0"); m.State != api.StateDeadLettered || m.LastFailure != "wrapped: no such order" || m.Attempts != 1 {
			t.Errorf("%+v", m)
		}
		if x := at["m-1"]; len(x) != 2 || x[1].Sub(x[0]) != time.Minute {
			t.Errorf("tried at %v", x)
		}
		if x := at["m-2"]; len(x) != 2 || x[1].Sub(x[0]) != 0 || b.message("m-2").LastFailure == "" {
			t.Errorf("tried at %v", x)
		}
	})
}

func TestAPanicFailsTheAttemptAndIsLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.retryEvery(time.Second, 5)
		b.enqueue(3)
		var out bytes.Buffer
		var seen errorsOf
		r := b.queue(func(_ context.Context, _ *worker.Tx, m *worker.Message) error {
			if m.Attempt > 1 {
				return nil
			}
			switch m.MessageID {
			case "m-0":
				panic("index out of range")
			case "m-1":
				runtime.Goexit()
			}
			panic(nil)
		}, worker.Options{Concurrency: 1, OnError: seen.add, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		b.until("all are handled", b.emptied)
		check(t, r.end())
		if m := b.message("m-0"); m.LastFailure != "panic: index out of range" || m.Failures != 1 || m.State != api.StateAcked {
			t.Errorf("%+v", m)
		}
		if m := b.message("m-1"); !strings.Contains(m.LastFailure, "ended its goroutine") || m.State != api.StateAcked {
			t.Errorf("%+v", m)
		}
		if m := b.message("m-2"); !strings.HasPrefix(m.LastFailure, "panic: ") || m.State != api.StateAcked {
			t.Errorf("%+v", m)
		}
		var p *worker.PanicError
		if all := seen.all(); len(all) != 3 || !errors.As(all[0], &p) || p.Value != "index out of range" {
			t.Errorf("told %v", all)
		}
		if !strings.Contains(out.String(), "queue_test.go") || !strings.Contains(out.String(), "the handler panicked") {
			t.Errorf("the log does not say where:\n%s", out.String())
		}
	})
}

func TestAFailureTextIsCutToWhatAMessageKeeps(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.retryEvery(time.Second, 1)
		texts := map[string]struct{ given, kept string }{
			"m-0": {strings.Repeat("x", 1023), strings.Repeat("x", 1023)},
			"m-1": {strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
			"m-2": {strings.Repeat("x", 1025), strings.Repeat("x", 1024)},
			"m-3": {strings.Repeat("x", 1022) + "é", strings.Repeat("x", 1022) + "é"},
			"m-4": {strings.Repeat("x", 1023) + "é", strings.Repeat("x", 1023)},
			"m-5": {"a\xffb", "a\uFFFDb"},
			"m-6": {"", ""},
		}
		b.enqueue(len(texts))
		r := b.queue(func(_ context.Context, _ *worker.Tx, m *worker.Message) error {
			return errors.New(texts[m.MessageID].given)
		}, worker.Options{})
		b.until("all are dead letters", func() bool { return b.status().Counts.DeadLettered == int64(len(texts)) })
		check(t, r.end())
		for id, want := range texts {
			if got := b.message(id).LastFailure; got != want.kept {
				t.Errorf("%s keeps %d bytes %q, want %d", id, len(got), got, len(want.kept))
			}
		}
	})
}

func TestEffectsTheStoreRefusesFailTheAttemptAndNothingOfThemIsCommitted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.retryEvery(time.Second, 5)
		b.enqueue(3)
		r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			done(tx, m)
			switch {
			case m.Attempt > 1:
			case m.MessageID == "m-0":
				tx.PutAt("docs", "a", 7, map[string]int{})
			case m.MessageID == "m-1":
				tx.Patch("docs", "nothing", api.Patch{Op: api.PatchRemove, Path: "/a"})
			default:
				for range 256 {
					tx.Append("done", "more", client.Event("x", nil))
				}
			}
			return nil
		}, worker.Options{})
		b.until("all are handled", b.emptied)
		check(t, r.end())
		for id, code := range map[string]fault.Code{"m-0": fault.RevisionConflict, "m-1": fault.NotFound, "m-2": fault.Validation} {
			m := b.message(id)
			if m.State != api.StateAcked || m.Failures != 1 || !strings.Contains(m.LastFailure, string(code)) {
				t.Errorf("%s: %+v", id, m)
			}
		}
		if got := b.effects(); len(got) != 3 {
			t.Errorf("effects %v", got)
		}
	})
}

func TestAnAcknowledgementWithoutInboxIsPlainAndManyGoTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(200)
		b.road.set(func(_ context.Context, _ *api.Operation, _ any, ahead func() error) error {
			pass(10 * time.Millisecond)
			return ahead()
		})
		var handled atomic.Int64
		r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			if handled.Add(1) == 1 {
				done(tx, m) // has an effect: recorded
			}
			return nil
		}, worker.Options{NoInbox: true, Concurrency: 100})
		b.until("all are handled", b.emptied)
		check(t, r.end())
		if n := b.road.count("queues.process"); n != 1 {
			t.Errorf("%d were recorded", n)
		}
		if n := b.road.count("queues.complete"); n < 2 || n > 10 {
			t.Errorf("%d commands for 199 acknowledgements", n)
		}
		if n := b.road.count("queues.receive"); n > 20 {
			t.Errorf("%d receives for 200 messages", n)
		}
		if handled.Load() != 200 || len(b.effects()) != 1 {
			t.Errorf("%d handled, effects %v", handled.Load(), b.effects())
		}
	})
}

func TestDecodeSaysWhatDoesNotFitAndNothingOfThePayload(t *testing.T) {
	m := &worker.Message{Delivery: api.Delivery{Payload: api.JSON(`{"order":{"total":30012345},"at":"secret text"}`)}}
	var narrow struct{ Order struct{ Total int8 } }
	err := m.Decode(&narrow)
	var cause *json.UnmarshalTypeError
	if !errors.As(err, &cause) || !strings.Contains(err.Error(), "Order.Total is a number and should be of type int8") || strings.Contains(err.Error(), "300") {
		t.Errorf("%v", err)
	}
	var stamped struct{ At time.Time }
	if err := m.Decode(&stamped); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	e := &worker.Event{StoredEvent: api.StoredEvent{PayloadBase64: []byte{1}}}
	if err := e.Decode(&stamped); err == nil || err.Error() != "the payload is bytes, not JSON" {
		t.Errorf("%v", err)
	}
}
