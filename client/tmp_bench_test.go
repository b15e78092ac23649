package client_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"
	"fmt"
	"syscall"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/internal/gateway/httpgw"
)

type tiny struct{ delay time.Duration }

func (tiny) Authenticate(context.Context, string) (httpgw.Caller, error) { return nil, nil }
func (tiny) Ready() error                                                { return nil }
func (d tiny) Do(ctx context.Context, _ httpgw.Caller, o *api.Operation, req any) (any, error) {
	r := req.(*api.CommandsCommitRequest)
	if d.delay > 0 { time.Sleep(d.delay) }
	resp := &api.CommandsCommitResponse{Receipt: api.Receipt{CommandID: r.CommandID, Durability: "disk", CommittedAt: 1, Token: api.CommitToken{Incarnation: "0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e", Partition: r.Partition, Position: 1}}}
	for range r.Mutations {
		resp.Results = append(resp.Results, api.MutationResult{})
	}
	return resp, nil
}

func bench(b *testing.B, par, batch int, opts ...client.Option) {
	g, err := httpgw.New(httpgw.Options{Door: tiny{}})
	if err != nil { b.Fatal(err) }
	srv := httptest.NewServer(g)
	defer srv.Close()
	c := client.New(srv.URL, "kl_a_b", opts...)
	defer c.Close()
	payload := make([]byte, 0, 256)
	payload = append(payload, '"')
	for len(payload) < 255 { payload = append(payload, 'x') }
	payload = append(payload, '"')
	var ms []api.Mutation
	for i := range batch {
		ms = append(ms, api.Mutation{Enqueue: &api.Enqueue{Queue: "q", Message: api.Message{MessageID: fmt.Sprint("m-", i), Payload: payload}}})
	}
	b.ReportAllocs()
	b.SetParallelism(par / 2)
	b.ResetTimer()
	var before, after syscall.Rusage
	syscall.Getrusage(0, &before)
	defer func() {
		syscall.Getrusage(0, &after)
		us := func(t syscall.Timeval) float64 { return float64(t.Sec)*1e6 + float64(t.Usec) }
		b.ReportMetric((us(after.Utime)-us(before.Utime))/float64(b.N), "user-us/op")
		b.ReportMetric((us(after.Stime)-us(before.Stime))/float64(b.N), "sys-us/op")
	}()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Commit(context.Background(), api.PartitionRef{}, ms...); err != nil { b.Error(err) }
		}
	})
}

func BenchmarkSession2(b *testing.B) { bench(b, 2, 1) }
func BenchmarkSession64(b *testing.B) { bench(b, 64, 1) }
func BenchmarkSession64x2conn(b *testing.B) { bench(b, 64, 1, client.Sessions(2)) }
func BenchmarkSession16x100(b *testing.B) { bench(b, 16, 100) }
func BenchmarkSession16x100x2conn(b *testing.B) { bench(b, 16, 100, client.Sessions(2)) }
func BenchmarkHTTP64(b *testing.B) { bench(b, 64, 1, client.HTTPOnly()) }
func BenchmarkHTTP2(b *testing.B) { bench(b, 2, 1, client.HTTPOnly()) }
func BenchmarkHTTP16x100(b *testing.B) { bench(b, 16, 100, client.HTTPOnly()) }
