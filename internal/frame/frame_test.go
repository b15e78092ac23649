package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFramesAreReadAsTheyWereWrittenHoweverTheyArrive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type sent struct {
			h    Header
			body []byte
		}
		var all []sent
		var text []byte
		for range rapid.IntRange(0, 20).Draw(t, "frames") {
			head := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "head")
			body := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body")
			h := Header{Kind: Kind(rapid.Byte().Draw(t, "kind")), ID: rapid.Uint32().Draw(t, "id"), Size: len(head) + len(body)}
			text = h.Append(text, head, body)
			all = append(all, sent{h, append(bytes.Clone(head), body...)})
		}
		var from io.Reader = bytes.NewReader(text)
		if rapid.Bool().Draw(t, "one byte at a time") {
			from = iotest.OneByteReader(from)
		}
		r := NewReader(from, 1<<20)
		for i, want := range all {
			got, err := r.Next()
			if err != nil || got != want.h {
				t.Fatalf("frame %d: %+v, %v; want %+v", i, got, err, want.h)
			}
			skip := rapid.IntRange(0, got.Size).Draw(t, "skip")
			rest := make([]byte, got.Size-skip)
			if err := errors.Join(r.Skip(skip), r.Read(rest)); err != nil || !bytes.Equal(rest, want.body[skip:]) {
				t.Fatalf("body %d: %x, %v", i, rest, err)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("after the last frame: %v", err)
		}
	})
}

func TestALengthOutsideOfItsBoundsIsRefusedBeforeTheBodyIsRead(t *testing.T) {
	const limit = 100
	for _, c := range []struct {
		length uint32
		ok     bool
	}{
		{0, false}, {minLength - 1, false}, {minLength, true}, {minLength + limit - 1, true}, {minLength + limit, true},
		{minLength + limit + 1, false}, {1 << 31, false}, {1<<32 - 1, false},
	} {
		text := binary.BigEndian.AppendUint32(nil, c.length)
		text = append(text, byte(Call), 0, 0, 0, 1)
		h, err := NewReader(bytes.NewReader(text), limit).Next()
		if (err == nil) != c.ok {
			t.Errorf("length %d: %v", c.length, err)
		}
		if err == nil && h.Size != int(c.length-minLength) {
			t.Errorf("length %d: size %d", c.length, h.Size)
		}
	}
}

func TestAnEndWithinAFrameIsNotAnOrderlyEnd(t *testing.T) {
	whole := Header{Kind: Result, ID: 7}.Append(nil, nil, []byte("body"))
	for n := range whole {
		r := NewReader(bytes.NewReader(whole[:n]), 100)
		h, err := r.Next()
		if n >= headerBytes && err == nil {
			err = r.Read(make([]byte, h.Size))
		}
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if err != want {
			t.Errorf("after %d bytes: %v, want %v", n, err, want)
		}
	}
}

func TestNothingIsLostWhenAReadTimesOutBetweenTheBytesOfAHeader(t *testing.T) {
	whole := Header{Kind: Result, ID: 7}.Append(nil, nil, []byte("body"))
	late := &lateReader{text: whole, fail: map[int]bool{3: true, 8: true}}
	r := NewReader(late, 100)
	timeouts := 0
	for {
		h, err := r.Next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			timeouts++
			continue
		}
		body := make([]byte, h.Size)
		if err := errors.Join(err, r.Read(body)); err != nil || h.ID != 7 || string(body) != "body" {
			t.Fatalf("%+v %q %v", h, body, err)
		}
		break
	}
	if timeouts != 2 {
		t.Errorf("%d timeouts, want 2", timeouts)
	}
}

// lateReader gives one byte at a time and times out once before some of them.
type lateReader struct {
	text []byte
	at   int
	fail map[int]bool
}

func (l *lateReader) Read(b []byte) (int, error) {
	if l.fail[l.at] {
		delete(l.fail, l.at)
		return 0, os.ErrDeadlineExceeded
	}
	if l.at == len(l.text) {
		return 0, io.EOF
	}
	b[0] = l.text[l.at]
	l.at++
	return 1, nil
}

func TestManySendersLoseAndMixNothing(t *testing.T) {
	near, far := tcpPair(t)
	w := NewWriter(near, func(err error) { t.Errorf("write failed: %v", err) })
	const senders, each = 8, 500
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for j := range each {
				id := uint32(i*each + j)
				if err := w.Send(Call, id, []byte{byte(id), byte(id >> 8)}, bytes.Repeat([]byte{byte(id)}, j%50)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		wg.Wait()
		w.Close()
		_ = near.Close()
	}()
	next := map[int]uint32{} // per sender
	r := NewReader(far, 1000)
	for n := 0; ; n++ {
		h, err := r.Next()
		if err == io.EOF {
			if n != senders*each {
				t.Errorf("%d frames, want %d", n, senders*each)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, h.Size)
		if err := r.Read(body); err != nil {
			t.Fatal(err)
		}
		i := int(h.ID) / each
		if h.ID != uint32(i*each)+next[i] {
			t.Fatalf("sender %d: frame %d out of order", i, h.ID)
		}
		next[i]++
		want := append([]byte{byte(h.ID), byte(h.ID >> 8)}, bytes.Repeat([]byte{byte(h.ID)}, int(h.ID)%each%50)...)
		if !bytes.Equal(body, want) {
			t.Fatalf("frame %d: body %x", h.ID, body)
		}
	}
}

func TestCloseWritesWhatIsQueuedAndRefusesTheRest(t *testing.T) {
	near, far := net.Pipe() // has no buffer: writes wait for reads
	w := NewWriter(near, func(err error) { t.Errorf("write failed: %v", err) })
	first := make(chan error, 1)
	go func() { first <- w.Send(Call, 1, nil, nil) }() // writes itself, and waits
	r := NewReader(far, 100)
	one := make([]byte, 1)
	if _, err := far.Read(one); err != nil { // the write is under way
		t.Fatal(err)
	}
	for id := range uint32(3) {
		if err := w.Send(Call, id+2, nil, nil); err != nil { // joins the next write
			t.Fatal(err)
		}
	}
	closed := make(chan struct{})
	go func() { w.Close(); close(closed) }()
	r.buf.Reset(io.MultiReader(bytes.NewReader(one), far))
	for id := range uint32(4) {
		if h, err := r.Next(); err != nil || h.ID != id+1 {
			t.Fatalf("frame %d: %+v, %v", id+1, h, err)
		}
	}
	<-closed
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := w.Send(Call, 9, nil, nil); err != ErrClosed {
		t.Errorf("after Close: %v", err)
	}
	_ = near.Close()
}

func TestAFailedWriteIsToldOnceAndEndsTheWriter(t *testing.T) {
	near, far := net.Pipe()
	failures := make(chan error, 10)
	w := NewWriter(near, func(err error) { failures <- err })
	_ = far.Close()
	if err := w.Send(Call, 1, nil, nil); err != nil {
		t.Errorf("the frame was queued, so it may have been written: %v", err)
	}
	if err := <-failures; err == nil {
		t.Error("told of no failure")
	}
	if err := w.Send(Call, 2, nil, nil); err == nil {
		t.Error("a frame was taken after the failure")
	}
	w.Close()
	if len(failures) != 0 {
		t.Error("told twice")
	}
	_ = near.Close()
}

func TestSendWaitsWhileTooMuchIsQueued(t *testing.T) {
	near, far := net.Pipe()
	w := NewWriter(near, func(error) {})
	big := make([]byte, maxPending+1)
	go func() { _ = w.Send(Call, 1, nil, nil) }() // waits in its write
	one := make([]byte, 1)
	if _, err := far.Read(one); err != nil {
		t.Fatal(err)
	}
	if err := w.Send(Call, 2, nil, big); err != nil { // is queued: nothing was before it
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- w.Send(Call, 3, nil, nil) }()
	select {
	case <-waited:
		t.Fatal("a frame was queued above the bound")
	case <-time.After(20 * time.Millisecond):
	}
	_ = near.Close() // fails the write; who waits is told
	if err := <-waited; err == nil {
		t.Error("a frame was taken by a writer that failed")
	}
	w.Close()
	_ = far.Close()
}

func TestALargeBufferIsNotKept(t *testing.T) {
	b := NewBuffer(maxKept + 1)
	if len(b.B) != maxKept+1 {
		t.Errorf("%d bytes", len(b.B))
	}
	b.Release()
	for range 100 {
		if c := NewBuffer(10); cap(c.B) > maxKept {
			t.Fatalf("a buffer of %d bytes was kept", cap(c.B))
		}
	}
}

// tcpPair is a connection with a socket buffer, unlike net.Pipe.
func tcpPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
	return near, far
}

func TestAFrameIsSentAndReadWithoutTakingMemory(t *testing.T) {
	near, far := tcpPair(t)
	w := NewWriter(near, func(err error) { t.Errorf("write failed: %v", err) })
	defer w.Close()
	r := NewReader(far, 1000)
	head, body := []byte{0, 1}, make([]byte, 300)
	n := testing.AllocsPerRun(1000, func() {
		if err := w.Send(Call, 7, head, body); err != nil {
			t.Error(err)
		}
		h, err := r.Next()
		b := NewBuffer(h.Size)
		if err != nil || r.Read(b.B) != nil {
			t.Errorf("%+v, %v", h, err)
		}
		b.Release()
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
