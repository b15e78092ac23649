package httpgw

import (
	"io"
	"net/http"
	"sync"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/frame"
	"github.com/keyload/keyload/internal/limits"
)

// bodies bounds the bytes of request bodies that the server holds, from before the
// first byte is read until the call is answered. Small ones have a reserve, so that
// large ones never keep an acknowledgement out; no tenant has more than half.
type bodies struct {
	max      int
	decoding chan struct{} // holds a value for each large body that is being decoded

	mu      sync.Mutex
	held    int
	tenants map[string]int
}

// take makes room for n bytes or refuses at once. give must be called after it.
func (b *bodies) take(tenant string, n, ofBody int) *fault.Error {
	reserve := 0
	if ofBody <= limits.SmallBodyBytes {
		reserve = limits.BodiesReserveBytes
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch own := b.tenants[tenant]; {
	case b.held+n > b.max+reserve:
		return engine.Busy("bodies", "the server holds %d bytes of requests; its limit is %d", b.held, b.max)
	case own+n > b.max/2+reserve:
		return engine.Busy("bodies_tenant", "the server holds %d bytes of the tenant's requests; half of what it takes is %d", own, b.max/2)
	}
	if b.tenants == nil {
		b.tenants = map[string]int{}
	}
	b.held += n
	b.tenants[tenant] += n
	return nil
}

func (b *bodies) give(tenant string, n int) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
	if b.tenants[tenant] -= n; b.tenants[tenant] <= 0 {
		delete(b.tenants, tenant)
	}
}

// decode reads a body into the request. Large ones take turns, on half of the
// cores, so that an acknowledgement that arrives finds one that is free.
func (b *bodies) decode(mediaType string, body []byte, req any) *fault.Error {
	if len(body) > limits.SmallBodyBytes {
		b.decoding <- struct{}{}
		defer func() { <-b.decoding }()
	}
	return decode(mediaType, body, req)
}

func (b *bodies) bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// readBody reads at most the limit, for which it takes room first. held is how
// much of that the caller must give back, whatever else is returned.
func (g *Gateway) readBody(r *http.Request, tenant string) (body *frame.Buffer, held int, f *fault.Error) {
	size := r.ContentLength
	switch {
	case size > limits.BodyBytes:
		return nil, 0, errBodyTooLarge()
	case size < 0:
		return g.readUnsized(r, tenant)
	}
	if f := g.bodies.take(tenant, int(size), int(size)); f != nil {
		return nil, 0, f
	}
	b := frame.NewBuffer(int(size))
	if _, err := io.ReadFull(r.Body, b.B); err != nil {
		b.Release()
		return nil, int(size), errBodyIncomplete()
	}
	return b, int(size), nil
}

// readUnsized reads a body that does not say how long it is, and takes room step
// by step.
func (g *Gateway) readUnsized(r *http.Request, tenant string) (body *frame.Buffer, held int, f *fault.Error) {
	b := frame.NewBuffer(0)
	fail := func(f *fault.Error) (*frame.Buffer, int, *fault.Error) {
		b.Release()
		return nil, held, f
	}
	for {
		if f := g.bodies.take(tenant, limits.SmallBodyBytes, held+limits.SmallBodyBytes); f != nil {
			return fail(f)
		}
		held += limits.SmallBodyBytes
		n, err := io.CopyN(b, r.Body, limits.SmallBodyBytes)
		switch {
		case len(b.B) > limits.BodyBytes:
			return fail(errBodyTooLarge())
		case err == io.EOF:
			return b, held, nil
		case err != nil || n == 0:
			return fail(errBodyIncomplete())
		}
	}
}
