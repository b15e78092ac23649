package api

import "github.com/keyload/keyload/fault"

// SubscriptionsSeek moves a group to another place of its source.
var SubscriptionsSeek = Define[SubscriptionsSeekRequest, SubscriptionsSeekResponse](Operation{
	Name: "subscriptions.seek", Number: 31, Kind: Command, Scope: PartitionScope, Capability: CapGroupsManage, Destructive: true,
	Summary: "Move a subscription group to another place of its source; it stays paused",
	Doc: "The generation and the ownership epoch rise, the window is dropped, every token given before stops to hold, a failure is " +
		"cleared, and the group is paused until it is resumed. Whatever lies between the old and the new place is skipped or " +
		"delivered again; the answer counts it. A place before the first retained event is HistoryUnavailable.",
})

// SeekTo says where a group is moved.
type SeekTo string

// Where a group is moved.
const (
	SeekBeginning SeekTo = "beginning" // the first retained event is next
	SeekNow       SeekTo = "now"       // the next event published is next
	SeekPosition  SeekTo = "position"  // that position is next
	SeekTime      SeekTo = "time"      // the first event published at or after that instant is next
	SeekCursor    SeekTo = "cursor"    // the event after the cursor's place is next
)

// SubscriptionsSeekRequest says where to go on.
type SubscriptionsSeekRequest struct {
	CommandID          string   `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Group              GroupRef `json:"group" cbor:"2,keyasint" doc:"group and its source"`
	ExpectedGeneration uint64   `json:"expectedGeneration" cbor:"3,keyasint" minimum:"1" doc:"generation the group must be at"`
	To                 SeekTo   `json:"to" cbor:"4,keyasint" enum:"beginning,now,position,time,cursor" doc:"which kind of place"`
	Position           uint64   `json:"position,omitzero" cbor:"5,keyasint,omitempty" minimum:"1" doc:"position: the next position to deliver; at most one after the tail"`
	Time               Time     `json:"time,omitzero" cbor:"6,keyasint,omitempty" doc:"time: the first event published at or after it is next"`
	Cursor             string   `json:"cursor,omitzero" cbor:"7,keyasint,omitempty" maxLength:"2048" doc:"cursor: of a forward read of the source"`
}

// Check wants the one field that the kind of place uses.
func (r *SubscriptionsSeekRequest) Check() []fault.Violation {
	var v []fault.Violation
	for _, f := range []struct {
		path  string
		given bool
		kind  SeekTo
	}{{"/position", r.Position != 0, SeekPosition}, {"/time", r.Time != 0, SeekTime}, {"/cursor", r.Cursor != "", SeekCursor}} {
		switch {
		case f.given && r.To != f.kind:
			v = append(v, fault.Violation{Path: f.path, Message: "is only used with to: " + string(f.kind)})
		case !f.given && r.To == f.kind:
			v = append(v, fault.Violation{Path: f.path, Message: "is required with to: " + string(f.kind)})
		}
	}
	return v
}

// SubscriptionsSeekResponse is where the group stands.
type SubscriptionsSeekResponse struct {
	Receipt Receipt    `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	State   GroupState `json:"state" cbor:"2,keyasint" doc:"where the group stands now"`
	Before  uint64     `json:"before" cbor:"3,keyasint" doc:"the checkpoint before the seek"`
	Skipped int64      `json:"skipped,omitzero" cbor:"4,keyasint,omitempty" doc:"positions above the old checkpoint that are not delivered any more, finished ones included"`
	Again   int64      `json:"again,omitzero" cbor:"5,keyasint,omitempty" doc:"positions up to the old checkpoint that are delivered again"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsSeekRequest) TargetPartition() PartitionRef { return r.Group.Source.Partition }

func (r *SubscriptionsSeekRequest) resourceName() string { return r.Group.Source.Resource }

// GetCommandID is the caller's identity of the write.
func (r *SubscriptionsSeekRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *SubscriptionsSeekRequest) SetCommandID(id string) { r.CommandID = id }
