package kv

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// What is not there cannot be found damaged. Pebble opens a directory without the
// marker of its manifest as if there had never been a store, and one without a
// log as if that had never had an entry. So the numbers of the logs that hold
// durable entries stand in the name of an empty file, logs.<n>.<numbers>, of which
// the one with the highest n counts; and Open looks at what else is there before
// it believes that there is no store.

const logListPrefix = "logs."

// logList is the list of a store that is open. Its methods change the disk before
// they return, so that the list is never behind: an entry is not durable before
// its log is in the list, and a log is not removed before it is out of it.
type logList struct {
	mu      sync.Mutex
	dir     string
	numbers []uint64
	last    uint64 // n of the newest name
	stale   []string
}

// load takes over the list of an earlier life.
func (l *logList) load(dir string, names []string) {
	l.dir = dir
	for _, name := range names {
		n, numbers, ok := parseLogList(name)
		if !ok {
			continue
		}
		l.stale = append(l.stale, name)
		if n >= l.last {
			l.last, l.numbers = n, numbers
		}
	}
}

func parseLogList(name string) (n uint64, numbers []uint64, ok bool) {
	rest, ok := strings.CutPrefix(name, logListPrefix)
	first, list, ok2 := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(first, 10, 64)
	if !ok || !ok2 || err != nil {
		return 0, nil, false
	}
	for text := range strings.SplitSeq(list, "-") {
		log, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return 0, nil, false
		}
		numbers = append(numbers, log)
	}
	return n, numbers, true
}

// add puts a log into the list, drop takes one out.
func (l *logList) add(d *disk, log uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.numbers, log) {
		return nil
	}
	return l.store(d, append(slices.Clone(l.numbers), log))
}

func (l *logList) drop(d *disk, log uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.numbers, log) {
		return nil
	}
	return l.store(d, slices.DeleteFunc(slices.Clone(l.numbers), func(n uint64) bool { return n == log }))
}

// clear says that no log is needed any more.
func (l *logList) clear(d *disk) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.store(d, nil)
}

// store makes a new list durable, and then removes the older ones. The lock is
// held.
func (l *logList) store(d *disk, numbers []uint64) error {
	if len(numbers) == 0 && len(l.stale) == 0 {
		return nil
	}
	stale := l.stale
	if len(numbers) > 0 {
		texts := make([]string, len(numbers))
		for i, n := range numbers {
			texts[i] = strconv.FormatUint(n, 10)
		}
		name := fmt.Sprintf("%s%06d.%s", logListPrefix, l.last+1, strings.Join(texts, "-"))
		f, err := d.FS.Create(d.FS.PathJoin(l.dir, name), vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		l.last++
		l.stale = append(slices.Clone(stale), name)
		if err := firstError(f.Close(), d.settle(l.dir)); err != nil {
			return err
		}
		l.stale = []string{name}
	}
	l.numbers = numbers
	for _, name := range stale {
		if err := d.FS.Remove(d.FS.PathJoin(l.dir, name)); err != nil {
			return err
		}
	}
	if len(numbers) == 0 {
		l.stale = nil
		return d.settle(l.dir)
	}
	return nil
}

// verifyNames finds that a log is gone. Those below needed are in the list, or on
// the disk, only until they are removed.
func verifyNames(files vfs.FS, dir string, names []string, needed uint64) error {
	var l logList
	l.load(dir, names)
	there := logNumbers(names)
	for _, log := range l.numbers {
		if log >= needed && !slices.Contains(there, log) {
			return damaged(logPath(files, dir, log), "the file is gone, and entries in it were durable")
		}
	}
	return nil
}

// verifyAbsent finds that a directory without the marker of a manifest had one.
// What is made before it is a manifest, the first.
func verifyAbsent(files vfs.FS, dir string, names []string) error {
	for _, name := range names {
		n, isManifest := manifestNumber(name)
		_, isLog := logNumber(name)
		_, _, isList := parseLogList(name)
		if isLog || isList || table(name) || isManifest && n > 1 || strings.HasPrefix(name, "OPTIONS-") {
			return damaged(files.PathJoin(dir, "marker.manifest.*"), "the file is gone: without it %s and whatever else is there is not found", name)
		}
	}
	return nil
}

// verifyOptions finds that the options which Pebble compares its own with are
// damaged: it would not say in which file.
func verifyOptions(files vfs.FS, dir string, found *pebble.DBDesc, own *pebble.Options) (err error) {
	if found == nil || found.OptionsFilename == "" {
		return nil
	}
	f, err := files.Open(found.OptionsFilename)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	complete := *own
	complete.EnsureDefaults()
	if err := complete.CheckCompatibility(dir, string(text)); err != nil {
		return damaged(found.OptionsFilename, "%v", err)
	}
	return nil
}
