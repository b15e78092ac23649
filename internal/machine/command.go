package machine

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/wire"
)

// Command is one write as it stands in the log.
type Command struct {
	Op          uint16           `cbor:"1,keyasint"`
	ID          [16]byte         `cbor:"2,keyasint"`
	Tenant      string           `cbor:"3,keyasint,omitempty"` // of the principal; empty for the store's own
	Principal   string           `cbor:"4,keyasint"`
	Partition   api.PartitionRef `cbor:"5,keyasint"`
	Hash        [16]byte         `cbor:"6,keyasint"` // of the partition's name; zero for the shard itself
	Fingerprint [32]byte         `cbor:"7,keyasint"` // SHA-256 over operation and request
	Request     []byte           `cbor:"8,keyasint"` // canonical encoding of the request

	request any // decoded form, where the command was made; others decode
}

// Entry is one entry of the log: commands evaluated in order at one instant.
type Entry struct {
	At       int64     `cbor:"1,keyasint"` // the leader's clock, milliseconds
	Seed     uint64    `cbor:"2,keyasint"` // the leader's randomness
	Epoch    uint64    `cbor:"3,keyasint"` // ownership epoch of the leader
	Commands []Command `cbor:"4,keyasint"`
}

// Identity says who proposes a command and where it is evaluated.
type Identity struct {
	ID        [16]byte
	Tenant    string
	Principal string
	Partition api.PartitionRef
	Hash      [16]byte
}

// NewCommand makes the command of a request whose canonical encoding and
// fingerprint are given, so that it is encoded once. The request must not be
// changed afterwards.
func NewCommand(o *api.Operation, who Identity, fingerprint [32]byte, encoded []byte, request any) Command {
	return Command{
		Op: o.Number, ID: who.ID, Tenant: who.Tenant, Principal: who.Principal,
		Partition: who.Partition, Hash: who.Hash,
		Fingerprint: fingerprint, Request: encoded, request: request,
	}
}

// Encode and DecodeEntry are the form of an entry in a replicated log and in
// tests; on one node the atomic batch of its writes is the log.
func (e *Entry) Encode() ([]byte, error) { return wire.EncodeLog(e) }

// DecodeEntry reads what Encode wrote.
func DecodeEntry(b []byte) (*Entry, error) {
	e := new(Entry)
	if err := wire.DecodeLog(b, e); err != nil {
		return nil, fmt.Errorf("machine: damaged log entry: %w", err)
	}
	return e, nil
}
