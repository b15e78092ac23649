package history

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// judged lets clients work on a store in memory that is changed on the way to them,
// and judges the store. Time passes when there is nothing to do.
func judged(t *testing.T, between func(*keyload.DB) api.Doer) (r *Record, wrong string) {
	t.Helper()
	now := time.Now().Round(0)
	synctest.Test(t, func(t *testing.T) {
		//keyload:sleep the fake clock of this bubble moves on to now: command ids grow with time
		time.Sleep(time.Until(now))
		store, err := kv.Open("store", kv.Options{FS: vfs.NewMem(), NoSync: true})
		ok(t, err)
		db, err := keyload.OpenStore(store, keyload.Options{Shards: 2, Durability: api.DurableProcess})
		ok(t, err)
		ok(t, Setup(t.Context(), db))
		d := between(db)
		r = NewRecord()
		r.Work(t.Context(), Options{Doer: func(int) api.Doer { return d }, Clients: 6, Documents: 5, Seed: 1, Run: "a", Actions: 150})
		found, err := r.Judge(t.Context(), db, 0)
		ok(t, err)
		wrong = strings.Join(found, "\n")
		ok(t, db.Close())
	})
	return r, wrong
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAStoreThatKeepsItsWordHasNothingWrong(t *testing.T) {
	r, wrong := judged(t, func(db *keyload.DB) api.Doer { return db })
	answered, unknown := r.Documents.Count()
	known, doubted := r.Ledger.Count()
	if wrong != "" || r.Calls() != 900 || answered < 400 || known < 150 || unknown+doubted != 0 {
		t.Errorf("%d calls, %d answered, %d unknown, %d and %d in the ledger: %s", r.Calls(), answered, unknown, known, doubted, wrong)
	}
}

// A store whose answers get lost, after the work or before it, and are never asked
// for again leaves doubts and nothing wrong.
func TestAnswersThatAreLostLeaveDoubtsAndNothingWrong(t *testing.T) {
	r, wrong := judged(t, func(db *keyload.DB) api.Doer {
		n := 0
		return between(func(ctx context.Context, o *api.Operation, req, resp any) error {
			if n++; o.Kind != api.Query && n%10 == 0 {
				return fault.New(fault.UnknownWriteOutcome, "lost", "lost on the way there")
			}
			err := db.Do(ctx, o, req, resp)
			if o.Kind != api.Query && n%10 == 5 {
				return fault.New(fault.UnknownWriteOutcome, "lost", "lost on the way back")
			}
			return err
		})
	})
	_, unknown := r.Documents.Count()
	_, doubted := r.Ledger.Count()
	if wrong != "" || unknown == 0 || doubted == 0 {
		t.Errorf("%d and %d in doubt: %s", unknown, doubted, wrong)
	}
}

// between is what stands between the clients and a store. One call passes at a time.
func between(do func(ctx context.Context, o *api.Operation, req, resp any) error) api.Doer {
	return &way{do: do}
}

type way struct {
	mu sync.Mutex
	do func(ctx context.Context, o *api.Operation, req, resp any) error
}

// Do implements api.Doer.
func (w *way) Do(ctx context.Context, o *api.Operation, req, resp any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.do(ctx, o, req, resp)
}

// every counts what fits, and is true for each n-th.
func every(n int, fits func(o *api.Operation, req any) bool) func(*api.Operation, any) bool {
	seen := 0
	return func(o *api.Operation, req any) bool {
		if fits(o, req) {
			seen++
			return seen%n == 0
		}
		return false
	}
}

// commits fits a commit whose first mutation is of a kind.
func commits(kind func(api.Mutation) bool) func(*api.Operation, any) bool {
	return func(_ *api.Operation, req any) bool {
		c, ok := req.(*api.CommandsCommitRequest)
		return ok && kind(c.Mutations[0])
	}
}

// old answers each n-th call of an operation with the answer before the last.
func old(db *keyload.DB, name string, n int) api.Doer {
	is := every(n, func(o *api.Operation, _ any) bool { return o.Name == name })
	first := map[string]any{}
	return between(func(ctx context.Context, o *api.Operation, req, resp any) error {
		err := db.Do(ctx, o, req, resp)
		key := ""
		switch q := req.(type) {
		case *api.DocumentsGetRequest:
			key = q.ID
		case *api.SubscriptionsStatusRequest:
			key = q.Group.Group
		}
		if o.Name != name || err != nil {
			return err
		}
		if known := first[key]; known != nil && is(o, req) {
			reflect.ValueOf(resp).Elem().Set(reflect.ValueOf(known).Elem())
		} else if known == nil {
			kept := reflect.New(o.Response)
			kept.Elem().Set(reflect.ValueOf(resp).Elem())
			first[key] = kept.Interface()
		}
		return nil
	})
}

func TestAStoreThatBreaksItsWordIsFoundOut(t *testing.T) {
	put := commits(func(m api.Mutation) bool { return m.PutDocument != nil && m.PutDocument.ExpectedRevision == nil })
	for name, c := range map[string]struct {
		between func(*keyload.DB) api.Doer
		want    string
	}{
		"reads that are stale":         {func(db *keyload.DB) api.Doer { return old(db, "documents.get", 20) }, "is not linearizable"},
		"a checkpoint that moves back": {func(db *keyload.DB) api.Doer { return old(db, "subscriptions.status", 10) }, "the checkpoint of group watchers was"},
		"writes that are lost": {func(db *keyload.DB) api.Doer {
			is := every(10, put)
			return between(func(ctx context.Context, o *api.Operation, req, resp any) error {
				if !is(o, req) {
					return db.Do(ctx, o, req, resp)
				}
				q := req.(*api.CommandsCommitRequest)
				revision := uint64(1)
				if doc, err := db.Get(ctx, q.Partition, registers, q.Mutations[0].PutDocument.ID); err == nil {
					revision = doc.Revision + 1
				}
				resp.(*api.CommandsCommitResponse).Results = []api.MutationResult{{Revision: revision}}
				return nil
			})
		}, "is not linearizable"},
		"writes that are done twice": {func(db *keyload.DB) api.Doer {
			is := every(10, put)
			return between(func(ctx context.Context, o *api.Operation, req, resp any) error {
				if is(o, req) {
					q := *req.(*api.CommandsCommitRequest)
					q.CommandID = api.NewCommandID()
					if err := db.Do(ctx, o, &q, &api.CommandsCommitResponse{}); err != nil {
						return err
					}
				}
				return db.Do(ctx, o, req, resp)
			})
		}, "is not linearizable"},
		"messages that are lost": {func(db *keyload.DB) api.Doer {
			is := every(5, commits(func(m api.Mutation) bool { return m.Enqueue != nil }))
			return between(func(ctx context.Context, o *api.Operation, req, resp any) error {
				if is(o, req) {
					return nil
				}
				return db.Do(ctx, o, req, resp)
			})
		}, "is lost: acknowledged true, delivered 0 times"},
		"messages that have their effect twice": {func(db *keyload.DB) api.Doer {
			is := every(5, func(_ *api.Operation, req any) bool { _, ok := req.(*api.QueuesProcessRequest); return ok })
			return between(func(ctx context.Context, o *api.Operation, req, resp any) error {
				err := db.Do(ctx, o, req, resp)
				if q, ok := req.(*api.QueuesProcessRequest); ok && err == nil && is(o, req) {
					_, err = db.Commit(ctx, q.Lane.Partition, q.Effects...)
				}
				return err
			})
		}, "has had its effect 2 times"},
		"an event that is gone": {func(db *keyload.DB) api.Doer {
			is := every(7, commits(func(m api.Mutation) bool { return m.Publish != nil }))
			return between(func(ctx context.Context, o *api.Operation, req, resp any) error {
				if !is(o, req) {
					return db.Do(ctx, o, req, resp)
				}
				other := *req.(*api.CommandsCommitRequest)
				e := client.Event("noted", 1)
				e.EventID = api.NewCommandID()
				e.SchemaVersion = 1
				other.Mutations = []api.Mutation{client.Publish(notices, e), client.Append(diaries, "all", e)}
				api.ApplyDefaults(&other)
				return db.Do(ctx, o, &other, resp)
			})
		}, "and is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, wrong := judged(t, c.between); !strings.Contains(wrong, c.want) {
				t.Errorf("not found: %q", wrong)
			}
		})
	}
}
