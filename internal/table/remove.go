package table

import (
	"bytes"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
)

// removeBytes bounds the values that one RemoveSome reads over on its way.
const removeBytes = 8 << 20

// RemoveSome deletes rows whose key starts with prefix (table id first), in key
// order from the key from on (nil: from the first), by their keys: no row is
// decoded. It deletes at most rows rows, and fewer when their values come to more
// than 8 MiB, since the store reads over them; it deletes one at least when rows
// allows it. next is the key of the first row it left, nil when none is left: a
// caller that goes on there does not walk over what was deleted before.
func RemoveSome(tx *kv.Tx, prefix, from []byte, rows int) (removed int, next []byte, err error) {
	lower := prefix
	if bytes.Compare(from, prefix) > 0 {
		lower = from
	}
	var keys [][]byte
	size := 0
	err = tx.Scan(lower, codec.PrefixEnd(prefix), false, func(key, value []byte) (bool, error) {
		own := append([]byte(nil), key...)
		if len(keys) >= rows || size >= removeBytes {
			next = own
			return false, nil
		}
		size += len(value)
		keys = append(keys, own)
		return true, nil
	})
	if err != nil {
		return 0, nil, err
	}
	for _, key := range keys {
		tx.Delete(key)
	}
	return len(keys), next, nil
}
