package kv

import (
	"slices"
	"strings"
	"sync"
)

// unnamed are the paths of files that nothing on the disk names: a manifest until
// a marker names it, the tables made since a manifest that is named was last
// written and, while the store opens, its new log. When a write has failed they
// are of no use and may go; otherwise every start on a full disk would take more
// of the little room there is.
type unnamed struct {
	mu    sync.Mutex
	paths []string
}

// made notes that a file is about to be made.
func (u *unnamed) made(path, base string, opened bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, isLog := logNumber(base)
	_, isManifest := manifestNumber(base)
	switch {
	case strings.HasPrefix(base, "marker."):
		u.paths = nil
	case table(base), isManifest, isLog && !opened:
		u.paths = append(u.paths, path)
	}
}

// told notes that a manifest is about to be written.
func (u *unnamed) told(manifest string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !slices.Contains(u.paths, manifest) {
		u.paths = nil
	}
}

func (u *unnamed) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paths = nil
}

// tidy removes what a failed write has left of no use. The files must be closed
// and the directory locked. What cannot be removed stays until the store opens.
func (d *disk) tidy() {
	if !d.frozen() {
		return
	}
	d.unnamed.mu.Lock()
	defer d.unnamed.mu.Unlock()
	for _, path := range d.unnamed.paths {
		if _, isLog := logNumber(d.FS.PathBase(path)); isLog {
			if info, err := d.FS.Stat(path); err != nil || info.Size() > 0 {
				continue // made of an old one
			}
		}
		_ = d.FS.Remove(path)
	}
	d.unnamed.paths = nil
}
