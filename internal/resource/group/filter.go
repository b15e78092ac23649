package group

import (
	"bytes"
	"slices"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/resource/source"
)

// matches says whether a filter lets an event through.
func matches(f *api.GroupFilter, e *source.Record) bool {
	return matchesType(f.EventTypes, e.Type) && matchesHeaders(f.Headers, e)
}

func matchesType(types []string, of []byte) bool {
	if len(types) == 0 {
		return true
	}
	for _, t := range types {
		if n := len(t) - 1; n >= 0 && t[n] == '*' {
			if bytes.HasPrefix(of, []byte(t[:n])) {
				return true
			}
		} else if string(of) == t {
			return true
		}
	}
	return false
}

// matchesHeaders wants every header of the filter to be there with one of its
// values. The order in which they are looked at does not matter: it is a
// conjunction, counted over the event's own headers, whose names are unique.
func matchesHeaders(wanted map[string][]string, e *source.Record) bool {
	if len(wanted) == 0 {
		return true
	}
	met := 0
	e.EachHeader(func(name, value []byte) bool {
		values, ok := wanted[string(name)]
		if ok && (len(values) == 0 || slices.Contains(values, string(value))) {
			met++
		}
		return met < len(wanted)
	})
	return met == len(wanted)
}
