package history

import (
	"context"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
)

// Judge drains the queues, reads everything that is there, and says what is wrong.
// The store must be able to answer; within bounds the check of one document.
func (r *Record) Judge(ctx context.Context, d api.Doer, within time.Duration) ([]string, error) {
	w := &worker{Record: r, Calls: client.CallsOf(d), ctx: ctx, number: -1, o: Options{Run: "judge"}}
	found := Found{Effects: map[string]int{}, Events: map[string][]Event{}}
	for _, l := range lanes() {
		if err := w.drain(l, &found); err != nil {
			return nil, err
		}
	}
	for name, s := range sources() {
		for e, err := range w.Events(ctx, s, 0) {
			if err != nil {
				return nil, err
			}
			found.Events[name] = append(found.Events[name], Event{e.Position, e.EventID})
		}
	}
	r.mu.Lock()
	wrong := append([]string(nil), r.wrong...)
	r.mu.Unlock()
	wrong = append(wrong, r.Documents.Check(within)...)
	return append(wrong, r.Ledger.Check(found)...), nil
}

// drain processes what is left in a lane, as it comes due, and reads the effects in
// its partition.
func (w *worker) drain(l api.LaneRef, found *Found) error {
	for {
		st, err := w.QueueStatus(w.ctx, l)
		if err != nil {
			return err
		}
		if st.Counts.Ready+st.Counts.Scheduled+st.Counts.Leased == 0 {
			break
		}
		got, err := w.Receive(w.ctx, &api.QueuesReceiveRequest{Lane: l, MaxMessages: 16, WaitMillis: 5_000})
		if err != nil {
			return err
		}
		for _, d := range got.Deliveries {
			w.Ledger.Delivered(d.MessageID)
			w.finish(l, d)
		}
	}
	for _, state := range []api.MessageState{api.StateReady, api.StateScheduled, api.StateLeased, api.StateDeadLettered, api.StatePendingDeadLetter} {
		for m, err := range w.Messages(w.ctx, l, state) {
			if err != nil {
				return err
			}
			found.Left = append(found.Left, m.MessageID)
		}
	}
	for doc, err := range w.Reads.Documents(w.ctx, l.Partition, effects, "") {
		if err != nil {
			return err
		}
		found.Effects[doc.ID] = int(doc.Revision)
	}
	return nil
}
