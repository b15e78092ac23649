package history

import (
	"strings"
	"testing"
)

// sound is a ledger of two messages, three events and a group, and what a sound
// store holds after it.
func sound() (*Ledger, Found) {
	l := NewLedger()
	for _, id := range []string{"m1", "m2", "maybe"} {
		l.Enqueue(id)
	}
	l.Enqueued("m1")
	l.Enqueued("m2")
	for _, id := range []string{"m1", "m2", "m1"} {
		l.Delivered(id)
	}
	l.Done("m1", false)
	l.Done("m1", true)
	l.Done("m2", false)
	for i, id := range []string{"e1", "e2", "doubt"} {
		l.Append("news", id)
		if id != "doubt" {
			l.Appended("news", id, uint64(i)+1)
		}
	}
	first, second := l.Look("g"), l.Look("g")
	second.Saw(3)
	first.Saw(1)
	l.Look("g").Saw(3)
	l.Look("g")
	return l, Found{Effects: map[string]int{"m1": 1, "m2": 1}, Events: map[string][]Event{"news": {{1, "e1"}, {2, "e2"}, {3, "doubt"}}}}
}

func TestALedgerThatTheStoreKeepsHasNothingWrong(t *testing.T) {
	l, f := sound()
	if wrong := l.Check(f); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
	f.Events["news"] = f.Events["news"][:2] // the append without an answer need not have happened
	f.Effects["maybe"] = 1                  // the enqueue without an answer may have happened
	if wrong := l.Check(f); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
	if k, u := l.Count(); k != 4 || u != 2 {
		t.Errorf("%d known, %d unknown", k, u)
	}
}

func TestEveryBreachOfALedgerIsFound(t *testing.T) {
	for want, do := range map[string]func(l *Ledger, f *Found){
		"message m1 is lost":                         func(_ *Ledger, f *Found) { delete(f.Effects, "m1") },
		"message m2 has had its effect 2 times":      func(_ *Ledger, f *Found) { f.Effects["m2"] = 2 },
		"message maybe has had its effect 2 times":   func(_ *Ledger, f *Found) { f.Effects["maybe"] = 2 },
		"message maybe is lost":                      func(l *Ledger, _ *Found) { l.Delivered("maybe") },
		"m1 was processed for the first time 2":      func(l *Ledger, _ *Found) { l.Done("m1", false) },
		"effect of message m9, which nobody sent":    func(_ *Ledger, f *Found) { f.Effects["m9"] = 1 },
		"message m9 was delivered, and nobody":       func(l *Ledger, _ *Found) { l.Delivered("m9") },
		"message m9 was processed, and nobody":       func(l *Ledger, _ *Found) { l.Done("m9", false) },
		"message m2 is not finished":                 func(_ *Ledger, f *Found) { f.Left = []string{"m2"} },
		"e2 was acknowledged at 2 and is missing":    func(_ *Ledger, f *Found) { f.Events["news"] = f.Events["news"][:1] },
		"the event after position 1 is at 3":         func(_ *Ledger, f *Found) { f.Events["news"] = append(f.Events["news"][:1], f.Events["news"][2]) },
		"e1 was acknowledged at 1 and is at 2":       func(_ *Ledger, f *Found) { f.Events["news"] = []Event{{1, "e2"}, {2, "e1"}} },
		"event e1 is at 1 and at 4":                  func(_ *Ledger, f *Found) { f.Events["news"] = append(f.Events["news"], Event{4, "e1"}) },
		"event e9 at 4 was sent by nobody":           func(_ *Ledger, f *Found) { f.Events["news"] = append(f.Events["news"], Event{4, "e9"}) },
		"the checkpoint of group g was 3 and then 2": func(l *Ledger, _ *Found) { l.Look("g").Saw(2) },
	} {
		l, f := sound()
		do(l, &f)
		if wrong := strings.Join(l.Check(f), "\n"); !strings.Contains(wrong, want) {
			t.Errorf("%q is not found: %q", want, wrong)
		}
	}
}
