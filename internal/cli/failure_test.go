package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keyload/keyload/fault"
)

func TestAnErrorSaysWhatWhyWhereAndWhatNext(t *testing.T) {
	e := fault.New(fault.ResourceExhausted, "queue_full", "the queue holds as many messages as it may")
	e.With("maxMessages", "%d", 10).With("limit", "queue messages").RetryAfterMillis = 250
	e.CommandID = "0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e"
	e.Violations = []fault.Violation{{Path: "/lane/queue", Message: "is full"}, {Path: "/other", Message: "is odd"}}
	var b bytes.Buffer
	if code := report(&b, fmt.Errorf("wrapped: %w", e), false, "queues receive", []flag{{name: "queue", pointer: "/lane/queue"}}); code != 12 {
		t.Errorf("exit code is %d", code)
	}
	equal(t, b.String(), `
keyload: ResourceExhausted (queue_full): the queue holds as many messages as it may
  --queue is full
  /other is odd
  limit: queue messages
  maxMessages: 10
next: nothing happened; try again later, as a new command, not before 250 ms have passed
`)
}

func TestAnUnknownOutcomeSaysHowToSettleIt(t *testing.T) {
	e := fault.New(fault.UnknownWriteOutcome, "reply_lost", "the connection broke")
	e.CommandID = "0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e"
	if got := advice(e); !strings.Contains(got, "--command-id "+e.CommandID) {
		t.Errorf("advice is %q", got)
	}
}

func TestWithJSONAnErrorIsOneLineOfJSON(t *testing.T) {
	var b bytes.Buffer
	report(&b, fault.New(fault.NotFound, "unknown_resource", "there is no queue jobs"), true, "", nil)
	equal(t, b.String(), `{"code":"NotFound","reason":"unknown_resource","detail":"there is no queue jobs","retry":"after_change","recorded":false}`+"\n")
}

func TestEveryCodeHasItsExitCodeAndAdvice(t *testing.T) {
	for _, c := range fault.Codes() {
		e := fault.New(c, "r", "d")
		if got := report(&bytes.Buffer{}, e, false, "", nil); got != c.ExitCode() || got < 2 {
			t.Errorf("%s exits with %d", c, got)
		}
		if advice(e) == "" {
			t.Errorf("%s has no advice", c)
		}
	}
	if got := report(&bytes.Buffer{}, errors.New("x"), false, "", nil); got != exitInternal {
		t.Errorf("an unknown error exits with %d", got)
	}
	if got := report(&bytes.Buffer{}, context.Canceled, false, "", nil); got != exitInterrupted {
		t.Errorf("an interrupt exits with %d", got)
	}
	if got := report(&bytes.Buffer{}, nil, false, "", nil); got != 0 {
		t.Errorf("success exits with %d", got)
	}
}
