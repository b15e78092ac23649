package inbox

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/keyload/keyload/internal/table"
)

// Input names one input of a handler: where it came from, and which one it is.
type Input struct {
	owner table.Owner
	id    string
}

// elsewhere is the resource number of sources that are no resource. No resource
// has it, so nothing is ever deleted under these inputs.
const elsewhere = 0

// separator stands between the parts of an id. No identifier has a control
// character: the id of a message is one part, that of an input from elsewhere
// two and that of an event three, so none of them can be another.
const separator = "\x1f"

// ofMessage is the input that a message of a lane is.
func ofMessage(lane table.Owner, messageID string) Input { return Input{lane, messageID} }

// OfEvent is the input that the event at a position is, of one generation of a
// topic (its stream id is empty) or of a stream. Groups are no part of it: an
// event that several groups of its source deliver is one input.
func OfEvent(source table.Owner, streamID string, generation, position uint64) Input {
	return Input{source, strings.Join([]string{streamID, strconv.FormatUint(generation, 10), strconv.FormatUint(position, 10)}, separator)}
}

// ofElsewhere is an input of a source outside the store, as known in one
// partition.
func ofElsewhere(space table.Space, source, id string) Input {
	return Input{table.Owner{Space: space, Resource: elsewhere}, source + separator + id}
}

// describe names the input of an id for a person.
func describe(id string) string {
	part := strings.Split(id, separator)
	switch {
	case len(part) == 2:
		return fmt.Sprintf("input %q of source %q", part[1], part[0])
	case len(part) == 3 && part[0] == "":
		return fmt.Sprintf("the event at position %s (generation %s)", part[2], part[1])
	case len(part) == 3:
		return fmt.Sprintf("the event at position %s of stream %q (generation %s)", part[2], part[0], part[1])
	}
	return fmt.Sprintf("message %q", id)
}

// wellFormed says whether an id has the form of its owner's inputs.
func wellFormed(owner table.Owner, id string) bool {
	parts := 1 + strings.Count(id, separator)
	if owner.Resource == elsewhere {
		return parts == 2
	}
	return parts == 1 || parts == 3
}
