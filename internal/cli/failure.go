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

// report writes an error where people read errors and says what to exit with.
func report(w io.Writer, err error, asJSON bool, command string, flags []flag) int {
	var usage *badUsage
	var no *refused
	switch e := fault.From(err); {
	case err == nil:
		return 0
	case errors.As(err, &no):
		return no.code.ExitCode()
	case errors.As(err, &usage):
		return reportUsage(w, usage, asJSON, command)
	case e != nil && asJSON:
		if b, encodeErr := wire.EncodeJSON(e); encodeErr == nil {
			fmt.Fprintf(w, "%s\n", b)
		}
		return e.Code.ExitCode()
	case e != nil:
		reportFault(w, e, flags)
		return e.Code.ExitCode()
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(w, "keyload: interrupted")
		return exitInterrupted
	default:
		fmt.Fprintln(w, "keyload:", err)
		return exitInternal
	}
}

func reportUsage(w io.Writer, e *badUsage, asJSON bool, command string) int {
	if asJSON {
		if b, err := wire.EncodeJSON(fault.New(fault.Validation, "usage", "%s", e.text)); err == nil {
			fmt.Fprintf(w, "%s\n", b)
		}
		return exitUsage
	}
	fmt.Fprintln(w, "keyload: "+strings.ReplaceAll(e.text, "\n", "\n         "))
	hint := e.hint
	if hint == "" {
		hint = "see: " + strings.TrimSpace("keyload "+command) + " --help"
	}
	fmt.Fprintln(w, hint)
	return exitUsage
}

func reportFault(w io.Writer, e *fault.Error, flags []flag) {
	fmt.Fprintf(w, "keyload: %s\n", e.Error())
	for _, v := range e.Violations {
		name := flagFor(v.Path, flags)
		if name == "" {
			name = v.Path
		}
		fmt.Fprintf(w, "  %s\n", strings.TrimSpace(name+" "+v.Message))
	}
	names := make([]string, 0, len(e.Facts))
	for name := range e.Facts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "  %s: %s\n", name, e.Facts[name])
	}
	fmt.Fprintf(w, "next: %s\n", advice(e))
}

// advice says in words what the error allows next. An error without a command
// id is of a read, or of something that is no operation.
func advice(e *fault.Error) string {
	s, ok := remedy(e)
	switch {
	case ok:
	case e.Retry == fault.RetrySameID && e.Code == fault.UnknownWriteOutcome:
		s = "repeat it unchanged with --command-id " + e.CommandID + "; it may have happened, and the same id never does it twice"
	case e.Retry == fault.RetrySameID && e.CommandID != "":
		s = "repeat it unchanged with --command-id " + e.CommandID
	case e.Retry == fault.RetrySameID:
		s = "repeat it unchanged"
	case e.CommandID == "":
		s = map[fault.Retry]string{
			fault.RetryNewID: "try again later", fault.RetryAfterChange: "change what is wrong, then try again",
		}[e.Retry]
	case e.Retry == fault.RetryNewID:
		s = "nothing happened; try again later, as a new command"
	case e.Retry == fault.RetryAfterChange:
		s = "nothing happened; change what is wrong, then send it as a new command"
	default:
		s = "nothing happened; repeating it cannot help"
	}
	if s == "" {
		s = "repeating it cannot help"
	}
	if e.RetryAfterMillis > 0 {
		s += fmt.Sprintf(", not before %d ms have passed", e.RetryAfterMillis)
	}
	return s
}

// remedy is better advice where the command line knows more than the store.
func remedy(e *fault.Error) (string, bool) {
	switch {
	case e.Reason == "unreachable":
		return "see that a server runs there (keyload serve), or give --url, or --dir to work without one", true
	case e.Reason == "listen":
		return "see: keyload serve --help (--listen, --tls-cert, --tls-key, --insecure)", true
	case e.Reason == "no_store":
		return "give the directory of a store, or make one with: keyload init --dir DIR", true
	}
	switch e.Code {
	case fault.Unauthenticated:
		return "give a valid key in KEYLOAD_API_KEY or --api-key", true
	case fault.Corruption:
		return "restore the last good backup into an empty directory; keep the damaged one", true
	case fault.FormatUnsupported:
		return "use a newer keyload; this one leaves the store as it is", true
	case fault.RecoveryRequired:
		return "remove the cause, for example make room on the disk, then start again", true
	}
	return "", false
}
