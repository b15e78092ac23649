package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/sim/trial"
)

// three are three nodes with two data shards, a collection and a queue.
func three(t *testing.T) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), options(t, 3))
	ok(t, err)
	t.Cleanup(func() { ok(t, c.Close()) })
	return c
}

// options are those of nodes with two data shards, a collection and a queue.
func options(t *testing.T, nodes int) Options {
	self, err := os.Executable()
	ok(t, err)
	return Options{
		Dir: t.TempDir(), Program: self, Env: []string{childMode + "=node"}, Nodes: nodes, Shards: 2,
		Setup: func(ctx context.Context, d api.Doer) error {
			for _, r := range []api.ResourcesConfigureRequest{{Name: "notes", Kind: api.KindCollection}, {Name: "tasks", Kind: api.KindQueue}} {
				if _, err := client.CallsOf(d).ConfigureResource(ctx, &r); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// partition is one that a shard of two holds.
func partition(shard uint16) api.PartitionRef {
	for i := 0; ; i++ {
		p := api.PartitionRef{Key: fmt.Sprint("p", i)}
		whole := p
		api.ApplyDefaults(&whole)
		if partitions.ShardOf(partitions.Hash(whole), 2) == shard {
			return p
		}
	}
}

// page is what a node shows at a path.
func (c *Cluster) page(t *testing.T, i int, path string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.net.api(i)+path, nil)
	ok(t, err)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	ok(t, err)
	b, err := io.ReadAll(resp.Body)
	ok(t, errors.Join(err, resp.Body.Close()))
	return resp.StatusCode, string(b)
}

func TestANewLeaderTakesWritesSoonAfterTheOldOneWasKilled(t *testing.T) {
	c := three(t)
	d := c.Client()
	defer d.Close()
	var took []time.Duration
	for n := range trial.Count(3, 20) {
		ok(t, Settled(t.Context(), c))
		shard := uint16(1 + n%2)
		put := func(id string) error {
			_, err := d.Commit(t.Context(), partition(shard), client.Put("notes", id, map[string]int{"n": n}))
			return err
		}
		ok(t, put(fmt.Sprint("before-", n)))
		i, err := c.Leader(t.Context(), uint32(shard))
		ok(t, err)
		ok(t, c.Kill(i))
		killed := time.Now()
		ok(t, put(fmt.Sprint("after-", n)))
		took = append(took, time.Since(killed))
		ok(t, c.Run(i))
	}
	slices.Sort(took)
	p50, most := took[len(took)/2], took[len(took)-1]
	trial.Report(t, "failover", "%d kills of a leader; time to the next write that succeeds: p50 %d ms, most %d ms",
		len(took), p50.Milliseconds(), most.Milliseconds())
	if most > 20*time.Second { // of the order of an election, on however slow a machine
		t.Errorf("a write took %s", most)
	}
	ok(t, Settled(t.Context(), c))
	ok(t, Same(t.Context(), c))
	ok(t, Sound(t.Context(), c))
}

func TestTheFirstOfTwoLanesThatIsHeldIsLearntElsewhereAndTheSecondIsUntouched(t *testing.T) {
	c := three(t)
	leader, err := c.Leader(t.Context(), 1)
	ok(t, err)
	others := []int{(leader + 1) % 3, (leader + 2) % 3}
	near, far := c.Node(leader), c.Node(others[0])
	defer near.Close()
	defer far.Close()
	lanes := []api.LaneRef{client.Lane(partition(1), "tasks"), client.Lane(partition(2), "tasks")}
	req := &api.QueuesReceiveAcrossLanesRequest{RequestID: uuid.Must(uuid.NewV7()).String()}
	for _, lane := range lanes {
		_, err := near.Commit(t.Context(), lane.Partition, client.Enqueue("tasks", api.Message{MessageID: "m", Payload: api.Of("work")}))
		ok(t, err)
		req.Requests = append(req.Requests, api.QueuesReceiveRequest{
			RequestID: uuid.Must(uuid.NewV7()).String(), Lane: lane, MaxMessages: 1, LeaseSeconds: 300,
		})
	}

	for _, i := range others { // no majority has the first lane's entry on disk for a while
		ok(t, c.Tell(i, "slow 3000"))
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	answer := make(chan error, 1)
	go func() {
		_, err := near.ReceiveAcrossLanes(ctx, req)
		answer <- err
	}()
	ok(t, wait(t.Context(), "the first lane's receive was submitted", func(context.Context) error {
		if _, body := c.page(t, leader, "/metrics"); !strings.Contains(body, `keyload_load{what="commands"} 1`) {
			return errors.New("no command waits for the log")
		}
		return nil
	}))
	leave()
	if err := <-answer; fault.CodeOf(err) != fault.UnknownWriteOutcome {
		t.Fatalf("the caller who left was told %v", err)
	}
	for _, i := range others {
		ok(t, c.Tell(i, "slow 0"))
	}

	first, err := api.Call(t.Context(), far, api.QueuesReceive, &req.Requests[0])
	ok(t, err)
	if len(first.Deliveries) != 1 || first.Deliveries[0].Attempt != 1 {
		t.Fatalf("the unchanged receive answers %+v", first)
	}
	again, err := api.Call(t.Context(), near, api.QueuesReceive, &req.Requests[0])
	ok(t, err)
	if !reflect.DeepEqual(first, again) {
		t.Errorf("repeated elsewhere: %+v, not %+v", again, first)
	}
	for i, want := range []api.QueueCounts{{Leased: 1}, {Ready: 1}} {
		st, err := far.QueueStatus(t.Context(), lanes[i])
		ok(t, err)
		if st.Counts != want || st.Totals.Enqueued != 1 {
			t.Errorf("lane %d has %+v and %+v", i+1, st.Counts, st.Totals)
		}
	}
	ok(t, Settled(t.Context(), c))
	ok(t, Same(t.Context(), c))
}

func TestANodeThatIsAloneRefusesUntilAnotherReturns(t *testing.T) {
	c := three(t)
	d := c.Client()
	defer d.Close()
	p := partition(1)
	_, err := d.Commit(t.Context(), p, client.Put("notes", "a", map[string]int{"n": 1}))
	ok(t, err)
	ok(t, Same(t.Context(), c))
	lone, err := c.Leader(t.Context(), 1)
	ok(t, err)
	positions := func() (out []uint64) {
		st, err := api.Call(t.Context(), c.keep(t, lone, c.key, 1), api.AdminStatus, &api.AdminStatusRequest{})
		ok(t, err)
		for _, s := range st.Shards {
			out = append(out, s.Position)
		}
		return out
	}
	before := positions()
	for i := range c.nodes {
		if i != lone {
			ok(t, c.Kill(i))
		}
	}
	ok(t, wait(t.Context(), "the node says that it is not ready", func(context.Context) error {
		if status, body := c.page(t, lone, "/readyz"); status != http.StatusServiceUnavailable {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	}))

	known := c.keep(t, lone, c.key, 1)
	var asking sync.WaitGroup
	for name, ask := range map[string]func() error{
		"a write": func() error {
			_, err := known.Commit(t.Context(), p, client.Put("notes", "b", map[string]int{"n": 2}))
			return err
		},
		"a read": func() error { _, err := known.Get(t.Context(), p, "notes", "a"); return err },
		"a receive": func() error {
			_, err := known.Receive(t.Context(), &api.QueuesReceiveRequest{Lane: client.Lane(p, "tasks")})
			return err
		},
		"a change of the catalog": func() error {
			_, err := known.ConfigureResource(t.Context(), &api.ResourcesConfigureRequest{Name: "more", Kind: api.KindTopic})
			return err
		},
		"a backup": func() error { _, err := known.Backup(t.Context(), io.Discard); return err },
		"a key that nobody has": func() error {
			_, err := c.keep(t, lone, "kl_"+strings.Repeat("0", 16)+"_secret", 1).Get(t.Context(), p, "notes", "a")
			return err
		},
	} {
		asking.Go(func() {
			began := time.Now()
			err := ask()
			if code := fault.CodeOf(err); code != fault.OwnershipLost && code != fault.UnknownWriteOutcome {
				t.Errorf("%s of a minority: %v", name, err)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("%s was refused only after %s", name, took)
			}
		})
	}
	asking.Wait()
	if after := positions(); !slices.Equal(before, after) {
		t.Errorf("the state of a node that is alone went from %v to %v", before, after)
	}

	ok(t, c.Run((lone+1)%3))
	_, err = d.Commit(t.Context(), p, client.Put("notes", "c", map[string]int{"n": 3}))
	ok(t, err)
	ok(t, c.Run((lone+2)%3))
	ok(t, Settled(t.Context(), c))
	ok(t, Same(t.Context(), c))
	ok(t, Sound(t.Context(), c))
}

// keep is a client of one node that tries so often, until the test ends.
func (c *Cluster) keep(t *testing.T, i int, key string, attempts int) *client.Client {
	d := client.New("http://"+c.net.api(i), key, client.Attempts(attempts))
	t.Cleanup(func() { ok(t, d.Close()) })
	return d
}

func TestWhatWasRevokedIsRefusedOnEveryNodeOnceThatWasAnswered(t *testing.T) {
	c := three(t)
	c.ways.slow(0, 2, 30*time.Millisecond) // a node whose copies lag
	c.ways.slow(1, 2, 30*time.Millisecond)
	for n := range trial.Count(6, 60) {
		admin := c.keep(t, n%3, c.key, 10)
		who := api.Principal{ID: fmt.Sprint("worker-", n), Roles: []api.Role{api.RoleWorker, api.RoleOperator}, PolicyEpoch: 1}
		_, err := admin.ConfigurePrincipal(t.Context(), who)
		ok(t, err)
		key, err := admin.CreateAPIKey(t.Context(), &api.APIKeysCreateRequest{PrincipalID: who.ID})
		ok(t, err)
		calls := map[string]func() error{}
		for i := range c.nodes {
			d := c.keep(t, i, key.APIKey, 10)
			for shard := range uint16(2) {
				p := partition(1 + shard)
				calls[fmt.Sprintf("a write on node %d to shard %d", i, 1+shard)] = func() error {
					_, err := d.Commit(t.Context(), p, client.Put("notes", fmt.Sprint(n, "-", i), map[string]int{"n": n}))
					return err
				}
				calls[fmt.Sprintf("a read on node %d of shard %d", i, 1+shard)] = func() error {
					_, err := d.QueueStatus(t.Context(), client.Lane(p, "tasks"))
					return err
				}
			}
		}
		for name, call := range calls { // what was granted holds at once
			if err := call(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if n%2 == 0 {
			_, err = admin.RevokeAPIKey(t.Context(), &api.APIKeysRevokeRequest{KeyID: key.KeyID})
		} else {
			who.Revoked, who.PolicyEpoch = true, 2
			_, err = admin.ConfigurePrincipal(t.Context(), who)
		}
		ok(t, err)
		var asking sync.WaitGroup
		for name, call := range calls {
			asking.Go(func() {
				if code := fault.CodeOf(call()); code != fault.Unauthenticated && code != fault.PermissionDenied {
					t.Errorf("%s, with what was revoked, ends with %q", name, code)
				}
			})
		}
		asking.Wait()
	}
}
