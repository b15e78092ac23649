package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble takes the first bytes of a log or manifest that it cannot read for
// where the last write was cut off by a power loss, and drops the rest without a
// word. Tables are safe: every block has a checksum. So before Pebble opens a
// store, verify reads the two files itself and looks for proof that the bytes it
// cannot read had been durable: every entry in the log tells how far log and
// manifest were synced when it was written (mark), and Close writes one more that
// covers the last entry. Besides, an edit of the manifest is written only after
// the one before it is synced.
//
// What cannot be told from a power loss: damage within the last one or two
// entries of a log that was not closed.

// mark says how far two files were synced. It is the first record of every
// entry's batch, where it is no key and is never read but here.
type mark struct {
	log, logSynced           uint64 // number of the log file; bytes from its start
	manifest, manifestSynced uint64
}

func (m mark) append(dst []byte) []byte {
	for _, v := range []uint64{m.log, m.logSynced, m.manifest, m.manifestSynced} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

// markOf finds the mark in a record of the log: the header of a batch, the kind
// of the operation (Pebble's LogData), its length, the mark.
func markOf(record []byte) (m mark, ok bool) {
	const batchHeader, kindLogData = 12, 3
	if len(record) <= batchHeader || record[batchHeader] != kindLogData {
		return m, false
	}
	b := record[batchHeader+1:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return m, false
	}
	b = b[n : n+int(size)]
	for _, v := range []*uint64{&m.log, &m.logSynced, &m.manifest, &m.manifestSynced} {
		if *v, n = binary.Uvarint(b); n <= 0 {
			return m, false
		}
		b = b[n:]
	}
	return m, len(b) == 0
}

// verify examines the store in dir, which nobody else has open.
func verify(files vfs.FS, dir, manifest string) error {
	names, err := files.List(dir)
	if err != nil {
		return err
	}
	var logs []uint64
	for _, name := range names {
		if n, ok := logNumber(name); ok {
			logs = append(logs, n)
		}
	}
	slices.Sort(logs)
	slices.Reverse(logs)
	number, _ := manifestNumber(files.PathBase(manifest))
	proof := uint64(0) // the manifest was synced at least as far
	for i, log := range logs {
		m, err := verifyLog(files, files.PathJoin(dir, logName(log)), log, i == 0)
		if err != nil {
			return err
		}
		if m.manifest == number {
			proof = m.manifestSynced
		}
		if m != (mark{}) {
			break // older ones know less
		}
	}
	return verifyManifest(files, manifest, proof)
}

func logNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, ".log")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

func logName(number uint64) string { return fmt.Sprintf("%06d.log", number) }

func manifestNumber(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, "MANIFEST-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

func damaged(file, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrCorrupt, file, fmt.Sprintf(format, args...))
}

// verifyLog returns the last mark of a log. Only the newest one may end in bytes
// that cannot be read; Pebble sees to the others itself.
func verifyLog(files vfs.FS, path string, number uint64, newest bool) (last mark, err error) {
	log := recordFile{files, path, number}
	end, err := log.readable(func(record []byte) {
		if m, ok := markOf(record); ok {
			last = m
		}
	})
	if err != nil || !newest {
		return last, err
	}
	return last, log.after(end, func(at int64, record []byte) error {
		m, ok := markOf(record)
		if ok && m.log == number && m.logSynced > uint64(end) {
			return damaged(path, "bytes from %d on cannot be read, and the entry at %d says that they were durable", end, at)
		}
		return nil
	})
}

func verifyManifest(files vfs.FS, path string, proof uint64) error {
	m := recordFile{files, path, 0}
	end, err := m.readable(nil)
	if errors.Is(err, fs.ErrNotExist) {
		return damaged(path, "the file is gone")
	}
	if err != nil {
		return err
	}
	if uint64(end) < proof {
		return damaged(path, "bytes from %d on cannot be read, and the log says that they were durable up to %d", end, proof)
	}
	return m.after(end, func(at int64, _ []byte) error {
		return damaged(path, "bytes from %d on cannot be read, and the edit at %d was written after them", end, at)
	})
}
