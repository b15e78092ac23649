package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/keyload/keyload/fault"
)

func TestAnErrorSaysWhatWhyWhereAndWhatNext(t *testing.T) {
	e := fault.New(fault.ResourceExhausted, "queue_full", "the queue holds as many messages as it may")
	e.With("maxMessages", "%d", 10).With("limit", "queue messages").RetryAfterMillis = 250
	e.CommandID = "0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e"
	e.Violations = []fault.Violation{{Path: "/lane/queue", Message: "is full"}, {Path: "/other", Message: "is odd"}}
	var b bytes.Buffer
	tell := teller{w: &b, flags: []flag{{name: "queue", pointer: "/lane/queue"}}}
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
		if got := advice(c.e); got != c.want {
			t.Errorf("%s, %s\n got %s\nwant %s", c.e.Code, c.e.Retry, got, c.want)
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
		if advice(e) == "" {
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
