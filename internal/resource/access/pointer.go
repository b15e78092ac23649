package access

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/jsontree"
)

// remove takes the fields at JSON pointers (RFC 6901; no wildcards) out of a
// value and says which of them were there. Nothing else of the value changes: no
// number is rounded, no text respelled, no member moved. Each pointer is read
// against the value as it was, so removing an element of an array does not move
// the others before they are found.
func remove(value api.JSON, pointers []string) (api.JSON, []string, error) {
	return jsontree.Remove(value, pointers)
}
