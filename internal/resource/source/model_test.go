package source

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

func drawPolicy(t *rapid.T) api.SourcePolicy {
	return api.SourcePolicy{
		MaxEvents:               rapid.Int64Range(5, 60).Draw(t, "maxEvents"),
		MaxBytes:                rapid.SampledFrom([]int64{400, 900, 2_000, 1 << 20}).Draw(t, "maxBytes"),
		OnFull:                  rapid.SampledFrom([]string{api.OnFullReject, api.OnFullTrim, api.OnFullTrim}).Draw(t, "onFull"),
		MaxAgeSeconds:           rapid.SampledFrom([]int64{0, 5, 30, 90}).Draw(t, "maxAge"),
		EventIDRetentionSeconds: 10,
	}
}

func drawEvents(t *rapid.T) []api.Event {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) api.Event {
		e := event(fmt.Sprint("e", rapid.IntRange(0, 60).Draw(t, "id")), fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "payload")))
		switch rapid.IntRange(0, 5).Draw(t, "headers") {
		case 0:
			e.Headers = map[string]string{"k": "v", "l": "w"}
		case 1:
			e.Headers = map[string]string{"k": "a value that makes the event larger than others by half a hundred bytes"}
		}
		return e
	}), 1, 6).Draw(t, "events")
}

// model is a topic and its twin.
type model struct {
	b      *bed
	m      *twin
	cursor string
	at     uint64
}

func (x *model) publish(t *rapid.T) {
	list := drawEvents(t)
	a, err := x.b.publish(list...)
	if want := x.m.publish(x.b.now, list); fault.CodeOf(err) != want {
		t.Fatalf("publish: %v, want %q", err, want)
	} else if err == nil && a.Last != uint64(len(x.m.all)) {
		t.Fatalf("published through %d, want %d", a.Last, len(x.m.all))
	}
}

func (x *model) purge(t *rapid.T) {
	through := rapid.Uint64Range(1, uint64(len(x.m.all)+2)).Draw(t, "through")
	cut, err := x.b.purge(through)
	if want := x.m.purge(x.b.now, through); fault.CodeOf(err) != want {
		t.Fatalf("purge: %v, want %q", err, want)
	} else if err == nil && cut != x.m.cut {
		t.Fatalf("cut at %d, want %d", cut, x.m.cut)
	}
}

// pin makes a holder, moves it either way, or removes it.
func (x *model) pin(t *rapid.T) {
	holder := fmt.Sprint("g", rapid.IntRange(0, 3).Draw(t, "holder"))
	if rapid.IntRange(0, 3).Draw(t, "leaves") == 0 {
		x.b.unpin(x.b.orders(), holder)
		delete(x.m.pins, holder)
		return
	}
	at := rapid.Uint64Range(x.m.cut, uint64(len(x.m.all))).Draw(t, "checkpoint")
	x.b.pin(x.b.orders(), holder, at)
	x.m.pins[holder] = at
}

func (x *model) change(t *rapid.T) {
	x.settle(t) // what was due under the old policy is done
	p := drawPolicy(t)
	x.b.change(x.b.topic, func(is *api.SourcePolicy) { *is = p })
	x.m.change(p)
	x.settle(t)
}

func (x *model) settle(t *rapid.T) {
	x.b.settle(rapid.IntRange(1, 7).Draw(t, "budget"))
	x.m.settle(x.b.now)
}

func (x *model) time(t *rapid.T) {
	x.settle(t) // what was due before is done
	x.b.now += rapid.Int64Range(0, 12_000).Draw(t, "ms")
	x.settle(t)
}

func (x *model) read(t *rapid.T) {
	after := rapid.Uint64Range(0, uint64(len(x.m.all)+2)).Draw(t, "after")
	x.compare(t, Read{After: after}, after, rapid.IntRange(1, 9).Draw(t, "limit"))
}

func (x *model) nextPage(t *rapid.T) {
	p := x.compare(t, Read{Cursor: x.cursor}, x.at, rapid.IntRange(1, 9).Draw(t, "limit"))
	if p == nil { // behind a cut: begin again
		x.cursor, x.at = "", 0
		return
	}
	x.cursor = p.Cursor
	x.at += uint64(len(p.Events))
}

// compare reads a page from both; nil when both refuse.
func (x *model) compare(t *rapid.T, q Read, after uint64, limit int) *Page {
	want, code := x.m.read(after, limit)
	q.Limit = int64(limit)
	p, err := x.b.read(q)
	if fault.CodeOf(err) != code {
		t.Fatalf("read after %d: %v, want %q", after, err, code)
	}
	if err != nil {
		return nil
	}
	if fmt.Sprint(p.Events) != fmt.Sprint(want) || p.Tail != uint64(len(x.m.all)) || p.First != x.m.cut+1 {
		t.Fatalf("read after %d: %v (first %d, tail %d)\nwant %v (first %d, tail %d)", after, p.Events, p.First, p.Tail, want, x.m.cut+1, len(x.m.all))
	}
	return p
}

func TestASourceBehavesAsANaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := drawPolicy(t)
		x := &model{
			b: newBed(t, policy),
			m: &twin{ids: map[string]twinID{}, pins: map[string]uint64{}, policy: policy},
		}
		t.Repeat(map[string]func(*rapid.T){
			"publish": x.publish, "publish more": x.publish, "purge": x.purge, "pin": x.pin, "policy": x.change,
			"time": x.time, "read": x.read, "next page": x.nextPage,
			"tick":    func(t *rapid.T) { x.b.tick(rapid.IntRange(1, 7).Draw(t, "budget")) },
			"restart": func(*rapid.T) { x.b.restart() },
			"": func(*rapid.T) {
				x.b.check()
				if h := x.b.head(x.b.orders()); h.Tail != uint64(len(x.m.all)) || h.Cut != x.m.cut || h.TailBytes != x.m.bytes {
					t.Fatalf("tail %d of %d bytes, cut %d; want %d of %d, %d", h.Tail, h.TailBytes, h.Cut, len(x.m.all), x.m.bytes, x.m.cut)
				}
			},
		})
	})
}
