package peer

import (
	"context"
	"errors"
	"sync"

	"github.com/keyload/keyload/internal/frame"
)

// parcel is one frame that waits to be written. It is its outbox's.
type parcel struct {
	kind frame.Kind
	id   uint32
	head []byte
	body []byte

	state parcelState
}

type parcelState byte

const (
	waiting   parcelState = iota // nothing of it was written
	taken                        // it may have been written
	withdrawn                    // it will never be
)

// size is what the parcel counts for: never 0, so that empty ones are bounded too.
func (p *parcel) size() int { return len(p.head) + len(p.body) + 1 }

// errOutboxClosed is the answer to who comes too late.
var errOutboxClosed = errors.New("the connection is closed")

// outbox is a bounded queue of parcels between many senders and one writer.
type outbox struct {
	maxBytes, maxParcels int

	mu     sync.Mutex
	queue  []*parcel
	first  int // of queue; those before it were taken
	bytes  int // of the queue
	count  int // of the queue, without those withdrawn
	down   bool
	closed bool
	room   chan struct{} // closed when parcels were taken; nil when nobody waits for it

	wake chan struct{} // the writer has something to do
}

func newOutbox(maxBytes, maxParcels int) *outbox {
	return &outbox{maxBytes: maxBytes, maxParcels: maxParcels, wake: make(chan struct{}, 1)}
}

// offer queues a parcel, or says that there is no room or no way to send it. It
// never waits.
func (o *outbox) offer(p *parcel) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.down || !o.fits(p) {
		return false
	}
	o.add(p)
	return true
}

// put queues a parcel once there is room. An error means that it was not queued.
func (o *outbox) put(ctx context.Context, p *parcel) error {
	o.mu.Lock()
	for !o.closed && !o.fits(p) {
		if o.room == nil {
			o.room = make(chan struct{})
		}
		room := o.room
		o.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		o.mu.Lock()
	}
	defer o.mu.Unlock()
	if o.closed {
		return errOutboxClosed
	}
	o.add(p)
	return nil
}

// fits says whether there is room; an empty queue has room for anything.
func (o *outbox) fits(p *parcel) bool {
	return o.count == 0 || o.count < o.maxParcels && o.bytes+p.size() <= o.maxBytes
}

func (o *outbox) add(p *parcel) {
	o.queue = append(o.queue, p)
	o.bytes += p.size()
	o.count++
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// withdraw takes a parcel back and says whether nothing of it was, or will be,
// written.
func (o *outbox) withdraw(p *parcel) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.state == waiting {
		p.state = withdrawn
		o.bytes -= p.size()
		o.count--
		p.head, p.body = nil, nil
		o.free()
	}
	return p.state == withdrawn
}

// take moves parcels into out until that holds limit bytes, or nothing waits. From
// then on they may have been written. more says that others wait.
func (o *outbox) take(out []*parcel, limit int) (all []*parcel, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return out, false
	}
	for n := 0; o.first < len(o.queue) && n < limit; o.first++ {
		p := o.queue[o.first]
		o.queue[o.first] = nil
		if p.state == withdrawn {
			continue
		}
		p.state = taken
		n += p.size()
		o.bytes -= p.size()
		o.count--
		out = append(out, p)
	}
	more = o.first < len(o.queue)
	if 2*o.first >= len(o.queue) { // under a lasting load the queue is never empty
		n := copy(o.queue, o.queue[o.first:])
		clear(o.queue[n:])
		o.queue, o.first = o.queue[:n], 0
	}
	o.free()
	return out, more
}

// free lets those look again who wait for room. The lock is held.
func (o *outbox) free() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// setDown, while there is no way to send anything, drops what waits and refuses
// what is offered. It says how many were dropped.
func (o *outbox) setDown(down bool) (dropped int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = down
	if !down {
		return 0
	}
	dropped = o.count
	for _, p := range o.queue[o.first:] {
		p.state = withdrawn
	}
	o.queue, o.first, o.bytes, o.count = nil, 0, 0, 0
	o.free()
	return dropped
}

// close refuses everything from now on; what waits is not written, and can be
// withdrawn.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.free()
}

// depth is what waits now.
func (o *outbox) depth() (parcels, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count, o.bytes
}
