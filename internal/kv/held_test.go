package kv

import (
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// heldSyncs is a file system whose syncs of logs can be held up.
type heldSyncs struct {
	vfs.FS
	gate sync.RWMutex
}

// hold lets no sync of a log begin until release.
func (h *heldSyncs) hold() (release func()) {
	h.gate.Lock()
	return h.gate.Unlock
}

type heldFile struct {
	vfs.File
	gate *sync.RWMutex
}

func (h *heldSyncs) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return heldFile{f, &h.gate}, nil
}

func (h *heldSyncs) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := h.FS.Create(name, c)
	return h.wrap(name, f, err)
}

func (h *heldSyncs) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := h.FS.ReuseForWrite(old, name, c)
	return h.wrap(name, f, err)
}

func (f heldFile) Sync() error {
	f.gate.RLock()
	defer f.gate.RUnlock()
	return f.File.Sync()
}

func (f heldFile) SyncData() error {
	f.gate.RLock()
	defer f.gate.RUnlock()
	return f.File.SyncData()
}

// heldTables is a file system on which no table can be made until it is released,
// so that entries stay in several logs.
type heldTables struct {
	vfs.FS
	released chan struct{}
}

func (h *heldTables) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		<-h.released
	}
	return h.FS.Create(name, c)
}
