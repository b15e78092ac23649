package wake

import (
	"container/list"
	"sync"
)

// Hub joins waiting calls with hints that something is there for them.
type Hub struct {
	mu      sync.Mutex
	waiting map[string]map[string]*list.List // by key, then class: *Waiter, the next to be woken first
}

// NewHub makes an empty hub.
func NewHub() *Hub { return &Hub{waiting: map[string]map[string]*list.List{}} }

// Waiter is one waiting call.
type Waiter struct {
	hub    *Hub
	class  string
	keys   []string
	places []*list.Element // one for each key
	// C gets a value when one of the keys was woken since Wait or the last
	// receive.
	C chan struct{}
}

// Wait registers a call for keys. Register before looking, so that what appears
// between looking and waiting is not missed.
//
// Calls of one class take from each other: what one of them gets the others do
// not. Calls of different classes, and those of class "", do not.
func (h *Hub) Wait(class string, keys ...string) *Waiter {
	w := &Waiter{hub: h, class: class, keys: keys, places: make([]*list.Element, len(keys)), C: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, k := range keys {
		lines := h.waiting[k]
		if lines == nil {
			lines = map[string]*list.List{}
			h.waiting[k] = lines
		}
		if lines[class] == nil {
			lines[class] = list.New()
		}
		w.places[i] = lines[class].PushBack(w)
	}
	return w
}

// Done ends the waiting. A wake-up still in C goes to another call of the class,
// and so does one that was received from C when unused says that it came to
// nothing although there may be something.
func (w *Waiter) Done(unused bool) {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	if unused {
		n++
	}
	select {
	case <-w.C:
		n++
	default:
	}
	for i, k := range w.keys {
		line := h.waiting[k][w.class]
		line.Remove(w.places[i])
		if w.class != "" { // else everybody was woken
			n -= wake(line, n)
		}
		if line.Len() > 0 {
			continue
		}
		if delete(h.waiting[k], w.class); len(h.waiting[k]) == 0 {
			delete(h.waiting, k)
		}
	}
}

// Wake says that key has n things. It wakes up to n calls of every class that
// wait for key, longest waiting first, and if n > 0 all without a class. A woken
// call goes to the end of its line, so that repeated hints reach everyone.
func (h *Hub) Wake(key string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for class, line := range h.waiting[key] {
		if class == "" && n > 0 {
			wake(line, line.Len())
			continue
		}
		wake(line, n)
	}
}

// wake wakes up to n calls of a line and returns how many. It passes over those
// that were woken before and are about to look.
func wake(line *list.List, n int) (woken int) {
	e := line.Front()
	for range line.Len() {
		if woken >= n {
			break
		}
		next := e.Next()
		select {
		case e.Value.(*Waiter).C <- struct{}{}:
			woken++
			line.MoveToBack(e)
		default:
		}
		e = next
	}
	return woken
}

// Waiting is how many calls wait for key.
func (h *Hub) Waiting(key string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, line := range h.waiting[key] {
		n += line.Len()
	}
	return n
}
