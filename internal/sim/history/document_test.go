package history

import (
	"strings"
	"testing"
	"time"
)

func revision(n uint64) *uint64 { return &n }

// one makes a history by hand and says what is wrong with it.
func one(do func(d *Documents)) string {
	d := &Documents{}
	do(d)
	return strings.Join(d.Check(10*time.Second), "\n")
}

func TestAHistoryThatOneOrderExplainsIsLinearizable(t *testing.T) {
	for name, do := range map[string]func(*Documents){
		"nothing at all": func(*Documents) {},
		"one after the other": func(d *Documents) {
			d.Read(1, "a").Saw(0, "")
			d.Write(1, "a", "x", revision(0)).Wrote(1)
			d.Read(2, "a").Saw(1, "x")
			d.Write(2, "a", "y", revision(0)).Refused()
			d.Write(2, "a", "y", nil).Wrote(2)
			d.Read(1, "a").Saw(2, "y")
			d.Read(1, "b").Saw(0, "")
		},
		"a read during a write sees either": func(d *Documents) {
			w := d.Write(1, "a", "x", nil)
			d.Read(2, "a").Saw(0, "")
			d.Read(2, "a").Saw(1, "x")
			w.Wrote(1)
		},
		"two writes at once in either order": func(d *Documents) {
			x, y := d.Write(1, "a", "x", nil), d.Write(2, "a", "y", nil)
			x.Wrote(2)
			y.Wrote(1)
			d.Read(3, "a").Saw(2, "x")
		},
		"a write without an answer that happened, late": func(d *Documents) {
			d.Write(1, "a", "x", revision(0))
			d.Read(2, "a").Saw(0, "")
			d.Read(2, "a").Saw(1, "x")
		},
		"a write without an answer that never happened": func(d *Documents) {
			d.Write(1, "a", "x", nil)
			d.Write(2, "a", "y", nil).Wrote(1)
			d.Read(2, "a").Saw(1, "y")
		},
		"a write without an answer that was refused": func(d *Documents) {
			d.Write(1, "a", "x", revision(7))
			d.Write(2, "a", "y", nil).Wrote(1)
		},
		"calls that were dropped": func(d *Documents) {
			d.Write(1, "a", "x", nil).Dropped()
			d.Read(1, "a").Dropped()
			d.Read(1, "a")
			d.Read(2, "a").Saw(0, "")
		},
	} {
		if wrong := one(do); wrong != "" {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}

func TestAHistoryThatNoOrderExplainsIsFound(t *testing.T) {
	for name, do := range map[string]func(*Documents){
		"a stale read": func(d *Documents) {
			d.Write(1, "a", "x", nil).Wrote(1)
			d.Write(1, "a", "y", nil).Wrote(2)
			d.Read(2, "a").Saw(1, "x")
		},
		"a read that goes back": func(d *Documents) {
			w := d.Write(1, "a", "x", nil)
			d.Read(2, "a").Saw(1, "x")
			d.Read(3, "a").Saw(0, "")
			w.Wrote(1)
		},
		"a lost write": func(d *Documents) {
			d.Write(1, "a", "x", nil).Wrote(1)
			d.Read(2, "a").Saw(0, "")
		},
		"a write lost behind a refusal": func(d *Documents) {
			d.Write(1, "a", "x", revision(0)).Refused()
			d.Read(2, "a").Saw(0, "")
		},
		"a doubled effect": func(d *Documents) {
			d.Write(1, "a", "x", nil).Wrote(1)
			d.Read(2, "a").Saw(2, "x")
		},
		"a doubled effect of a write without an answer": func(d *Documents) {
			d.Write(1, "a", "x", nil)
			d.Read(2, "a").Saw(1, "x")
			d.Write(2, "a", "y", revision(1)).Wrote(2)
			d.Read(2, "a").Saw(3, "x")
		},
		"two who both wrote over one revision": func(d *Documents) {
			x, y := d.Write(1, "a", "x", revision(0)), d.Write(2, "a", "y", revision(0))
			x.Wrote(1)
			y.Wrote(1)
		},
		"a value that nobody wrote": func(d *Documents) {
			d.Write(1, "a", "x", nil).Wrote(1)
			d.Read(2, "a").Saw(1, "z")
		},
		"an effect of a call that was dropped": func(d *Documents) {
			d.Write(1, "a", "x", nil).Dropped()
			d.Read(2, "a").Saw(1, "x")
		},
	} {
		wrong := one(do)
		if !strings.Contains(wrong, "document a is not linearizable") {
			t.Errorf("%s is not found: %q", name, wrong)
		}
		if strings.Count(wrong, "client ") < 1 {
			t.Errorf("%s is told without its calls: %q", name, wrong)
		}
	}
}

func TestTheCountsTellAnswersFromDoubts(t *testing.T) {
	d := &Documents{}
	d.Write(1, "a", "x", nil).Wrote(1)
	d.Write(1, "a", "y", nil)
	d.Read(1, "a")
	d.Write(1, "a", "z", nil).Dropped()
	if a, u := d.Count(); a != 1 || u != 1 {
		t.Errorf("%d answered, %d unknown", a, u)
	}
}
