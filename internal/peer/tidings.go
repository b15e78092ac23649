package peer

import (
	"log/slog"
	"sync"
	"time"
)

// tidings are the nodes of which the receiver is still to be told that messages to
// them were lost. It is told by a goroutine of its own, because who sends may hold
// what it needs.
type tidings struct {
	mu    sync.Mutex
	nodes map[uint64]struct{}
	wake  chan struct{}
}

func (t *tidings) add(id uint64) {
	t.mu.Lock()
	if t.nodes == nil {
		t.nodes = map[uint64]struct{}{}
	}
	t.nodes[id] = struct{}{}
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *tidings) take() map[uint64]struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	nodes := t.nodes
	t.nodes = nil
	return nodes
}

// tell passes them on until the mesh is closed.
func (t *tidings) tell(m *Mesh) {
	for {
		select {
		case <-t.wake:
		case <-m.ctx.Done():
			return
		}
		for id := range t.take() {
			if r := m.receiver.Load().receiver; r != nil {
				r.Unreachable(id)
			}
		}
	}
}

const (
	// sayAgain is after how long a complaint that lasts is logged again.
	sayAgain = time.Minute
	// maxComplaints is how many are remembered.
	maxComplaints = 1_000
)

// complaints logs what goes wrong again and again once a minute.
type complaints struct {
	out  *slog.Logger
	mu   sync.Mutex
	said map[string]said
}

type said struct {
	text string
	at   time.Time
}

// warn logs a text about something, unless it was said about it a moment ago.
func (c *complaints) warn(msg, about string, err error, args ...any) {
	key, text, now := msg+" "+about, err.Error(), time.Now()
	c.mu.Lock()
	last, known := c.said[key]
	again := !known || last.text != text || now.Sub(last.at) >= sayAgain
	if again {
		if c.said == nil || len(c.said) >= maxComplaints {
			c.said = map[string]said{}
		}
		c.said[key] = said{text, now}
	}
	c.mu.Unlock()
	if again {
		c.out.Warn(msg, append(args, "error", text)...)
	}
}

// over forgets a complaint that no longer holds.
func (c *complaints) over(msg, about string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.said, msg+" "+about)
}
