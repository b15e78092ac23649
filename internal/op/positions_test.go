package op

import (
	"math/rand/v2"
	"testing"
)

func TestASetOfPositionsTellsWhichItHas(t *testing.T) {
	const seed = 7
	for _, span := range []uint64{1, pieceSpan, 4 * pieceSpan, 1 << 60} {
		random, has := rand.New(rand.NewPCG(seed, span)), map[uint64]bool{}
		var s Positions
		for range 3 * pieceSpan {
			p := random.Uint64N(span)
			if s.Add(p) == has[p] {
				t.Fatalf("of %d: position %d is new: %t", span, p, has[p])
			}
			has[p] = true
		}
	}
}

func TestAPieceOfASetOfPositionsBecomesBitsWhenThoseTakeLess(t *testing.T) {
	var s Positions
	for i := range uint64(pieceFew) {
		s.Add(3*i%pieceSpan + pieceSpan)
	}
	p := s.pieces[1]
	if p.bits != nil || len(p.few) != pieceFew {
		t.Errorf("%d positions are bits: %t", len(p.few), p.bits != nil)
	}
	if s.Add(pieceSpan) || p.bits != nil {
		t.Error("a position that is there has made bits of it")
	}
	if !s.Add(pieceSpan+1) || p.bits == nil || p.few != nil {
		t.Error("one more has not")
	}
	for i := range uint64(pieceFew) {
		if s.Add(3*i%pieceSpan + pieceSpan) {
			t.Fatalf("position %d is lost", i)
		}
	}
}
