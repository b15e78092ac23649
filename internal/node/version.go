package node

import (
	"runtime"
	"runtime/debug"

	"github.com/keyload/keyload"
)

// Build says which program this is.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source it was built from
	Go       string `json:"go"`
}

// Version is the program's own.
func Version() Build {
	b := Build{Version: keyload.Version, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	return b
}
