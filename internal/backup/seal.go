package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
)

// The end of an archive is a seal: the SHA-256 of every byte before it. It is in a
// frame that every reader of zstd passes over. Without it a changed bit that
// means nothing to the decoder would go unnoticed, and a cut between two frames
// would look like an end.
const (
	sealMagic = 0x184D2A5B // one of the magic numbers of frames to be passed over
	sealBytes = 4 + 4 + sha256.Size
)

// sealing hashes what it writes.
type sealing struct {
	w   io.Writer
	sum hash.Hash
}

func newSealing(w io.Writer) *sealing { return &sealing{w, sha256.New()} }

func (s *sealing) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.sum.Write(p[:n])
	return n, err
}

// seal ends the archive.
func (s *sealing) seal() error {
	_, err := s.w.Write(sealOf(s.sum))
	return err
}

func sealOf(sum hash.Hash) []byte {
	b := binary.LittleEndian.AppendUint32(nil, sealMagic)
	b = binary.LittleEndian.AppendUint32(b, sha256.Size)
	return sum.Sum(b)
}

// What the seal of an archive can say.
var (
	errNoSeal  = errors.New("it ends before its end")
	errBadSeal = errors.New("bytes of it were changed")
)

// unsealing reads an archive without its seal, and ends with an error where the
// seal is missing or does not fit.
type unsealing struct {
	r    io.Reader
	sum  hash.Hash
	have []byte // read, and not given yet
	err  error  // of r
}

func newUnsealing(r io.Reader) *unsealing { return &unsealing{r: r, sum: sha256.New()} }

func (u *unsealing) Read(p []byte) (int, error) {
	for len(u.have) <= sealBytes && u.err == nil {
		const step = 64 << 10
		grown := append(u.have, make([]byte, step)...)
		n, err := u.r.Read(grown[len(u.have):])
		u.have, u.err = grown[:len(u.have)+n], err
	}
	if len(u.have) > sealBytes {
		n := copy(p, u.have[:len(u.have)-sealBytes])
		u.sum.Write(p[:n])
		u.have = append(u.have[:0], u.have[n:]...)
		return n, nil
	}
	want := sealOf(u.sum)
	switch {
	case u.err != io.EOF:
		return 0, u.err
	case bytes.Equal(u.have, want):
		return 0, io.EOF
	case len(u.have) == sealBytes && bytes.HasPrefix(u.have, want[:8]):
		return 0, errBadSeal
	}
	return 0, errNoSeal
}
