package kv

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// recordFile reads the form that logs and manifests share: blocks of 32 KiB made
// of chunks, each with a checksum, its length and its kind. A record is one
// chunk, or a first, middle ones and a last. Chunks of a log carry its number, so
// that what an earlier use of the file left behind is not taken for its own.
type recordFile struct {
	fs        vfs.FS
	path      string
	logNumber uint64 // 0 for a manifest
}

const (
	recordBlock  = 32 << 10
	plainHeader  = 7               // checksum, length, kind
	loggedHeader = plainHeader + 4 // and the log's number
	syncedHeader = loggedHeader + 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunk is one chunk whose checksum holds.
type chunk struct {
	payload []byte
	first   bool // a record begins here
	size    int  // with its header
}

// chunkAt reads the chunk at the start of b.
func (r *recordFile) chunkAt(b []byte) (c chunk, ok bool) {
	if len(b) < plainHeader {
		return c, false
	}
	kind, header := b[6], 0
	switch {
	case kind >= 1 && kind <= 4 && r.logNumber == 0:
		header = plainHeader
	case kind >= 5 && kind <= 8 && r.logNumber != 0:
		header = loggedHeader
	case kind >= 9 && kind <= 12 && r.logNumber != 0:
		header = syncedHeader
	default:
		return c, false
	}
	size := header + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) || r.logNumber != 0 && binary.LittleEndian.Uint32(b[plainHeader:]) != uint32(r.logNumber) {
		return c, false
	}
	sum := crc32.Checksum(b[6:size], castagnoli)
	if binary.LittleEndian.Uint32(b) != (sum>>15|sum<<17)+0xa282ead8 {
		return c, false
	}
	return chunk{b[header:size], (kind-1)%4 < 2, size}, true
}

// padding says whether the rest of a block is too short for a chunk.
func (r *recordFile) padding(rest []byte) bool {
	if len(rest) < plainHeader {
		return true
	}
	if r.logNumber == 0 || len(rest) >= syncedHeader {
		return false
	}
	for _, b := range rest {
		if b != 0 {
			return false
		}
	}
	return true
}

// readable is the offset of the first bytes that are no chunk: the end of the
// file, of what was written to it, or of what is not damaged. begin gets the
// start of every record before it.
func (r *recordFile) readable(begin func(record []byte)) (end int64, err error) {
	err = r.eachBlock(func(at int64, b []byte) (bool, error) {
		pos := 0
		for ; !r.padding(b[pos:]); end = at + int64(pos) {
			c, ok := r.chunkAt(b[pos:])
			if !ok {
				return false, nil
			}
			if c.first && begin != nil {
				begin(c.payload)
			}
			pos += c.size
		}
		end = at + int64(len(b))
		return true, nil
	})
	return end, err
}

// after calls found for every start of a record that stands anywhere behind an
// offset, whatever is between.
func (r *recordFile) after(offset int64, found func(at int64, record []byte) error) error {
	return r.eachBlock(func(at int64, b []byte) (bool, error) {
		for pos := int(max(offset+1-at, 0)); pos < len(b); pos++ {
			if c, ok := r.chunkAt(b[pos:]); ok && c.first {
				if err := found(at+int64(pos), c.payload); err != nil {
					return false, err
				}
			}
		}
		return true, nil
	})
}

// eachBlock reads the file block by block until fn says stop or fails.
func (r *recordFile) eachBlock(fn func(at int64, block []byte) (more bool, err error)) (err error) {
	f, err := r.fs.Open(r.path, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block := make([]byte, recordBlock)
	for at := int64(0); ; at += recordBlock {
		n, err := io.ReadFull(f, block)
		if n == 0 && err == io.EOF {
			return nil
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return err
		}
		if more, err := fn(at, block[:n]); err != nil || !more {
			return err
		}
	}
}
