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
func verify(files vfs.FS, dir, manifest string, names []string) error {
	edits := recordFile{files, manifest, 0}
	needed := uint64(0) // logs below this one were written out
	editsEnd, err := edits.readable(func(record []byte) {
		if n, ok := neededLog(record); ok {
			needed = n
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return damaged(manifest, "the file is gone")
	}
	if err != nil {
		return err
	}
	if err := verifyNames(files, dir, names, needed); err != nil {
		return err
	}
	proof, err := verifyLogs(files, dir, logNumbers(names), needed, manifest)
	if err != nil {
		return err
	}
	if uint64(editsEnd) < proof {
		return damaged(manifest, "bytes from %d on cannot be read, and the log says that they were durable up to %d", editsEnd, proof)
	}
	return edits.after(editsEnd, func(at int64, _ []byte) error {
		return damaged(manifest, "bytes from %d on cannot be read, and the edit at %d was written after them", editsEnd, at)
	})
}

// logNumbers are the numbers of the logs among the files of a directory, the newest
// first.
func logNumbers(names []string) (logs []uint64) {
	for _, name := range names {
		if n, ok := logNumber(name); ok {
			logs = append(logs, n)
		}
	}
	slices.Sort(logs)
	slices.Reverse(logs)
	return logs
}

// verifyLogs examines the logs that are needed, and the newest one in any case. It
// returns how far the manifest is known to have been synced.
func verifyLogs(files vfs.FS, dir string, logs []uint64, needed uint64, manifest string) (proof uint64, err error) {
	number, _ := manifestNumber(files.PathBase(manifest))
	for i, log := range logs {
		if i > 0 && log < needed {
			break
		}
		path := logPath(files, dir, log)
		last, end, err := verifyLog(files, path, log, i == 0)
		if err != nil {
			return 0, err
		}
		if i > 0 {
			if err := verifyClosed(recordFile{files, path, log}, end, logs[i-1]); err != nil {
				return 0, err
			}
		}
		if last.manifest == number {
			proof = max(proof, last.manifestSynced)
		}
	}
	return proof, nil
}

// verifyClosed finds that a log ends before its end: Pebble begins a log only when
// the one before it is durable, with a chunk at its end that is of the log to come.
func verifyClosed(log recordFile, end int64, newer uint64) error {
	closed := false
	err := log.eachBlock(func(at int64, b []byte) (bool, error) {
		if end >= at+int64(len(b)) {
			return true, nil
		}
		b = b[end-at:]
		closed = len(b) >= loggedHeader && b[6] == 5 && binary.LittleEndian.Uint32(b[plainHeader:]) == uint32(log.logNumber)+1
		return false, nil
	})
	if err == nil && !closed {
		err = damaged(log.path, "bytes from %d on cannot be read, and log %d was begun after them", end, newer)
	}
	return err
}

func logPath(files vfs.FS, dir string, number uint64) string {
	return files.PathJoin(dir, logName(number))
}

// neededLog reads from an edit of the manifest which log is the oldest that is not
// written out: Pebble writes that first, after its name for the order of keys.
func neededLog(edit []byte) (log uint64, ok bool) {
	const tagComparer, tagLog = 1, 2
	tag, n := binary.Uvarint(edit)
	if n > 0 && tag == tagComparer {
		edit = edit[n:]
		size, m := binary.Uvarint(edit)
		if m <= 0 || size > uint64(len(edit)-m) {
			return 0, false
		}
		edit = edit[m+int(size):]
		tag, n = binary.Uvarint(edit)
	}
	if n <= 0 || tag != tagLog {
		return 0, false
	}
	log, m := binary.Uvarint(edit[n:])
	return log, m > 0
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

// verifyLog returns the last mark of a log and where its readable bytes end. The
// newest log may end anywhere, since a power loss cuts a write off.
func verifyLog(files vfs.FS, path string, number uint64, newest bool) (last mark, end int64, err error) {
	log := recordFile{files, path, number}
	end, err = log.readable(func(record []byte) {
		if m, ok := markOf(record); ok {
			last = m
		}
	})
	if err != nil || !newest {
		return last, end, err
	}
	return last, end, log.after(end, func(at int64, record []byte) error {
		m, ok := markOf(record)
		if ok && m.log == number && m.logSynced > uint64(end) {
			return damaged(path, "bytes from %d on cannot be read, and the entry at %d says that they were durable", end, at)
		}
		return nil
	})
}
