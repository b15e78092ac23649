package kv

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	l.s.fail(msg)
	if l.s.opts.Logger != nil {
		l.s.opts.Logger.Error("pebble stopped", "text", msg)
	}
}

// isLockError recognises Pebble's two refusals: within this process by text,
// between processes by the operating system's errno.
func isLockError(err error) bool {
	text := err.Error()
	return errors.Is(err, errLockHeld) || strings.Contains(text, "lock held by current process") ||
		strings.Contains(text, "resource temporarily unavailable")
}

func background() context.Context { return context.Background() }
