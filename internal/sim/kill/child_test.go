//go:build unix

package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/sim/work"
)

// childOrders is the environment variable that makes the test binary a child.
const childOrders = "KEYLOAD_SIM_CHILD"

// TestMain lets the test binary be the process that owns a store.
func TestMain(m *testing.M) {
	text := os.Getenv(childOrders)
	if text == "" {
		os.Exit(m.Run())
	}
	var o orders
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.carryOut(context.Background())
	}
	fmt.Fprintln(os.Stderr, "the child ended by itself:", err)
	os.Exit(1)
}

// orders are what a child has to do.
type orders struct {
	Dir     string
	Callers int
	Seed    uint64
	Life    string
	// Stage and Nth say when the child kills itself: when the stage is reached for
	// the n-th time. No stage: when it is killed.
	Stage string
	Nth   int64
}

// line is what a child tells its parent.
type line struct {
	Opened bool `json:"opened,omitempty"`
	work.Line
}

// carryOut opens the store and lets the callers work until the process ends.
func (o *orders) carryOut(ctx context.Context) error {
	go func() { // a parent that is gone ends the child
		io.Copy(io.Discard, os.Stdin)
		os.Exit(2)
	}()
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout) // one write for each line: a line is told whole, or not at all
	tell := func(l line) {
		mu.Lock()
		defer mu.Unlock()
		if err := out.Encode(l); err != nil {
			os.Exit(2)
		}
	}
	var reached atomic.Int64
	store, err := kv.Open(o.Dir, kv.Options{Stage: func(name string) {
		if name == o.Stage && reached.Add(1) == o.Nth {
			die()
		}
	}})
	if err != nil {
		return err
	}
	db, err := keyload.OpenStore(store, keyload.Options{})
	if err != nil {
		return err
	}
	tell(line{Opened: true})
	work.Run(ctx, db, func(l work.Line) { tell(line{Line: l}) }, work.Options{Callers: o.Callers, Seed: o.Seed, Life: o.Life})
	return db.Engine().Ready()
}

// die kills the process as nothing can be done about: SIGKILL.
func die() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}
