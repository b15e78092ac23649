package client

import (
	"context"
	"errors"
	"testing"

	"github.com/keyload/keyload/fault"
)

// Connected is how many sessions of the client are open.
func Connected(c *Client) int {
	n := 0
	for _, s := range c.servers {
		for _, l := range s.lines {
			l.mu.Lock()
			if l.current != nil && l.current.usable() {
				n++
			}
			l.mu.Unlock()
		}
	}
	return n
}

func TestOnlyWhatMayHelpByItselfIsRepeated(t *testing.T) {
	repeated := map[fault.Code]bool{
		fault.UnknownWriteOutcome: true, fault.OwnershipLost: true, fault.ClockUncertain: true, fault.Cancelled: true,
	}
	for _, c := range fault.Codes() {
		if got := mayRepeat(fault.New(c, "", "")); got != repeated[c] {
			t.Errorf("%s: %v", c, got)
		}
	}
	if !mayRepeat(fault.New(fault.ResourceExhausted, "", "").WithRetry(fault.RetrySameID)) {
		t.Error("an admission that was refused is not repeated")
	}
}

func TestTheLastErrorOfACallSaysWhatIsKnown(t *testing.T) {
	recorded := func(c fault.Code) *fault.Error {
		f := fault.New(c, "r", "d")
		f.Recorded = true
		return f
	}
	write := request{id: "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"}
	for _, c := range []struct {
		name    string
		last    *fault.Error
		unknown bool
		want    fault.Code
	}{
		{"refused at once", fault.New(fault.PermissionDenied, "r", "d"), false, fault.PermissionDenied},
		{"lost", fault.New(fault.UnknownWriteOutcome, "r", "d"), true, fault.UnknownWriteOutcome},
		{"lost, then unreachable", unreachable("x"), true, fault.UnknownWriteOutcome},
		{"lost, then the key was revoked", fault.New(fault.Unauthenticated, "r", "d"), true, fault.UnknownWriteOutcome},
		{"lost, then the stored refusal", recorded(fault.RevisionConflict), true, fault.RevisionConflict},
		{"lost, then a receipt whose leases ended", fault.New(fault.LeaseExpired, "r", "d"), true, fault.LeaseExpired},
		{"lost, then too old to tell", fault.New(fault.CursorExpired, "receipt_horizon", "d"), true, fault.UnknownWriteOutcome},
		{"never sent", unreachable("x"), false, fault.OwnershipLost},
	} {
		f := fault.From(final(context.Background(), c.last, write, c.unknown))
		if f.Code != c.want || f.CommandID != write.id {
			t.Errorf("%s: %+v", c.name, f)
		}
		if f.Code != c.last.Code && f.Facts["lastCode"] != string(c.last.Code) {
			t.Errorf("%s: the last refusal is not told: %+v", c.name, f)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := final(ended, gone(write), write, true)
	if !errors.Is(err, context.Canceled) || fault.CodeOf(err) != fault.UnknownWriteOutcome {
		t.Errorf("%v", err)
	}
}
