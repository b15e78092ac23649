package frame

import (
	"io"
	"net"
	"testing"
)

// Who holds something for a frame is told once, when it may be given up: after the
// frame was written, or when it never will be.
func TestWhatAFrameHoldsIsGivenUpWhenItIsWrittenOrNeverWillBe(t *testing.T) {
	near, far := net.Pipe() // has no buffer: writes wait for reads
	w := NewWriter(near, func(error) {})
	told := make(chan int, 10)
	send := func(id uint32) {
		if err := w.SendThen(Call, id, nil, make([]byte, 100), func() { told <- int(id) }); err != nil {
			t.Error(err)
		}
	}
	go send(1) // writes itself, and waits
	one := make([]byte, 1)
	if _, err := far.Read(one); err != nil {
		t.Fatal(err)
	}
	send(2) // is queued
	if len(told) != 0 {
		t.Error("told before anything was read")
	}
	if _, err := io.CopyN(io.Discard, far, headerBytes+100-1); err != nil {
		t.Fatal(err)
	}
	if first := <-told; first != 1 {
		t.Errorf("told of %d first", first)
	}
	if _, err := far.Read(one); err != nil { // the second is being written
		t.Fatal(err)
	}
	send(3)
	_ = far.Close()
	if a, b := <-told, <-told; a+b != 5 {
		t.Errorf("told of %d and %d after the connection broke", a, b)
	}
	if err := w.SendThen(Call, 4, nil, nil, func() { told <- 4 }); err == nil || <-told != 4 {
		t.Errorf("after the failure: %v", err)
	}
	w.Close()
	if len(told) != 0 {
		t.Error("told twice")
	}
	_ = near.Close()
}
