package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

func TestAnErrorSaysWhatWhyWhereAndWhatNext(t *testing.T) {
	e := fault.New(fault.ResourceExhausted, "queue_full", "the queue holds as many messages as it may")
	e.With("maxMessages", "%d", 10).With("limit", "queue messages").RetryAfterMillis = 250
	e.CommandID = "0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e"
	e.Violations = []fault.Violation{{Path: "/lane/queue", Message: "is full"}, {Path: "/other", Message: "is odd"}}
	var b bytes.Buffer
	tell := teller{w: &b, subject: subject{flags: []flag{{name: "queue", pointer: "/lane/queue"}}}}
	if code := tell.report(fmt.Errorf("wrapped: %w", e)); code != 12 {
		t.Errorf("exit code is %d", code)
	}
	equal(t, b.String(), `
keyload: ResourceExhausted (queue_full): the queue holds as many messages as it may
  --queue is full
  /other is odd
  limit: queue messages
  maxMessages: 10
next: nothing happened; make room, or raise the limit that is named above, then run it again later as a new command, not before 250 ms have passed
`)
}

func TestAdviceFollowsFromRetryAndCodeAndSaysWhetherAnythingHappened(t *testing.T) {
	const id = "0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e"
	command := func(e *fault.Error) *fault.Error { e.CommandID = id; return e }
	recorded := func(e *fault.Error) *fault.Error { e.Recorded = true; return command(e) }
	for _, c := range []struct {
		e    *fault.Error
		want string
	}{
		{command(fault.New(fault.UnknownWriteOutcome, "cancelled", "")), "it may have happened; repeat it unchanged with --command-id " + id + "; the same id never does it twice"},
		{command(fault.New(fault.OwnershipLost, "shutting_down", "")), "nothing happened; repeat it unchanged with --command-id " + id},
		{fault.New(fault.OwnershipLost, "shutting_down", ""), "repeat it unchanged"},
		{recorded(fault.New(fault.ResourceExhausted, "queue_full", "")), "nothing happened; make room, or raise the limit that is named above, then run it again later as a new command with a new --command-id, or without one"},
		{fault.New(fault.ResourceExhausted, "x", "").WithRetry(fault.RetryNewID), "make room, or raise the limit that is named above, then run it again later"},
		{command(fault.New(fault.ResourceExhausted, "node", "").WithRetry(fault.RetrySameID)), "nothing happened; repeat it unchanged with --command-id " + id},
		{recorded(fault.New(fault.RevisionConflict, "revision", "")), "nothing happened; look at what is stored now and decide anew, then run it again with a new --command-id, or without one"},
		{command(fault.New(fault.NotFound, "unknown_resource", "")), "nothing happened; create it (keyload create --help), or check its name and --partition, then run it again"},
		{fault.New(fault.NotFound, "unknown_document", ""), "check the names and --partition, then run it again"},
		{recorded(fault.New(fault.LeaseExpired, "lease_expired", "").With("nextAction", "receive again; any worker may")), "nothing happened; repeating it cannot help: receive again; any worker may"},
		{recorded(fault.New(fault.UnsupportedCapability, "x", "")), "nothing happened; repeating it cannot help"},
		{command(fault.New(fault.CursorExpired, "receipt_horizon", "")), "nothing happened this time, and nobody knows about an earlier one; look at what is stored now and decide anew, then run it again"},
		{command(fault.New(fault.DispatchPaused, "queue_paused", "")), "nothing happened; wait until delivery goes on, then repeat it unchanged with --command-id " + id},
	} {
		if got := advice(c.e, subject{}); got != c.want {
			t.Errorf("%s, %s\n got %s\nwant %s", c.e.Code, c.e.Retry, got, c.want)
		}
	}
}

func TestASentenceThatIsItsOneViolationIsSaidOnceAndNamesTheFlag(t *testing.T) {
	var b bytes.Buffer
	tell := teller{w: &b, subject: subject{flags: []flag{{name: "lease", pointer: "/leaseSeconds"}}}}
	tell.report(fault.Invalid("/leaseSeconds", "the policy allows at most %d", 300))
	equal(t, b.String(), `
keyload: Validation (invalid_field): --lease the policy allows at most 300
next: correct what is named above, then run it again
`)
	b.Reset()
	tell.report(fault.Invalid("/kills", "must be 0 to 20"))
	equal(t, b.String(), `
keyload: Validation (invalid_field): kills: must be 0 to 20
next: correct what is named above, then run it again
`)
}

func TestAdviceAboutAGroupIsACommandOnThatGroup(t *testing.T) {
	const home = "default/main/main/main"
	of := func(kind api.SourceKind, partition string) subject {
		p, err := api.ParsePartition(partition)
		if err != nil {
			t.Fatal(err)
		}
		source := api.SourceRef{Partition: p, Resource: "prices", Kind: kind}
		if kind == api.SourceStream {
			source.StreamID = "a b"
		}
		return subject{request: &api.SubscriptionsConfigureRequest{Group: api.GroupRef{Source: source, Group: "audit"}, ExpectedGeneration: 2}}
	}
	topic := of(api.SourceTopic, home)
	stored := topic
	stored.dir = "data"
	never := fault.RetryNever
	for _, c := range []struct {
		e     *fault.Error
		about subject
		want  string
	}{
		{fault.New(fault.NotFound, "unknown_group", ""), topic, "create it, without --expected-generation: keyload subscriptions configure prices audit"},
		{fault.New(fault.NotFound, "unknown_group", ""), stored, "keyload subscriptions configure prices audit --dir data"},
		{fault.New(fault.NotFound, "unknown_group", ""), of(api.SourceTopic, "acme/shop"), "keyload subscriptions configure prices audit --partition acme/shop/main/main"},
		{fault.New(fault.NotFound, "unknown_group", ""), of(api.SourceStream, home), "keyload subscriptions configure --stream-set prices --stream-id 'a b' --group audit"},
		{fault.New(fault.Conflict, "not_paused", ""), topic, "pause it: keyload subscriptions pause prices audit --expected-generation 2, then"},
		{fault.New(fault.Conflict, "group_exists", "").With("generation", "7"), topic, "keyload subscriptions pause prices audit --expected-generation 7"},
		{fault.New(fault.DispatchPaused, "group_paused", "").With("generation", "7"), topic, "let it go on: keyload subscriptions resume prices audit --expected-generation 7, then"},
		{fault.New(fault.DispatchPaused, "group_paused", ""), subject{}, "keyload subscriptions resume TOPIC GROUP --expected-generation N"},
		{fault.New(fault.DispatchPaused, "group_restored", "").With("generation", "7"), topic, "let it go on: keyload subscriptions resume prices audit --expected-generation 7, then"},
		{fault.New(fault.DispatchPaused, "restored", ""), topic, "let the store go on: keyload admin dispatch running"},
		{fault.New(fault.DispatchPaused, "dispatch_paused", ""), topic, "let the store go on: keyload admin dispatch running"},
		{fault.New(fault.TokenInvalidated, "earlier_history", ""), topic, "use a new id for new work"},
		{fault.New(fault.ResourceExhausted, "retention_pin", "").With("holder", "audit"), subject{}, "(keyload subscriptions status TOPIC audit)"},
		{fault.New(fault.HistoryUnavailable, "purged", "").With("checkpoint", "1"), topic, "keyload subscriptions seek prices audit beginning --expected-generation 2"},
		{fault.New(fault.NotFound, "unknown_delivery", ""), topic, "nothing is left to do: the delivery is finished already, and this changed nothing"},
		{fault.New(fault.StaleLease, "lease_replaced", "").With("state", "acked").With("nextAction", "drop it"), subject{}, "nothing is left to do: the delivery is finished already, and this changed nothing"},
		{fault.New(fault.StaleLease, "lease_replaced", "").With("state", "leased").With("nextAction", "drop it").WithRetry(never), subject{}, "repeating it cannot help: drop it"},
	} {
		if got := advice(c.e, c.about); !strings.Contains(got, c.want) {
			t.Errorf("%s\n got %s\nwant %s", c.e.Reason, got, c.want)
		}
	}
}

func TestAReadBeforeWhatIsRetainedIsToldTheFlagThatBeginsThere(t *testing.T) {
	gone := fault.New(fault.HistoryUnavailable, "purged", "").With("afterPosition", "3")
	const where = "begin at the first position that is kept"
	after := []flag{{name: "after-position", pointer: "/afterPosition"}}
	for _, c := range []struct {
		about subject
		want  string
	}{
		{subject{flags: after, request: &api.EventsReadRequest{}}, where + ": --after-position 3, then run it again"},
		{subject{flags: after, request: &api.StreamsReadRequest{Direction: api.Forward}}, where + ": --after-position 3, then run it again"},
		{subject{flags: after, request: &api.StreamsReadRequest{Direction: api.Backward}}, where + ", then run it again"},
		{subject{}, where + ", then run it again"},
	} {
		if got := advice(gone, c.about); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestOperationsInAnAnswerAreWrittenAsCommandsOnItsGroup(t *testing.T) {
	a := subject{request: &api.SubscriptionsExplainRequest{Group: api.GroupRef{Source: api.SourceRef{Resource: "prices", Kind: api.SourceTopic}, Group: "audit"}}}
	for text, want := range map[string]string{
		"subscriptions.resume": "keyload subscriptions resume prices audit --expected-generation N",
		"subscriptions.skip, or subscriptions.deadletters.redrive": "keyload subscriptions skip prices audit REASON --expected-generation N --position 5, or " +
			"keyload subscriptions deadletters redrive prices audit --position 5",
		"subscriptions.receive":                  "keyload subscriptions receive prices audit",
		"subscriptions.seek":                     "keyload subscriptions seek prices audit TO --expected-generation N",
		"resources.configure with paused: false": "keyload resources configure with paused: false",
		"completing a delivery":                  "completing a delivery",
	} {
		if got := a.runnable(text, 5); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestWithJSONAnErrorIsOneLineOfJSON(t *testing.T) {
	var b bytes.Buffer
	tell := teller{w: &b, json: true}
	tell.report(fault.New(fault.NotFound, "unknown_resource", "there is no queue jobs"))
	equal(t, b.String(), `{"code":"NotFound","reason":"unknown_resource","detail":"there is no queue jobs","retry":"after_change","recorded":false}`+"\n")
}

func TestEveryCodeHasItsExitCodeAndAdvice(t *testing.T) {
	tell := teller{w: &bytes.Buffer{}}
	for _, c := range fault.Codes() {
		e := fault.New(c, "r", "d")
		if got := tell.report(e); got != c.ExitCode() || got < 2 {
			t.Errorf("%s exits with %d", c, got)
		}
		if advice(e, subject{}) == "" {
			t.Errorf("%s has no advice", c)
		}
	}
	if got := tell.report(errors.New("x")); got != exitInternal {
		t.Errorf("an unknown error exits with %d", got)
	}
	if got := tell.report(context.Canceled); got != exitInterrupted {
		t.Errorf("an interrupt exits with %d", got)
	}
	if got := tell.report(nil); got != 0 {
		t.Errorf("success exits with %d", got)
	}
}
