package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/wire"
)

// Exit codes that no error of the store has.
const (
	exitInternal    = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// refused is an answer that was given but says no, such as an acknowledgement
// of a lease that is gone: it was printed already.
type refused struct{ code fault.Code }

func (r *refused) Error() string { return string(r.code) }

// A teller says what went wrong with one command line.
type teller struct {
	w       io.Writer // where people read errors
	json    bool
	name    typedName
	command string  // its words
	subject subject // what a refusal is about
}

// report writes an error and says what to exit with.
func (t *teller) report(err error) int {
	var usage *badUsage
	var no *refused
	switch e := fault.From(err); {
	case err == nil:
		return 0
	case errors.As(err, &no):
		return no.code.ExitCode()
	case errors.As(err, &usage):
		return t.usage(usage)
	case e != nil && t.json:
		if b, encodeErr := wire.EncodeJSON(e); encodeErr == nil {
			fmt.Fprintf(t.w, "%s\n", b)
		}
		return e.Code.ExitCode()
	case e != nil:
		t.fault(e)
		return e.Code.ExitCode()
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(t.w, "keyload: interrupted")
		return exitInterrupted
	default:
		fmt.Fprintln(t.w, "keyload:", err)
		return exitInternal
	}
}

func (t *teller) usage(e *badUsage) int {
	if t.json {
		if b, err := wire.EncodeJSON(fault.New(fault.Validation, "usage", "%s", e.text)); err == nil {
			fmt.Fprintf(t.w, "%s\n", b)
		}
		return exitUsage
	}
	fmt.Fprintln(t.w, "keyload: "+strings.ReplaceAll(e.text, "\n", "\n         "))
	fmt.Fprintln(t.w, "see: "+strings.TrimSpace(t.name.word()+" "+t.command)+" --help")
	return exitUsage
}

func (t *teller) fault(e *fault.Error) {
	sentence, left := t.sentence(e)
	fmt.Fprintf(t.w, "keyload: %s\n", t.name.in(sentence))
	for _, v := range left {
		fmt.Fprintf(t.w, "  %s\n", t.violation(v))
	}
	names := make([]string, 0, len(e.Facts))
	for name := range e.Facts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(t.w, "  %s: %s\n", name, e.Facts[name])
	}
	fmt.Fprintf(t.w, "next: %s\n", t.name.in(advice(e, t.subject)))
}

// sentence is the error as one sentence, and the violations that are not said
// with it. Where it is nothing but its one violation, it names the flag.
func (t *teller) sentence(e *fault.Error) (text string, left []fault.Violation) {
	if len(e.Violations) != 1 || !strings.HasSuffix(e.Detail, ": "+e.Violations[0].Message) {
		return e.Error(), e.Violations
	}
	own := *e
	if v := e.Violations[0]; flagFor(v.Path, t.subject.flags) != "" {
		own.Detail = t.violation(v)
	}
	return own.Error(), nil
}

// violation names its place by the flag it was typed with.
func (t *teller) violation(v fault.Violation) string {
	name := flagFor(v.Path, t.subject.flags)
	if name == "" {
		name = v.Path
	}
	return strings.TrimSpace(name + " " + v.Message)
}
