package wake

import "sync"

// Hub joins waiting calls with hints that something is there for them.
type Hub struct {
	mu      sync.Mutex
	waiting map[string][]*Waiter
}

// NewHub makes an empty hub.
func NewHub() *Hub { return &Hub{waiting: map[string][]*Waiter{}} }

// Waiter is one waiting call.
type Waiter struct {
	hub  *Hub
	keys []string
	// C gets a value when one of the keys was woken since Wait or the last
	// receive.
	C chan struct{}
}

// Wait registers a call for keys. Register before looking, so that what appears
// between looking and waiting is not missed.
func (h *Hub) Wait(keys ...string) *Waiter {
	w := &Waiter{hub: h, keys: keys, C: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range keys {
		h.waiting[k] = append(h.waiting[k], w)
	}
	return w
}

// Done ends the waiting. A wake-up it had not used goes to another waiter.
func (w *Waiter) Done() {
	w.hub.mu.Lock()
	for _, k := range w.keys {
		w.hub.remove(k, w)
	}
	w.hub.mu.Unlock()
	select {
	case <-w.C:
		for _, k := range w.keys {
			w.hub.Wake(k, 1)
		}
	default:
	}
}

func (h *Hub) remove(key string, w *Waiter) {
	list := h.waiting[key]
	for i, x := range list {
		if x == w {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(h.waiting, key)
		return
	}
	h.waiting[key] = list
}

// Wake wakes up to n calls that wait for key, longest waiting first. A woken
// call goes to the end of the line, so that repeated hints reach everyone.
func (h *Hub) Wake(key string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.waiting[key]
	if len(list) == 0 {
		return
	}
	woken := 0
	for i := 0; i < len(list) && woken < n; i++ {
		select {
		case list[i].C <- struct{}{}:
			woken++
		default: // already woken and about to look
		}
	}
	if woken < len(list) {
		h.waiting[key] = append(append(make([]*Waiter, 0, len(list)), list[woken:]...), list[:woken]...)
	}
}

// Waiting is how many calls wait for key.
func (h *Hub) Waiting(key string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiting[key])
}
