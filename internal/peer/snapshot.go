package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/keyload/keyload/internal/frame"
)

const (
	// chunkBytes is the most of a stream that one frame holds.
	chunkBytes = 128 << 10
	// streamQueue is how many bytes of a stream wait for the connection.
	streamQueue = 1 << 20
)

// SendSnapshot streams all of r to a node, on a connection of its own, and returns
// nil when Receiver.ReceiveSnapshot there has returned nil. An error says that it
// did not, or that nobody knows. It waits while too many streams are sent already.
// It ends with ctx, and by itself when nothing moves for long.
func (m *Mesh) SendSnapshot(ctx context.Context, to uint64, shard uint16, r io.Reader) error {
	select {
	case m.sending <- struct{}{}:
		defer func() { <-m.sending }()
	case <-ctx.Done():
		return notSent("%w", context.Cause(ctx))
	}
	_, address, route, err := m.find(to)
	if err != nil {
		return notSent("node %d: %w", to, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(route, func() { cancel(context.Cause(route)) })()
	l, err := m.dial(ctx, address, to, forSnapshot)
	if err != nil {
		return notSent("%w", err)
	}
	defer l.close(nil)
	if !l.start(newOutbox(streamQueue, streamQueue/chunkBytes+2), m.o.Times, m.spawn) {
		return notSent("%w", errClosed)
	}
	stalled := time.AfterFunc(m.o.Times.StallAfter, func() { l.close(errStalled) })
	defer stalled.Stop()
	answer := make(chan error, 1)
	go func() {
		err := l.streamAnswer()
		answer <- err
		l.close(err)
	}()
	err = sendStream(l, shard, r, m.o.Bounds.SnapshotRate, func() { stalled.Reset(m.o.Times.StallAfter) })
	if err != nil && !errors.Is(err, errLinkEnded) {
		l.close(err) // without the end: what has come is worth nothing there
		<-answer
		return fmt.Errorf("the snapshot for node %d could not be read: %w", to, err)
	}
	// If the connection ended, its answer may say why.
	if err = <-answer; err != nil {
		return lost("snapshot to node %d: %w", to, err)
	}
	return nil
}

var (
	// errLinkEnded is the end of a stream that its reader has nothing to do with.
	errLinkEnded = errors.New("the connection ended")
	errStalled   = errors.New("nothing of the stream has moved for too long")
)

// sendStream sends all of r, rate bytes a second, and tells when something has
// moved.
func sendStream(l *link, shard uint16, r io.Reader, rate int, moved func()) error {
	put := func(p *parcel) error {
		if l.out.put(l.ctx, p) != nil {
			return errLinkEnded
		}
		moved()
		return nil
	}
	if err := put(&parcel{kind: kindBegin, id: uint32(shard)}); err != nil {
		return err
	}
	pace := pacer{rate: rate, began: time.Now()}
	for {
		chunk := make([]byte, chunkBytes)
		n, err := fill(r, chunk)
		if n > 0 {
			if err := put(&parcel{kind: kindChunk, body: chunk[:n]}); err != nil {
				return err
			}
			if !pace.wait(l.ctx, n) {
				return errLinkEnded
			}
		}
		if err == io.EOF {
			return put(&parcel{kind: kindEnd})
		}
		if err != nil {
			return err
		}
	}
}

// fill reads until b is full or r ends. Unlike io.ReadFull it keeps the end apart
// from an io.ErrUnexpectedEOF of r's own.
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = r.Read(b[n:])
		n += more
	}
	return n, err
}

// streamAnswer is what the receiver says of the stream.
func (l *link) streamAnswer() error {
	h, err := l.next()
	if err != nil {
		return firstOf(l.ctx, err)
	}
	switch h.Kind {
	case frame.Result:
		return nil
	case kindFailed:
		text, err := l.text(h)
		if err != nil {
			return err
		}
		return errors.New(text)
	}
	return unexpected(h)
}

// pacer keeps a stream to a rate on the average.
type pacer struct {
	rate  int // bytes a second; 0: any
	began time.Time
	bytes int64
}

// wait waits until n more bytes may have been sent. It says whether ctx goes on.
func (p *pacer) wait(ctx context.Context, n int) bool {
	if p.rate <= 0 {
		return ctx.Err() == nil
	}
	p.bytes += int64(n)
	due := time.Duration(float64(p.bytes) / float64(p.rate) * float64(time.Second))
	t := time.NewTimer(due - time.Since(p.began))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// takeSnapshot hands a stream on and tells the sender what became of it.
func takeSnapshot(m *Mesh, l *link) error {
	if !l.start(newOutbox(streamQueue, 8), m.o.Times, m.spawn) {
		return errClosed
	}
	h, err := l.next()
	if err != nil {
		return err
	}
	if h.Kind != kindBegin || h.ID > 1<<16-1 || h.Size != 0 {
		return unexpected(h)
	}
	answer := &parcel{kind: frame.Result}
	if err := handSnapshot(m.receiver.Load().receiver, l, uint16(h.ID)); err != nil {
		answer = &parcel{kind: kindFailed, body: textOf(err)}
	}
	if err := l.out.put(l.ctx, answer); err != nil {
		return err
	}
	l.flush()
	l.drain(m.o.Times.IdleAfter)
	return nil
}

func handSnapshot(receiver Receiver, l *link, shard uint16) error {
	if receiver == nil {
		return errors.New("the node is not ready to receive snapshots")
	}
	r := &stream{link: l}
	if err := receiver.ReceiveSnapshot(l.ctx, l.name.Node, shard, r); err != nil {
		return err
	}
	return r.whole()
}

// drain reads until the other side has closed the connection: closed before, it
// could lose what was just written.
func (l *link) drain(limit time.Duration) {
	l.idle = 0
	_ = l.raw.SetReadDeadline(time.Now().Add(limit))
	var scrap [4 << 10]byte
	for {
		if _, err := l.conn.Read(scrap[:]); err != nil {
			return
		}
	}
}

// stream is what comes on a connection, as a reader. Only a stream whose end was
// said ends with io.EOF.
type stream struct {
	link *link
	left int // of the chunk that is being read
	err  error
}

func (s *stream) Read(b []byte) (int, error) {
	for s.left == 0 && s.err == nil {
		s.err = s.advance()
	}
	if s.err != nil {
		return 0, s.err
	}
	b = b[:min(len(b), s.left)]
	if s.err = s.link.in.Read(b); s.err != nil {
		return 0, s.err
	}
	s.left -= len(b)
	return len(b), nil
}

// advance reads the next header.
func (s *stream) advance() error {
	h, err := s.link.next()
	switch {
	case err == io.EOF: // of the connection, not of the stream
		return io.ErrUnexpectedEOF
	case err != nil:
		return firstOf(s.link.ctx, err)
	case h.Kind == kindEnd && h.Size == 0:
		return io.EOF
	case h.Kind == kindChunk && h.Size > 0 && h.Size <= chunkBytes:
		s.left = h.Size
		return nil
	}
	return unexpected(h)
}

// whole says whether the stream was read to its end, which may still be to come.
func (s *stream) whole() error {
	var one [1]byte
	n, err := s.Read(one[:])
	if n > 0 {
		return errors.New("the receiver did not read the stream to its end")
	}
	if err != io.EOF {
		return err
	}
	return nil
}
