package cli

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/wire"
)

// badUsage is a command line that cannot be carried out; nothing was sent.
type badUsage struct{ text string }

func (e *badUsage) Error() string { return e.text }

// given is what was typed for one operation: the whole request as JSON, and the
// texts of single flags by name.
type given struct {
	request string
	texts   map[string][]string
	wait    bool // for the change to take effect everywhere
}

// build makes the request of an operation: its defaults, then the whole request
// where one was given, then the single flags.
func (r *reader) build(o *api.Operation, flags []flag, in given) (any, error) {
	request := reflect.New(o.Request)
	api.ApplyDefaults(request.Interface())
	for i := range flags {
		if flags[i].shape == shapeOff {
			settle(request.Elem(), flags[i].index).SetBool(true)
		}
	}
	if in.request != "" {
		b, err := r.content(in.request)
		if err != nil {
			return nil, &badUsage{text: "--request " + err.Error()}
		}
		if err := wire.DecodeJSON(b, request.Interface()); err != nil {
			return nil, &badUsage{text: violationText(err.Violations, flags)}
		}
	}
	source := ""
	for i := range flags {
		f := &flags[i]
		texts, ok := in.texts[f.name]
		if !ok {
			continue
		}
		if f.source != "" {
			if source != "" {
				return nil, &badUsage{text: "--" + source + " and --" + f.name + " cannot be given together"}
			}
			source = f.name
		}
		if err := r.set(f, request.Elem(), texts); err != nil {
			return nil, &badUsage{text: valueText("--"+f.name, err)}
		}
	}
	done, err := finish(o, request.Interface(), flags)
	if bad, ok := err.(*badUsage); ok && in.texts["generation"] != nil {
		const missing = "--expected-generation is required"
		bad.text = strings.ReplaceAll(bad.text, missing, missing+"; --generation is that of the source, not of the group")
	}
	return done, err
}

// finish completes a request and checks it before anything is sent.
func finish(o *api.Operation, request any, flags []flag) (any, error) {
	api.ApplyNestedDefaults(request)
	if c, ok := request.(api.CommandRequest); ok && o.Writes() && c.GetCommandID() == "" {
		c.SetCommandID(api.NewCommandID())
	}
	if c, ok := request.(api.CompositeRequest); ok {
		c.NameParts()
	}
	if found := api.Validate(request); len(found) > 0 {
		return nil, &badUsage{text: violationText(found, flags)}
	}
	return request, nil
}

// violationText names each violation by the flag it was typed with.
func violationText(found []fault.Violation, flags []flag) string {
	lines := make([]string, len(found))
	for i, v := range found {
		name := flagFor(v.Path, flags)
		if name == "" {
			name = strings.TrimPrefix(strings.TrimPrefix(v.Path, "/mutations/0"), "/")
		}
		lines[i] = strings.TrimSpace(name + " " + v.Message)
	}
	return strings.Join(lines, "\n")
}

// valueText says what is wrong with the value of a flag.
func valueText(name string, err error) string {
	e := fault.From(err)
	if e == nil {
		return name + " " + err.Error()
	}
	lines := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		at := ""
		if v.Path != "" && v.Path != "/partition" {
			at = " (at " + v.Path + ")"
		}
		lines[i] = name + at + " " + v.Message
	}
	return strings.Join(lines, "\n")
}

// flagFor is the flag that a place in the request is set with, and the place
// within its value; "" when there is none.
func flagFor(pointer string, flags []flag) string {
	best := -1
	var names []string
	for i, f := range flags {
		if pointer != f.pointer && !strings.HasPrefix(pointer, f.pointer+"/") {
			continue
		}
		switch {
		case best < 0 || len(f.pointer) > len(flags[best].pointer):
			best, names = i, []string{"--" + f.name}
		case len(f.pointer) == len(flags[best].pointer):
			names = append(names, "--"+f.name)
		}
	}
	if best < 0 {
		return ""
	}
	name := strings.Join(names, " or ")
	if rest := strings.TrimPrefix(pointer, flags[best].pointer); rest != "" {
		name += fmt.Sprintf(" (at %s)", rest)
	}
	return name
}
