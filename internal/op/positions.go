package op

import "slices"

// Positions is a set of positions of a shard. Its memory follows how many there are,
// at two bytes each, and where most of a stretch are in it, the stretch, at one bit
// each. The zero value is empty.
type Positions struct{ pieces map[uint64]*piece }

const (
	pieceSpan  = 1 << 15            // positions in one piece
	pieceWords = pieceSpan / 64     // of one piece as bits
	pieceFew   = pieceWords * 8 / 2 // as many as take the memory of the bits
)

// piece is a part of the set: few positions in order, or a bit for each.
type piece struct {
	few  []uint16
	bits *[pieceWords]uint64
}

// Add adds a position; false when it is there already.
func (s *Positions) Add(position uint64) bool {
	if s.pieces == nil {
		s.pieces = map[uint64]*piece{}
	}
	p := s.pieces[position/pieceSpan]
	if p == nil {
		p = &piece{}
		s.pieces[position/pieceSpan] = p
	}
	return p.add(uint16(position % pieceSpan))
}

func (p *piece) add(n uint16) bool {
	if p.bits != nil {
		return p.set(n)
	}
	at, had := slices.BinarySearch(p.few, n)
	if had {
		return false
	}
	if len(p.few) < pieceFew {
		p.few = slices.Insert(p.few, at, n)
		return true
	}
	p.bits = new([pieceWords]uint64)
	for _, one := range p.few {
		p.set(one)
	}
	p.few = nil
	return p.set(n)
}

func (p *piece) set(n uint16) bool {
	word, bit := n/64, uint64(1)<<(n%64)
	had := p.bits[word]&bit != 0
	p.bits[word] |= bit
	return !had
}
