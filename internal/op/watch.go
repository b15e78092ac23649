package op

import "github.com/keyload/keyload/internal/kv"

// watched is a reader that notes that reading failed. Any other error that a check
// ends with is about what rows say, whatever it is: it must be a finding, since who
// asks for a check wants to know just that.
type watched struct {
	kv.Reader
	failed bool
}

// watch begins to watch what the audit reads. A transaction is left alone: tables
// read one in their own way.
func watch(a *Audit) {
	switch a.R.(type) {
	case *kv.Tx, *watched:
	default:
		a.R = &watched{Reader: a.R}
	}
}

// unread says that the error is of reading, or of a step: it ends the audit.
func unread(a *Audit) bool {
	w, ok := a.R.(*watched)
	return !ok || w.failed || a.stopped
}

// Get implements kv.Reader.
func (w *watched) Get(key []byte) ([]byte, bool, error) {
	b, ok, err := w.Reader.Get(key)
	w.failed = w.failed || err != nil
	return b, ok, err
}

// Scan implements kv.Reader.
func (w *watched) Scan(lower, upper []byte, reverse bool, fn func(key, value []byte) (bool, error)) error {
	var own error
	err := w.Reader.Scan(lower, upper, reverse, func(key, value []byte) (more bool, err error) {
		more, own = fn(key, value)
		return more, own
	})
	w.failed = w.failed || err != nil && own == nil
	return err
}

// Shared implements kv.Reader.
func (w *watched) Shared(key []byte, decode func([]byte) (any, error)) (any, error) {
	var own error
	d, err := w.Reader.Shared(key, func(b []byte) (d any, err error) {
		d, own = decode(b)
		return d, own
	})
	w.failed = w.failed || err != nil && own == nil
	return d, err
}
