package load

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/internal/node"
)

// childOrders is the environment variable that makes the test binary a child.
const childOrders = "KEYLOAD_LOAD_CHILD"

// orders are what a child has to do: fill a new store, or serve one.
type orders struct {
	Dir  string
	Fill int
	Key  string
}

func TestMain(m *testing.M) {
	text := os.Getenv(childOrders)
	if text == "" {
		goleak.VerifyTestMain(m)
		return
	}
	go func() { // a parent that is gone ends the child
		io.Copy(io.Discard, os.Stdin)
		os.Exit(2)
	}()
	var o orders
	err := json.Unmarshal([]byte(text), &o)
	var t told
	switch {
	case err != nil:
	case o.Fill > 0:
		t, err = o.fill(context.Background())
	default:
		t, err = o.serve(context.Background())
	}
	if err != nil {
		t.Failed = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(t)
	select {} // until it is killed
}

// lanes is over how many partitions messages are spread.
const lanes = 8

// textBytes is how long the text of a message is.
const textBytes = 256

// noise is text that takes as much room in a table as it is long, or nearly.
func noise(bytes int) string {
	raw := make([]byte, bytes/4*3)
	rand.NewChaCha8([32]byte{}).Read(raw)
	return base64.StdEncoding.EncodeToString(raw)
}

// fill makes a store with so many messages. It is not closed.
func (o *orders) fill(ctx context.Context) (t told, err error) {
	made, err := node.Init(ctx, o.Dir)
	if err != nil {
		return t, err
	}
	t.Key = made.APIKey
	db, err := keyload.Open(o.Dir)
	if err != nil {
		return t, err
	}
	if _, err := db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: "jobs", Kind: api.KindQueue}); err != nil {
		return t, err
	}
	began := time.Now()
	text := noise(4 << 20)
	errs := make([]error, lanes)
	var wg sync.WaitGroup
	for n := range lanes {
		wg.Go(func() {
			for left := o.Fill / lanes; left > 0 && errs[n] == nil; left -= 256 {
				var ms []api.Mutation
				for i := range min(left, 256) {
					at := (n*o.Fill + (left-i)*textBytes) % (len(text) - textBytes)
					ms = append(ms, keyload.Enqueue("jobs", api.Message{Payload: api.Of(text[at : at+textBytes])}))
				}
				_, errs[n] = db.Commit(ctx, api.PartitionRef{Key: fmt.Sprint(n)}, ms...)
			}
		})
	}
	wg.Wait()
	t.Took = time.Since(began)
	return t, errors.Join(errs...)
}

// restTime is how long a server is left alone before it counts as at rest.
const restTime = 20 * time.Second

// serve serves a store and receives one message over HTTP.
func (o *orders) serve(ctx context.Context) (t told, err error) {
	began := time.Now()
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- node.Serve(ctx, node.Options{Dir: o.Dir, Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler), Ready: func(url string) { ready <- url }})
	}()
	var url string
	select {
	case url = <-ready:
	case err := <-ended:
		return t, fmt.Errorf("the server ended: %w", err)
	}
	t.Opened = time.Since(began)
	c := client.New(url, o.Key)
	got, err := c.Receive(ctx, &api.QueuesReceiveRequest{Lane: api.LaneRef{Partition: api.PartitionRef{Key: "0"}, Queue: "jobs"}})
	t.Took = time.Since(began)
	if err != nil || len(got.Deliveries) != 1 {
		return t, fmt.Errorf("received %+v: %w", got, err)
	}
	if t.Read, err = number("/proc/self/io", "rchar: %d"); err != nil {
		return t, err
	}
	if t.Busy, err = resident(); err != nil {
		return t, err
	}
	//keyload:sleep rest is what is measured
	time.Sleep(restTime)
	t.Rest, err = resident()
	return t, err
}

// resident is the memory of this process, in bytes.
func resident() (uint64, error) {
	kib, err := number("/proc/self/status", "VmRSS: %d kB")
	return kib << 10, err
}

// number is what a file of the system says of this process.
func number(file, form string) (n uint64, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, form, &n); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s has no line %q", file, form)
}
