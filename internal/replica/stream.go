package replica

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
)

// A snapshot is a magic, a header, frames of rows, an empty frame, the number of rows
// and the SHA-256 of everything before.
const (
	snapshotMagic = "KLsnap1\n"
	// frameBytes is after how many bytes of rows a frame ends; a frame has one row
	// more at most. maxFrame bounds what a reader takes.
	frameBytes = 256 << 10
	maxFrame   = 64 << 20
)

// errSnapshot says that a stream is no whole snapshot.
var errSnapshot = errors.New("replica: the snapshot is damaged or not whole")

// snapshotHeader says what a snapshot is of.
type snapshotHeader struct {
	incarnation [16]byte
	shard       uint16
	message     *pb.Message // the MsgSnap that leads to its installation
}

func (h *snapshotHeader) encode() ([]byte, error) {
	m, err := proto.Marshal(h.message)
	if err != nil {
		return nil, err
	}
	dst := append([]byte(nil), h.incarnation[:]...)
	return codec.AppendBytes(codec.AppendUvarint(dst, uint64(h.shard)), m), nil
}

func (h *snapshotHeader) decode(b []byte) error {
	r := codec.NewReader(b)
	copy(h.incarnation[:], r.Fixed(16))
	shard := r.Uvarint()
	m := r.Bytes()
	if err := r.End(); err != nil || shard > 1<<16-1 {
		return errSnapshot
	}
	h.shard, h.message = uint16(shard), new(pb.Message)
	if proto.Unmarshal(m, h.message) != nil || h.message.GetType() != pb.MsgSnap {
		return errSnapshot
	}
	return nil
}

// at is the entry that the snapshot holds last.
func (h *snapshotHeader) at() position {
	meta := h.message.GetSnapshot().GetMetadata()
	return position{meta.GetIndex(), meta.GetTerm()}
}

// rowsOf calls fn for every row of a shard, in all tables whatever they are: the table
// is the first byte of a key, the shard the next two.
func rowsOf(snap *kv.Snapshot, shard uint16, fn func(key, value []byte) (bool, error)) error {
	return eachRange(shard, func(lower, upper []byte) error { return snap.Scan(lower, upper, false, fn) })
}

// eachRange calls fn for the keys of a shard in each table.
func eachRange(shard uint16, fn func(lower, upper []byte) error) error {
	for table := range 256 {
		lower := codec.AppendUint16([]byte{byte(table)}, shard)
		if err := fn(lower, codec.PrefixEnd(lower)); err != nil {
			return err
		}
	}
	return nil
}

// writeSnapshot streams the rows of a shard. pace is called after each frame with its
// size.
func writeSnapshot(w io.Writer, h *snapshotHeader, snap *kv.Snapshot, pace func(bytes int) error) error {
	header, err := h.encode()
	if err != nil {
		return err
	}
	sum := sha256.New()
	out := io.MultiWriter(w, sum)
	if _, err := out.Write(codec.AppendBytes([]byte(snapshotMagic), header)); err != nil {
		return err
	}
	var rows uint64
	var frame []byte
	flush := func() error {
		if len(frame) == 0 {
			return nil
		}
		_, err := out.Write(codec.AppendBytes(nil, frame))
		if err == nil {
			err = pace(len(frame))
		}
		frame = frame[:0]
		return err
	}
	err = rowsOf(snap, h.shard, func(key, value []byte) (bool, error) {
		rows++
		frame = codec.AppendBytes(codec.AppendBytes(frame, key), value)
		if len(frame) < frameBytes {
			return true, nil
		}
		err := flush()
		return err == nil, err
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		_, err = out.Write(binary.BigEndian.AppendUint64([]byte{0}, rows))
	}
	if err == nil {
		_, err = w.Write(sum.Sum(nil))
	}
	return err
}

// snapshotReader reads what writeSnapshot wrote, and trusts none of it.
type snapshotReader struct {
	r      *bufio.Reader
	sum    hash.Hash
	header snapshotHeader
}

func openSnapshot(r io.Reader) (*snapshotReader, error) {
	s := &snapshotReader{r: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
	magic := make([]byte, len(snapshotMagic))
	if err := s.full(magic); err != nil {
		return nil, err
	}
	if string(magic) != snapshotMagic {
		return nil, errSnapshot
	}
	header, err := s.block()
	if err != nil {
		return nil, err
	}
	return s, s.header.decode(header)
}

// full reads and hashes all of b.
func (s *snapshotReader) full(b []byte) error {
	if _, err := io.ReadFull(s.r, b); err != nil {
		return fmt.Errorf("%w: %w", errSnapshot, err)
	}
	s.sum.Write(b)
	return nil
}

// block reads a length and so many bytes.
func (s *snapshotReader) block() ([]byte, error) {
	n, err := binary.ReadUvarint(s)
	if err != nil {
		return nil, err
	}
	if n > maxFrame {
		return nil, errSnapshot
	}
	b := make([]byte, n)
	return b, s.full(b)
}

// ReadByte reads and hashes one byte.
func (s *snapshotReader) ReadByte() (byte, error) {
	var b [1]byte
	err := s.full(b[:])
	return b[0], err
}

// part splits off a length and so many bytes.
func part(b []byte) (p, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, errSnapshot
	}
	return b[size : size+int(n)], b[size+int(n):], nil
}

// each calls fn for every row and then makes sure that there were all of them. Who
// acts on rows before it has returned must be able to take that back.
func (s *snapshotReader) each(fn func(key, value []byte) error) error {
	prefix := codec.AppendUint16(nil, s.header.shard)
	var rows uint64
	for {
		frame, err := s.block()
		if err != nil {
			return err
		}
		if len(frame) == 0 {
			break
		}
		for len(frame) > 0 {
			var key, value []byte
			if key, frame, err = part(frame); err == nil {
				value, frame, err = part(frame)
			}
			if err != nil || len(key) < 3 || !bytes.Equal(key[1:3], prefix) {
				return errSnapshot
			}
			rows++
			if err := fn(key, value); err != nil {
				return err
			}
		}
	}
	var count [8]byte
	if err := s.full(count[:]); err != nil {
		return err
	}
	want := s.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(s.r, got); err != nil {
		return fmt.Errorf("%w: %w", errSnapshot, err)
	}
	if _, err := s.r.ReadByte(); err != io.EOF || binary.BigEndian.Uint64(count[:]) != rows || !bytes.Equal(got, want) {
		return errSnapshot
	}
	return nil
}
