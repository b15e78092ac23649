package replica

import (
	"slices"
	"sync"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/machine"
)

const (
	// pointsKept is how many entries back a replica knows its own digest.
	pointsKept = 4096
	// pointEvery are the entries whose digests all replicas tell, so that they speak of
	// the same ones while they work; pointsTold of them, and the last entry.
	pointEvery = 256
	pointsTold = 8
	// pointsAhead bounds what is remembered of a node that is further.
	pointsAhead = 32
)

// point is the digest of the state after an entry.
type point struct{ index, position, digest uint64 }

// points are what a replica has to compare with others.
type points struct {
	mu     sync.Mutex
	own    []point // by index modulo pointsKept
	last   point
	voters []uint64
	ahead  map[uint64][]point         // of other nodes, for entries this one has not reached
	denied map[uint64]map[uint64]bool // by index, which nodes had another digest
	warn   func(node uint64, s point) // of the first difference to a node
	warned map[uint64]bool
}

// begin forgets everything but where the state stands.
func (p *points) begin(at *machine.Applied, head machine.Head) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own = make([]point, pointsKept)
	p.ahead, p.denied, p.warned = map[uint64][]point{}, map[uint64]map[uint64]bool{}, map[uint64]bool{}
	p.note(at, head)
}

func (p *points) note(at *machine.Applied, head machine.Head) {
	p.voters = at.Voters
	p.last = point{at.Index, head.Position, head.Digest}
	p.own[at.Index%pointsKept] = p.last
}

// reached notes the digest after an entry, and compares it with what others said of it
// before.
func (p *points) reached(at *machine.Applied, head machine.Head) *point {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(at, head)
	var wrong *point
	for node, told := range p.ahead {
		for len(told) > 0 && told[0].index <= at.Index {
			if told[0].index == at.Index && p.differs(node, told[0]) {
				wrong = new(p.last)
			}
			told = told[1:]
		}
		p.ahead[node] = told
	}
	return wrong
}

// told compares what a node says. The result is a point that a majority of the voters
// denies, or nil.
func (p *points) told(node uint64, said []point) (wrong *point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range said {
		if s.index == 0 {
			continue
		}
		if s.index > p.last.index {
			known := p.ahead[node]
			if len(known) < pointsAhead && (len(known) == 0 || known[len(known)-1].index < s.index) {
				p.ahead[node] = append(known, s)
			}
			continue
		}
		if own := p.own[s.index%pointsKept]; own.index == s.index && p.differs(node, s) {
			wrong = &own
		}
	}
	return wrong
}

// differs says that a majority of the voters, this node not among them, has another
// digest than this one. One node alone may be wrong itself.
func (p *points) differs(node uint64, s point) bool {
	if p.own[s.index%pointsKept].digest == s.digest {
		return false
	}
	if !p.warned[node] {
		p.warned[node] = true
		p.warn(node, s)
	}
	if !slices.Contains(p.voters, node) {
		return false
	}
	if len(p.denied) > pointsKept {
		clear(p.denied)
	}
	if p.denied[s.index] == nil {
		p.denied[s.index] = map[uint64]bool{}
	}
	p.denied[s.index][node] = true
	return len(p.denied[s.index]) > len(p.voters)/2
}

// tell is what others are told: by rising index.
func (p *points) tell() (out []point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.last.index
	for i := pointsTold - 1; i >= 0; i-- {
		index := last - last%pointEvery - min(last-last%pointEvery, uint64(i*pointEvery))
		if own := p.own[index%pointsKept]; index > 0 && own.index == index && (len(out) == 0 || out[len(out)-1].index < index) {
			out = append(out, own)
		}
	}
	if last > 0 && (len(out) == 0 || out[len(out)-1].index < last) {
		out = append(out, p.last)
	}
	return out
}

func encodePoints(ps []point) []byte {
	dst := []byte{ofDigests}
	for _, p := range ps {
		for _, n := range []uint64{p.index, p.position, p.digest} {
			dst = codec.AppendUint64(dst, n)
		}
	}
	return dst
}

func decodePoints(b []byte) (out []point, err error) {
	if len(b)%24 != 0 || len(b) > 24*(pointsTold+1) {
		return nil, errMessage
	}
	for r := codec.NewKeyReader(b); len(out) < len(b)/24; {
		out = append(out, point{r.Uint64(), r.Uint64(), r.Uint64()})
	}
	return out, nil
}

// tellDigests tells every other member where this replica stands.
func tellDigests(g *group) {
	if g.idle() {
		return
	}
	message := encodePoints(g.s.apply.points.tell())
	for _, ids := range [][]uint64{g.roster.members.GetVoters(), g.roster.members.GetLearners()} {
		for _, id := range ids {
			if id != g.l.h.cfg.Node && len(message) > 1 {
				g.l.h.cfg.Transport.Send(id, g.s.number, slices.Clone(message))
			}
		}
	}
}

// warnOf tells an operator of a difference, whether or not a majority knows better.
func (s *shard) warnOf(node uint64, p point) {
	s.h.cfg.Logger.Error("two nodes have different states of a shard", "shard", s.number, "position", p.position, "entry", p.index, "node", s.h.cfg.Node, "other", node)
}

// compare holds what another node says against the state of this one.
func (a *applier) compare(from uint64, said []point) {
	if wrong := a.points.told(from, said); wrong != nil {
		err := a.differ(wrong)
		a.fail(err)
		a.s.h.in.call(func(*loop) { a.s.group.stop(err) })
	}
}

func (a *applier) differ(p *point) error {
	return fault.New(fault.Corruption, "replicas_differ",
		"the state of shard %d at position %d (entry %d) is another one than a majority of its voters has. This node answers nothing of it any more; remove the node and let it join again with an empty disk, under a new id",
		a.s.number, p.position, p.index)
}
