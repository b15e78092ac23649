package worker_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/internal/gateway/httpgw"
	"github.com/keyload/keyload/worker"
)

// served is a server on the bed's store and a key for it.
type served struct {
	b      *bed
	key    string
	server *httpgw.Server
	ended  chan error
}

func (b *bed) serve() *served {
	b.t.Helper()
	_, err := b.db.ConfigurePrincipal(b.t.Context(), api.Principal{ID: "w", PolicyEpoch: 1, Roles: []api.Role{api.RoleWorker}})
	check(b.t, err)
	k, err := b.db.CreateAPIKey(b.t.Context(), &api.APIKeysCreateRequest{PrincipalID: "w"})
	check(b.t, err)
	s := &served{b: b, key: k.APIKey}
	s.open("127.0.0.1:0")
	return s
}

func (s *served) open(addr string) {
	s.b.t.Helper()
	g, err := httpgw.New(httpgw.Options{Door: s.b.db.Engine()})
	check(s.b.t, err)
	s.server, err = httpgw.Listen(g, httpgw.ListenOptions{Addr: addr})
	check(s.b.t, err)
	s.ended = make(chan error, 1)
	server, ended := s.server, s.ended
	go func() { ended <- server.Serve() }()
}

func (s *served) close() {
	s.b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	check(s.b.t, s.server.Shutdown(ctx))
	check(s.b.t, <-s.ended)
}

func TestAWorkerOfAServerGoesOnWhenTheServerIsStartedAnew(t *testing.T) {
	b := newBed(t)
	s := b.serve()
	c := client.New(s.server.URL(), s.key)
	const messages = 60
	var mu sync.Mutex
	handled, half := 0, make(chan struct{})
	all := make(chan struct{})
	w := worker.Queue(c, b.lane, func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
		done(tx, m)
		mu.Lock()
		defer mu.Unlock()
		if handled++; handled == messages/2 {
			close(half)
		}
		if handled == messages {
			close(all)
		}
		return nil
	}, worker.Options{Concurrency: 2})
	r := b.run(w)
	b.enqueue(messages)
	<-half
	s.close()
	s.open(strings.TrimPrefix(s.server.URL(), "http://"))
	<-all
	check(t, r.end())
	got := b.effects()
	slices.Sort(got)
	if len(got) != messages || len(slices.Compact(got)) != messages {
		t.Errorf("effects %v", got)
	}
	check(t, c.Close())
	s.close()
}

func TestNoGoroutineOutlivesRun(t *testing.T) {
	b := newBed(t)
	b.enqueue(40)
	there := goleak.IgnoreCurrent()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	check(t, worker.Queue(b.db, b.lane, func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
		done(tx, m)
		if m.MessageID == "m-39" {
			stop()
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}, worker.Options{Concurrency: 8, HandlerTimeout: time.Minute, DrainTimeout: -1}).Run(ctx))
	goleak.VerifyNone(t, there)
}

func BenchmarkAWorkerHandlesMessages(b *testing.B) {
	for _, plain := range []bool{false, true} {
		name := map[bool]string{false: "inbox", true: "plain"}[plain]
		b.Run(name, func(b *testing.B) {
			x := newBed(b)
			messages := make([]api.Mutation, 256)
			for i := range messages {
				messages[i] = client.Enqueue("jobs", client.Message(i))
			}
			for n := 0; n < b.N; n += len(messages) {
				_, err := x.db.Commit(b.Context(), x.lane.Partition, messages[:min(len(messages), b.N-n)]...)
				check(b, err)
			}
			ctx, stop := context.WithCancel(b.Context())
			defer stop()
			var mu sync.Mutex
			handled := 0
			b.ResetTimer()
			check(b, worker.Queue(x.db, x.lane, func(context.Context, *worker.Tx, *worker.Message) error {
				mu.Lock()
				defer mu.Unlock()
				if handled++; handled == b.N {
					stop()
				}
				return nil
			}, worker.Options{NoInbox: plain}).Run(ctx))
		})
	}
}
