package node

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/cluster"
	"github.com/keyload/keyload/internal/engine"
)

// room counts the answers that are held.
type room struct {
	mu          sync.Mutex
	held, taken int
}

func (r *room) Take(context.Context, int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.taken = r.held+1, r.taken+1
	return 1, nil
}

func (r *room) Give(taken int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held -= taken
}

func (r *room) is() (held, taken int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held, r.taken
}

// startPair starts a cluster of two nodes in this process.
func startPair(t *testing.T) (engines [2]*engine.Engine) {
	t.Helper()
	certs := t.TempDir()
	authority, err := cluster.MakeAuthority(certs, "trial", time.Now())
	ok(t, err)
	addresses := [2]string{freeAddress(t), freeAddress(t)}
	var admin *client.Client
	for i := range engines {
		issued, err := authority.Issue(certs, uint64(i+1), time.Now())
		ok(t, err)
		settings := cluster.Settings{
			Cluster: "trial", Node: uint64(i + 1), Listen: addresses[i],
			CAFile: filepath.Join(certs, "ca.pem"), CertFile: issued.CertFile, KeyFile: issued.KeyFile,
		}
		if settings.Bootstrap = i == 0; i > 0 {
			settings.Join = addresses[:1]
			_, err := api.Call(t.Context(), admin, api.ClusterAdd, &api.ClusterAddRequest{NodeID: uint64(i + 1), Address: addresses[i]})
			ok(t, err)
		}
		s := start(t, func(o *Options) {
			if i > 0 {
				o.Dir = t.TempDir() // which holds no store
			}
			ok(t, cluster.Write(o.Dir, settings))
			o.Opened = func(e *engine.Engine) { engines[i] = e }
		})
		if i == 0 {
			admin = client.New(s.url, s.key)
			t.Cleanup(func() { ok(t, admin.Close()) })
		}
	}
	return engines
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer l.Close()
	return l.Addr().String()
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for deadline := time.After(20 * time.Second); !holds(); {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatal("in vain: " + what)
		}
	}
}

// asked carries out an operation as root.
func asked(ctx context.Context, e *engine.Engine, o *api.Operation, req any) (any, error) {
	if c, is := req.(interface{ SetCommandID(string) }); is {
		c.SetCommandID(api.NewCommandID())
	}
	api.ApplyDefaults(req)
	return e.Do(ctx, e.Root(), o, req)
}

// A call that waits on another node than the one it came to is parked there. Only while
// it tries, and when it has its answer, the node it came to holds room for that.
func TestACallThatWaitsOnAnotherNodeHoldsRoomOnlyForItsAnswer(t *testing.T) {
	engines := startPair(t)
	for name, kind := range map[string]api.ResourceKind{"jobs": api.KindQueue, "news": api.KindTopic} {
		_, err := asked(t.Context(), engines[1], api.ResourcesConfigure.Operation, &api.ResourcesConfigureRequest{Name: name, Kind: kind})
		ok(t, err)
	}
	news := api.SourceRef{Resource: "news", Kind: api.SourceTopic}
	_, err := asked(t.Context(), engines[1], api.SubscriptionsConfigure.Operation, &api.SubscriptionsConfigureRequest{Group: api.GroupRef{Source: news, Group: "g"}})
	ok(t, err)
	var after uint64
	calls := map[string]func(wait int64) (*api.Operation, any){
		"receive of a queue": func(wait int64) (*api.Operation, any) {
			return api.QueuesReceive.Operation, &api.QueuesReceiveRequest{Lane: api.LaneRef{Queue: "jobs"}, WaitMillis: wait}
		},
		"receive of a group": func(wait int64) (*api.Operation, any) {
			return api.SubscriptionsReceive.Operation, &api.SubscriptionsReceiveRequest{Group: api.GroupRef{Source: news, Group: "g"}, WaitMillis: wait}
		},
		"read of a topic": func(wait int64) (*api.Operation, any) {
			return api.EventsRead.Operation, &api.EventsReadRequest{Source: news, AfterPosition: after, WaitMillis: wait}
		},
	}
	found := func(resp any) int {
		switch r := resp.(type) {
		case *api.QueuesReceiveResponse:
			return len(r.Deliveries)
		case *api.SubscriptionsReceiveResponse:
			return len(r.Deliveries)
		}
		return len(resp.(*api.EventsReadResponse).Events)
	}
	for name, call := range calls {
		for i, e := range engines { // of which one does not lead the shard
			held := &room{}
			ended := make(chan error, 1)
			o, req := call(300)
			resp, err := asked(engine.WithRoom(t.Context(), held), e, o, req)
			ok(t, err)
			if n, _ := held.is(); n != 0 || found(resp) != 0 {
				t.Errorf("%s, node %d: a wait in vain got %d and holds room for %d answers", name, i+1, found(resp), n)
			}
			go func() {
				o, req := call(20_000)
				resp, err = asked(engine.WithRoom(t.Context(), held), e, o, req)
				ended <- err
			}()
			eventually(t, name+" is parked", func() bool {
				n, taken := held.is()
				return n == 0 && taken > 1 && engine.LoadOf(engines[0]).Parked+engine.LoadOf(engines[1]).Parked == 1
			})
			_, err = asked(t.Context(), engines[0], api.CommandsCommit.Operation, &api.CommandsCommitRequest{Mutations: []api.Mutation{
				{Enqueue: &api.Enqueue{Queue: "jobs", Message: api.Message{Payload: api.Of("work")}}},
				{Publish: &api.Publish{Topic: "news", Events: []api.Event{{Type: "t", Payload: api.Of("what")}}}},
			}})
			ok(t, err)
			ok(t, <-ended)
			after++
			if n, taken := held.is(); n != 1 || taken < 3 || found(resp) != 1 {
				t.Errorf("%s, node %d: got %d, and holds room for %d answers after %d attempts", name, i+1, found(resp), n, taken)
			}
			drain(t, e)
		}
	}
}

// drain takes what there is, so that the next call waits.
func drain(t *testing.T, e *engine.Engine) {
	t.Helper()
	_, err := asked(t.Context(), e, api.QueuesReceive.Operation, &api.QueuesReceiveRequest{Lane: api.LaneRef{Queue: "jobs"}, MaxMessages: 100})
	ok(t, err)
	_, err = asked(t.Context(), e, api.SubscriptionsReceive.Operation, &api.SubscriptionsReceiveRequest{
		Group: api.GroupRef{Source: api.SourceRef{Resource: "news", Kind: api.SourceTopic}, Group: "g"}, MaxEvents: 100,
	})
	ok(t, err)
}

// A certificate alone speaks for no caller: the node it names must be in the list.
func TestOnlyAMemberSpeaksForCallers(t *testing.T) {
	engines := startPair(t)
	for node, want := range map[uint64]bool{1: true, 2: true, 9: false} {
		eventually(t, "the list is there", func() bool {
			list, err := engine.Nodes(engines[0])
			return err == nil && len(list.All) == 2 && list.All[1].State == api.NodeJoined
		})
		_, err := engine.Answer(t.Context(), engines[0], node, 1, nil)
		if refused := fault.CodeOf(err) == fault.OwnershipLost; refused == want {
			t.Errorf("a call of node %d is answered with %v", node, err)
		}
	}
}
