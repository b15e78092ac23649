package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// ledger is a room that counts, and says no when it is full.
type ledger struct {
	mu          sync.Mutex
	full        bool
	held, taken int
}

func (l *ledger) Take(context.Context, int64) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full {
		return 0, Busy("answers", "no room")
	}
	l.held, l.taken = l.held+1, l.taken+1
	return 1, nil
}

func (l *ledger) Give(taken int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held -= taken
}

func (l *ledger) is(t *testing.T, what string, held int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != held {
		t.Errorf("%s: it holds room for %d answers, want %d", what, l.held, held)
	}
}

// receiveInto asks for a message whose answer is held in a room.
func (p *parking) receiveInto(room Room, wait int64) (*api.QueuesReceiveResponse, error) {
	req := &api.QueuesReceiveRequest{RequestID: api.NewCommandID(), Lane: api.LaneRef{Queue: "jobs"}, WaitMillis: wait}
	api.ApplyDefaults(req)
	got, err := p.e.Do(WithRoom(p.idle, room), p.as, api.QueuesReceive.Operation, req)
	if err != nil {
		return nil, err
	}
	return got.(*api.QueuesReceiveResponse), nil
}

func TestAParkedCallHoldsNoRoomAndItsAnswerDoes(t *testing.T) {
	parked(t, func(p *parking) {
		room := &ledger{}
		done := make(chan int, 1)
		go func() {
			got, err := p.receiveInto(room, 10_000)
			if err != nil {
				t.Error(err)
				got = &api.QueuesReceiveResponse{}
			}
			done <- len(got.Deliveries)
		}()
		synctest.Wait()
		room.is(t, "parked", 0)
		p.enqueue(1, 10)
		if n := <-done; n != 1 {
			t.Errorf("%d messages", n)
		}
		room.is(t, "answered", 1)
		if room.taken < 2 {
			t.Errorf("room was made for %d attempts", room.taken)
		}
	})
}

// Where there is no room nothing is claimed, at once or when it is woken: the message
// is there for the next who asks.
func TestWithoutRoomNothingIsClaimed(t *testing.T) {
	parked(t, func(p *parking) {
		room := &ledger{}
		receive := func(wait int64) error {
			_, err := p.receiveInto(room, wait)
			return err
		}
		woken := make(chan error, 1)
		go func() { woken <- receive(10_000) }()
		synctest.Wait()
		room.mu.Lock()
		room.full = true
		room.mu.Unlock()
		began := time.Now()
		p.enqueue(1, 10)
		for what, err := range map[string]error{"woken": <-woken, "at once": receive(0)} {
			f := fault.From(err)
			if f == nil || f.Code != fault.ResourceExhausted || f.Reason != "answers" || f.Retry != fault.RetrySameID {
				t.Errorf("%s: %v", what, err)
			}
		}
		room.is(t, "refused", 0)
		if took := time.Since(began); took > 0 {
			t.Errorf("the refusal took %v", took)
		}
		got := ask(p, api.QueuesReceive, &api.QueuesReceiveRequest{Lane: api.LaneRef{Queue: "jobs"}})
		if len(got.Deliveries) != 1 || got.Deliveries[0].Attempt != 1 {
			t.Errorf("the next one gets %+v", got.Deliveries)
		}
	})
}
