package backup

import (
	"context"
	"errors"
	"io"
	"sync"
)

// Make writes a backup and answers its id.
type Make func(ctx context.Context, w io.Writer) (id string, err error)

// Relay verifies a backup while it is made: keep reads everything that produce
// writes, and an end only once all of it was verified. So what keep has read to its
// end is a whole and sound backup; an error that it reads means that there is none.
// The error is that of produce, of Verify or of keep, whichever came first.
func Relay(ctx context.Context, produce Make, keep func(content io.Reader) error) (*Backup, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var cause firstCause
	toKeep, kept := io.Pipe()
	toVerify, verified := io.Pipe()
	var b *Backup
	verifying := background(func() {
		var err error
		if b, err = Verify(ctx, toVerify, "", nil); err != nil {
			_ = toVerify.CloseWithError(cause.note(err)) // ends produce
		}
	})
	making := background(func() {
		id, err := produce(ctx, io.MultiWriter(kept, verified))
		if err != nil {
			cause.note(err)
		}
		_ = verified.CloseWithError(err) // nil is the end
		<-verifying
		if err == nil && b != nil && b.ID != id {
			cause.note(damaged("it is the backup %s, and %s was made", b.ID, id))
		}
		_ = kept.CloseWithError(cause.get()) // likewise
	})
	if err := keep(toKeep); err != nil {
		cause.note(err)
	}
	_ = toKeep.CloseWithError(errEnded)
	cancel() // produce and Verify are done, or of no use any more
	<-making
	if err := cause.get(); err != nil {
		return nil, err
	}
	return b, nil
}

// errEnded is what a writer is told whose reader wants no more.
var errEnded = errors.New("what is written is not wanted any more")

// firstCause remembers the first of several errors, of which each may have led to
// the ones after it.
type firstCause struct {
	mu  sync.Mutex
	err error
}

func (c *firstCause) note(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	return c.err
}

func (c *firstCause) get() error { return c.note(nil) }

// background runs a function and tells when it has ended.
func background(fn func()) <-chan struct{} {
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	return done
}
