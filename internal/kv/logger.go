package kv

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleLogger hands Pebble's words to slog. Pebble ends the process through
// Fatalf when its log cannot be written; here that marks the store as failed,
// because an embedding program must not die of a full disk.
type pebbleLogger struct{ s *Store }

func (l pebbleLogger) Infof(format string, args ...any) {
	if l.s.opts.Logger != nil {
		l.s.opts.Logger.Debug("pebble", "text", fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	if l.s.opts.Logger != nil {
		l.s.opts.Logger.Error("pebble", "text", fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	l.s.fail(errors.New(msg))
	if l.s.opts.Logger != nil {
		l.s.opts.Logger.Error("pebble stopped", "text", msg)
	}
}

// listener stops the store when background work comes upon damage: a compaction
// that fails for good lets tables pile up until writes hang. Damage that a read
// comes upon is the answer of that read; what lies elsewhere is still served.
func (s *Store) listener() *pebble.EventListener {
	log := pebbleLogger{s}
	l := &pebble.EventListener{
		BackgroundError: func(err error) {
			if pebble.IsCorruptionError(err) {
				s.fail(readError(err))
			}
			log.Errorf("background error: %s", damageText(err))
		},
		// All that Pebble has to say of it are keys of rows, which are nobody's business,
		// and pages of its own code.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			log.Errorf("damage in %s: %s", info.Path, damageText(info.Details))
		},
	}
	l.EnsureDefaults(log)
	return l
}

// damageText is what an error says of damage, without the line by which Pebble tells
// itself more.
func damageText(err error) string {
	return strings.ReplaceAll(err.Error(), "\n<corruption detail carrier>", "")
}

// isDamage recognises stored bytes that are not what they must be.
func isDamage(err error) bool { return pebble.IsCorruptionError(err) || missesTable(err) }

// missesTable recognises what Pebble does not mark as corruption: a table that is
// gone or shorter than the manifest says. A test holds the texts.
func missesTable(err error) bool {
	text := err.Error()
	return strings.Contains(text, "object size mismatch") || strings.Contains(text, "unknown to the objstorage provider")
}

// isLockError recognises Pebble's two refusals: within this process by text,
// between processes by the operating system's errno.
func isLockError(err error) bool {
	text := err.Error()
	return errors.Is(err, errLockHeld) || strings.Contains(text, "lock held by current process") ||
		strings.Contains(text, "resource temporarily unavailable")
}

// whileSound is a context that ends when the store stops: what waits for
// background work then waits in vain.
type whileSound struct {
	context.Context
	s *Store
}

func (c whileSound) Done() <-chan struct{} { return c.s.broken }
func (c whileSound) Err() error            { return c.s.Err() }
