package machine

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// digest rolls the command's writes into the shard's digest, in the order they
// were made. It covers every row but the head itself and what tells one replica
// from another, so equal logs give equal digests however their commands were joined
// into entries. It also notes the earliest instant that became due.
func (m *Machine) digest() {
	if !m.tx.Dirty() {
		return
	}
	var d xxhash.Digest
	d.Reset()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], m.head.Digest)
	d.Write(n[:])
	m.tx.Written(func(key string, value []byte) {
		binary.BigEndian.PutUint32(n[:4], uint32(len(key)))
		binary.BigEndian.PutUint32(n[4:], uint32(len(value))+boolInt(value != nil))
		d.Write(n[:])
		d.WriteString(key)
		d.Write(value)
		switch {
		case key[0] == byte(table.Due) && value != nil:
			m.noteDue([]byte(key))
		case key[0] == byte(table.Dispatch):
			m.dispatched = true
		}
	})
	m.head.Digest = d.Sum64()
}

// boolInt makes an empty value differ from a deletion.
func boolInt(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func (m *Machine) noteDue(key []byte) {
	r := codec.NewKeyReader(key[1:])
	when := table.DueRows.ParseKey(&r).When
	if m.nextDue == 0 || when < m.nextDue {
		m.nextDue = when
	}
}
