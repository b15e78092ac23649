package disk

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Slow is a file system whose syncs take so much longer than those of the one
// below.
func Slow(fs vfs.FS, longer time.Duration) *Watched {
	return Watch(fs, func(s Sync) {
		if !s.After {
			//keyload:sleep a slow disk is what this is
			time.Sleep(longer)
		}
	})
}
