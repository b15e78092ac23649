package source

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
)

// topicGeneration is the only generation a topic has.
const topicGeneration = 1

// Key names one source: a topic (StreamID is empty) or one generation of a
// stream, in one partition. Identifiers are never empty, so the two cannot meet.
type Key struct {
	Owner      table.Owner
	StreamID   string
	Generation uint64
}

// Append appends the source as key parts.
func (k Key) Append(dst []byte) []byte {
	return codec.AppendUint64(codec.AppendText(k.Owner.Append(dst), k.StreamID), k.Generation)
}

// ReadKey reads what Key.Append wrote.
func ReadKey(r *codec.KeyReader) (k Key) {
	k.Owner = table.ReadOwner(r)
	k.StreamID, k.Generation = r.Text(), r.Uint64()
	return k
}

// parseKey reads the owner of a due row.
func parseKey(b []byte) (Key, error) {
	r := codec.NewKeyReader(b)
	k := ReadKey(&r)
	return k, r.End()
}

// WakeKey is what callers that wait for an event of the source wait for.
func WakeKey(k Key) string { return string(k.Append([]byte{'s'})) }

// Topic finds a topic by name. Errors: those of directory.Resolve, and
// RevisionConflict for any generation but 1, the only one a topic has.
func Topic(s *op.Scope, name string, generation uint64) (*api.Resource, Key, error) {
	r, owner, err := directory.Resolve(s, name, api.KindTopic)
	if err != nil {
		return nil, Key{}, err
	}
	if generation != topicGeneration {
		return nil, Key{}, fault.New(fault.RevisionConflict, "generation",
			"topic %q is at generation %d, not %d", name, topicGeneration, generation).
			With("generation", "%d", topicGeneration)
	}
	return r, Key{Owner: owner, Generation: generation}, nil
}

// Stream finds one generation of a stream by its set and id. A stream needs no
// creation: every id and every generation is there, without events until the
// first append, and each generation is a history of its own with its own
// revisions and event ids. Errors: those of directory.Resolve.
func Stream(s *op.Scope, set, id string, generation uint64) (*api.Resource, Key, error) {
	r, owner, err := directory.Resolve(s, set, api.KindStreamSet)
	if err != nil {
		return nil, Key{}, err
	}
	return r, Key{Owner: owner, StreamID: id, Generation: generation}, nil
}

// Resolve finds the source a request names. Errors: those of Topic and Stream,
// and Validation when streamId is missing or does not belong there.
func Resolve(s *op.Scope, ref api.SourceRef) (*api.Resource, Key, error) {
	if ref.Kind == api.SourceStream {
		if ref.StreamID == "" {
			return nil, Key{}, fault.Invalid("/source/streamId", "is required when kind is stream")
		}
		return Stream(s, ref.Resource, ref.StreamID, ref.Generation)
	}
	if ref.StreamID != "" {
		return nil, Key{}, fault.Invalid("/source/streamId", "belongs to kind stream; a topic has no streams")
	}
	return Topic(s, ref.Resource, ref.Generation)
}
