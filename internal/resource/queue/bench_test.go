package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/wire"
)

// direct is a command as the machine of the leader gets it: not decoded again.
func direct[Req, Resp any](b *bed, o api.Op[Req, Resp], req *Req) *Resp {
	api.ApplyDefaults(req)
	fingerprint, encoded, err := wire.Fingerprint(o.Number, req)
	b.must(err)
	id := uuid.MustParse(any(req).(api.CommandRequest).GetCommandID())
	cmd := machine.NewCommand(o.Operation, machine.Identity{ID: id, Principal: b.who, Partition: b.place, Hash: partitions.Hash(b.place)}, fingerprint, encoded, req)
	outs, _, pending, err := b.m.Apply(&machine.Entry{At: b.now, Epoch: 1, Commands: []machine.Command{cmd}})
	b.must(err)
	b.must(pending.Wait())
	if outs[0].Err != nil {
		b.t.Fatalf("%s: %v", o.Name, outs[0].Err)
	}
	h, _ := b.registry.Handler(o.Name)
	if h.Finish != nil {
		b.must(h.Finish(&op.Door{Tokens: b.sealer}, req, outs[0].Response))
	}
	return outs[0].Response.(*Resp)
}

// BenchmarkLife is enqueue, receive and ack of messages of 256 bytes, everything
// a command costs but the disk and the wire; per message.
func BenchmarkLife(bb *testing.B) {
	for _, n := range []int{1, 100} {
		bb.Run(fmt.Sprint(n), func(bb *testing.B) {
			b := newBed(bb, api.QueuePolicy{MaxMessages: 100_000_000, MaxInFlightMessages: 1_000_000})
			defer b.close()
			b.cache = 64 << 20
			b.restart()
			var spent [3]time.Duration
			body := payload(254)
			bb.ReportAllocs()
			bb.ResetTimer()
			for i := 0; i < bb.N; i += n {
				b.now++
				begin := time.Now()
				ms := make([]api.Mutation, n)
				for j := range ms {
					ms[j] = enqueueOf(api.Message{Payload: body})
				}
				direct(b, api.CommandsCommit, &api.CommandsCommitRequest{CommandID: b.id(), Partition: b.place, Mutations: ms})
				enqueued := time.Now()
				ds := direct(b, api.QueuesReceive, &api.QueuesReceiveRequest{RequestID: b.id(), Lane: b.lane(), MaxMessages: int64(n)}).Deliveries
				received := time.Now()
				items := make([]api.CompleteItem, n)
				for j := range items {
					items[j] = api.CompleteItem{Token: ds[j].Token, Action: api.ActionAck}
				}
				direct(b, api.QueuesComplete, &api.QueuesCompleteRequest{CommandID: b.id(), Lane: b.lane(), Items: items})
				spent[0] += enqueued.Sub(begin)
				spent[1] += received.Sub(enqueued)
				spent[2] += time.Since(received)
			}
			for i, part := range []string{"enqueue", "receive", "ack"} {
				bb.ReportMetric(float64(spent[i].Nanoseconds())/float64(bb.N), part+"-ns/op")
			}
		})
	}
}
