package api

// SubscriptionsList lists the groups of a source.
var SubscriptionsList = Define[SubscriptionsListRequest, SubscriptionsListResponse](Operation{
	Name: "subscriptions.list", Number: 38, Kind: Query, Scope: PartitionScope, Capability: CapTopicsRead,
	Summary: "List the subscription groups of a source, with what each of them pins",
	Doc:     "Answers a page of groups by name with their checkpoints and the bytes that each holds back from retention.",
})

// SubscriptionsListRequest asks for one page.
type SubscriptionsListRequest struct {
	Source   SourceRef    `json:"source" cbor:"1,keyasint" doc:"topic or stream"`
	Limit    int64        `json:"limit,omitzero" cbor:"2,keyasint,omitempty" default:"100" minimum:"1" maximum:"1000" doc:"most groups of the page"`
	Cursor   string       `json:"cursor,omitzero" cbor:"3,keyasint,omitempty" maxLength:"2048" doc:"where the last page ended"`
	MinToken *CommitToken `json:"minToken,omitzero" cbor:"4,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// GroupInfo is one group of a listing.
type GroupInfo struct {
	Group       string `json:"group" cbor:"1,keyasint" doc:"name of the group"`
	Generation  uint64 `json:"generation" cbor:"2,keyasint" doc:"rises with every seek and filter update"`
	Checkpoint  uint64 `json:"checkpoint" cbor:"3,keyasint" doc:"it and every position before it are finished"`
	Tail        uint64 `json:"tail" cbor:"4,keyasint" doc:"last position of the source"`
	Lag         uint64 `json:"lag" cbor:"5,keyasint" doc:"positions above the checkpoint"`
	Paused      bool   `json:"paused" cbor:"6,keyasint" doc:"whether receives are refused"`
	FailureCode string `json:"failureCode,omitzero" cbor:"7,keyasint,omitempty" doc:"why the group paused itself"`
	DeadLetters int64  `json:"deadLetters" cbor:"8,keyasint" doc:"dead letters"`
	PinnedBytes int64  `json:"pinnedBytes" cbor:"9,keyasint" doc:"stored bytes of the retained events above the checkpoint, which the group holds back from retention"`
}

// SubscriptionsListResponse is one page.
type SubscriptionsListResponse struct {
	Groups   []GroupInfo `json:"groups" cbor:"1,keyasint" doc:"groups by name"`
	Cursor   string      `json:"cursor,omitzero" cbor:"2,keyasint,omitempty" doc:"where to go on; absent at the end"`
	Examined Examined    `json:"examined" cbor:"3,keyasint" doc:"what the read cost"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsListRequest) TargetPartition() PartitionRef { return r.Source.Partition }

func (r *SubscriptionsListRequest) needs() []Need { return sourceNeeds(r.Source) }
