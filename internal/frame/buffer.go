package frame

import "sync"

// maxKept is the largest buffer that is kept for reuse, in bytes; one large
// batch must not pin its memory for ever.
const maxKept = 256 << 10

// Buffer is reused memory for one body.
type Buffer struct{ B []byte }

var buffers = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, 1<<10)} }}

// NewBuffer returns a buffer with n bytes of unspecified content.
func NewBuffer(n int) *Buffer {
	b := buffers.Get().(*Buffer)
	if cap(b.B) < n {
		b.B = make([]byte, n)
	}
	b.B = b.B[:n]
	return b
}

// Release gives the buffer back; neither it nor B may be used any more.
func (b *Buffer) Release() {
	if cap(b.B) <= maxKept {
		b.B = b.B[:0]
		buffers.Put(b)
	}
}

// Write appends to B, so that encoders can write into the buffer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.B = append(b.B, p...)
	return len(p), nil
}
