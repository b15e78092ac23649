package lint

import (
	"strings"
	"testing"
)

// A violation is one place that breaks one rule.
type violation struct {
	rule  string // one word, the same in exceptions
	where string // a file, a package, or "package#name"
	text  string // what is wrong, and where exactly
}

// An exception excuses one place from one rule, with a reason.
type exception struct {
	rule, where, why string
}

// report fails the test for every violation that no exception excuses, and for
// every exception that excuses nothing although its place exists.
func report(t *testing.T, tree *sourceTree, found []violation, exceptions []exception) {
	t.Helper()
	for _, text := range judge(tree, found, exceptions) {
		t.Error(text)
	}
}

func judge(tree *sourceTree, found []violation, exceptions []exception) []string {
	used := make([]bool, len(exceptions))
	var out []string
	for _, v := range found {
		excused := false
		for i, e := range exceptions {
			if e.rule == v.rule && e.where == v.where && e.why != "" {
				used[i], excused = true, true
			}
		}
		if !excused {
			out = append(out, v.rule+": "+v.text+" ("+v.where+")")
		}
	}
	for i, e := range exceptions {
		if e.why == "" {
			out = append(out, "exception without a reason: "+e.rule+" "+e.where)
		} else if !used[i] && tree.has(e.where) {
			out = append(out, "exception that excuses nothing, remove it: "+e.rule+" "+e.where)
		}
	}
	return out
}

// wantViolations compares what a check found in a small tree with what it must
// find: "rule where" for each, in any order.
func wantViolations(t *testing.T, found []violation, want ...string) {
	t.Helper()
	left := map[string]int{}
	for _, w := range want {
		left[w]++
	}
	for _, v := range found {
		key := v.rule + " " + v.where
		if left[key] == 0 {
			t.Errorf("found one too many: %s: %s", key, v.text)
			continue
		}
		left[key]--
	}
	for key, n := range left {
		if n > 0 {
			t.Errorf("did not find: %s", key)
		}
	}
}

func TestAnExceptionNeedsAReasonAndAViolation(t *testing.T) {
	tree := sources(t, map[string]string{"a/a.go": "package a", "b/b.go": "package b"})
	found := []violation{{"size", "a/a.go", "too long"}, {"size", "b#F", "too long"}}
	for _, c := range []struct {
		name       string
		exceptions []exception
		want       string // part of the only message, "" for none
	}{
		{"both excused", []exception{{"size", "a/a.go", "r"}, {"size", "b#F", "r"}}, ""},
		{"one excused", []exception{{"size", "a/a.go", "r"}}, "size: too long (b#F)"},
		{"other rule", []exception{{"size", "a/a.go", "r"}, {"size", "b#F", "r"}, {"name", "b#F", "r"}}, "excuses nothing"},
		{"place is gone", []exception{{"size", "a/a.go", "r"}, {"size", "b#F", "r"}, {"size", "c/c.go", "r"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := judge(tree, found, c.exceptions)
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("reported %q", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("reported %q, want one with %q", got, c.want)
			}
		})
	}
	if got := judge(tree, found[:1], []exception{{"size", "a/a.go", ""}}); len(got) != 2 {
		t.Errorf("an exception without a reason was accepted: %q", got)
	}
}
