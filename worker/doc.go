// Package worker runs a handler over the deliveries of a queue or of a
// subscription group, from an embedded store or a server.
//
//	w := worker.Queue(db, client.Lane(p, "emails"),
//		func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
//			var job struct{ Order string }
//			if err := m.Decode(&job); err != nil {
//				return worker.Terminal(err) // no retry can help
//			}
//			if err := send(ctx, m.MessageID, job.Order); err != nil {
//				return err // tried again later, by the queue's policy
//			}
//			tx.Append("history", job.Order, client.Event("CustomerMailed", nil))
//			return nil // effects, inbox record and acknowledgement commit together
//		}, worker.Options{Concurrency: 16})
//	err := w.Run(ctx) // until ctx ends; then it drains
//
// What a handler adds to its Tx commits once for each message, however often the
// message is delivered, if equal messages lead to equal effects: take no clock,
// random number or attempt into them. What it does elsewhere may happen again
// and should carry the message's id.
//
// A lease is counted from the moment its request was sent, on this machine's
// monotonic clock. The store's clock and this machine's are never compared, and
// a worker believes less than the store would grant, never more.
//
// Owns: the loop of a worker: receiving what can be started, renewing leases,
// committing results, giving back, backing off, draining.
//
// May: start goroutines that end before Run returns; read this machine's clock.
//
// May not: hold a delivery that it does not work on; commit after a lease may
// have ended; call a result committed that the store has not confirmed.
//
// Start reading at: worker.go, then receive.go, delivery.go and lease.go.
package worker
