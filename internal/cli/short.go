package cli

import (
	"errors"
	"reflect"
	"slices"
	"strconv"

	"github.com/keyload/keyload/api"
)

// A short flag of a daily command stands for a number in the request of its
// operation, and takes what that number may be. It is a text so that a zero that
// was typed is told from a flag that was not.
type short struct {
	name    string  // without dashes
	pointer string  // of the number in the request
	unit    string  // "s" or "ms" where the flag is a length of time with its own unit
	text    *string // what was typed; nil when the flag was not given
}

// fill writes the short flags that were given into a request, and names the
// places of all of them after their flags.
func (s *session) fill(o *api.Operation, request any, shorts ...short) error {
	flags := flagsOf(o.Request)
	for _, x := range shorts {
		i := slices.IndexFunc(flags, func(f flag) bool { return f.pointer == x.pointer })
		if i < 0 {
			return errors.New(o.Name + " has no field " + x.pointer)
		}
		f := flags[i]
		f.name = x.name
		s.flags = append(s.flags, f)
		if x.text == nil {
			continue
		}
		if err := s.fillOne(&f, request, x); err != nil {
			return &badUsage{text: valueText("--"+x.name, err)}
		}
	}
	return nil
}

func (s *session) fillOne(f *flag, request any, x short) error {
	text := *x.text
	if x.unit != "" {
		n, err := span(x.unit, text)
		if err != nil {
			return err
		}
		text = strconv.FormatInt(n, 10)
	}
	return s.set(f, reflect.ValueOf(request).Elem(), []string{text})
}

// span reads a length of time, which has its own unit, into the unit of a
// request.
func span(unit, text string) (int64, error) {
	n, err := lengthIn(unit, text)
	switch {
	case err != nil && unit == "s":
		return 0, errors.New("must be a length of time in whole seconds, such as 30s or 5m")
	case err != nil:
		return 0, errors.New("must be a length of time such as 500ms, 30s or 5m")
	case n < 0:
		return 0, errors.New("must not be negative")
	}
	return n, nil
}

// A nonEmpty text is a name or an identity. An empty one, such as that of a
// variable that is not set, is refused: it would count as absent.
type nonEmpty string

var errEmpty = errors.New("must not be empty")

// UnmarshalText is for kong.
func (n *nonEmpty) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		return errEmpty
	}
	*n = nonEmpty(b)
	return nil
}
