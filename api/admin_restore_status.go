package api

// AdminRestoreStatus lists what waits for a person after a restore.
var AdminRestoreStatus = Define[AdminRestoreStatusRequest, AdminRestoreStatusResponse](Operation{
	Name: "admin.restore-status", Number: 44, Kind: Query, Scope: NodeScope, Capability: CapBackupManage,
	Summary: "See what still waits for a person after a restore",
	Doc: "Answers whether the store delivers, its earlier histories with the position at which each ends in every shard, and a " +
		"page of the groups that are paused, with a cursor while there may be more. One that a restore paused goes on from its " +
		"checkpoint after subscriptions.resume, or from elsewhere after subscriptions.seek and resume; the others were paused " +
		"before, by a person or by what failed in them. API keys and policies are those of the backup: one revoked after it holds again.",
})

// AdminRestoreStatusRequest asks for what waits.
type AdminRestoreStatusRequest struct {
	Limit  int64  `json:"limit,omitzero" cbor:"1,keyasint,omitempty" minimum:"1" maximum:"1000" default:"100" doc:"most groups to list"`
	Cursor string `json:"cursor,omitzero" cbor:"2,keyasint,omitempty" maxLength:"2048" doc:"where the last page ended"`
}

// EarlierHistory is an incarnation that a restore ended.
type EarlierHistory struct {
	Incarnation string   `json:"incarnation" cbor:"1,keyasint" doc:"identity of the history"`
	EndedAt     Time     `json:"endedAt" cbor:"2,keyasint" doc:"when the store was restored"`
	Positions   []uint64 `json:"positions" cbor:"3,keyasint" doc:"last position of the history in each shard, the catalog's first"`
}

// PausedByRestore is the failure code of a group that a restore paused.
const PausedByRestore = "restored"

// PausedGroup is a group that delivers nothing until a person resumes it.
type PausedGroup struct {
	Group       GroupRef `json:"group" cbor:"1,keyasint" doc:"the group"`
	Generation  uint64   `json:"generation" cbor:"2,keyasint" doc:"its generation, for subscriptions.resume or seek"`
	Checkpoint  uint64   `json:"checkpoint" cbor:"3,keyasint" doc:"everything up to here is finished"`
	Tail        uint64   `json:"tail" cbor:"4,keyasint" doc:"last position of its source"`
	FailureCode string   `json:"failureCode,omitzero" cbor:"5,keyasint,omitempty" doc:"why it is paused: restored, or what stopped it; absent when it was paused by hand or moved by a seek"`
}

// AdminRestoreStatusResponse is what waits.
type AdminRestoreStatusResponse struct {
	Incarnation     string           `json:"incarnation" cbor:"1,keyasint" doc:"identity of the store's history"`
	Dispatch        Dispatch         `json:"dispatch" cbor:"2,keyasint" doc:"whether the store delivers"`
	Earlier         []EarlierHistory `json:"earlier" cbor:"3,keyasint" doc:"histories before this one, the latest first, at most 16"`
	APIKeys         int64            `json:"apiKeys" cbor:"4,keyasint" doc:"API keys that are neither revoked nor expired; look through them after a restore"`
	PausedGroups    int64            `json:"pausedGroups" cbor:"5,keyasint" doc:"how many groups are paused"`
	Groups          []PausedGroup    `json:"groups" cbor:"6,keyasint" doc:"a page of them"`
	Cursor          string           `json:"cursor,omitzero" cbor:"7,keyasint,omitempty" doc:"where to go on; absent at the end"`
	PausedByRestore int64            `json:"pausedByRestore" cbor:"8,keyasint" doc:"how many of the paused groups a restore has paused"`
}
