package table

// ID is the first byte of every key. Append only: an id that was ever released
// keeps its meaning for good.
type ID uint8

// The tables, grouped by the package that owns them.
const (
	ShardHead ID = 1 // machine: applied position, logged time, digest
	Receipt   ID = 2 // machine: outcome of a command
	ReceiptAt ID = 3 // machine: prune order of receipts whose id has no time
	Partition ID = 4 // machine: names of the partitions a shard holds
	Due       ID = 5 // table: what happens later
	StoreInfo ID = 6 // system: incarnation, format, keys
	Lineage   ID = 7 // lineage: incarnations that a restore ended
	Applied   ID = 8 // machine: how far a replicated log is in the state

	ResourceByName ID = 10 // directory: a resource's definition
	ResourceByID   ID = 11 // directory: name of a resource number
	ResourcePurge  ID = 12 // directory: deletions under way
	DirectoryHead  ID = 13 // directory: next resource number, catalog revision
	Dispatch       ID = 14 // dispatch: whether the store delivers
	Member         ID = 15 // members: nodes of the cluster
	Leadership     ID = 16 // members: node chosen to lead a shard

	Principal      ID = 20 // access: policies of principals
	APIKey         ID = 21 // access: hashes of keys
	APIKeyTenant   ID = 23 // access: tenant of a key id
	CatalogHistory ID = 22 // directory: catalog changes by revision

	Document      ID = 30 // document: bodies and tombstones
	DocumentHead  ID = 31 // document: counters of a collection in a partition
	DocumentIndex ID = 32 // document: composite indexes
	DocumentUniq  ID = 33 // document: unique indexes
	DocumentTomb  ID = 34 // document: prune order of tombstones

	Event       ID = 40 // source: events by position
	EventID     ID = 41 // source: identity of events
	SourceHead  ID = 42 // source: tail, first retained, counters
	PurgedIDs   ID = 44 // source: identities whose horizon runs
	AgeSweep    ID = 45 // source: how far the sources of a resource were armed anew
	Message     ID = 50 // queue: metadata by message id
	MessageBody ID = 51 // queue: payload and headers
	LaneHead    ID = 52 // queue: counters of a lane
	Ready       ID = 53 // queue: claim order
	Scheduled   ID = 54 // queue: messages by due instant
	Lease       ID = 55 // queue: leases by deadline
	Expiring    ID = 56 // queue: messages by expiry
	Finished    ID = 57 // queue: prune order of finished messages
	Dead        ID = 58 // queue: dead letters in order
	PendingDead ID = 59 // queue: messages waiting for dead letter room
	LeaseLeft   ID = 60 // queue: which messages of a lease row are still leased
	LimitSweep  ID = 61 // queue: how far the lanes of a queue were looked through

	Inbox     ID = 70 // inbox: processed inputs
	InboxAt   ID = 71 // inbox: prune order
	InboxHead ID = 72 // inbox: armed instant of a lane

	GroupDefinition ID = 80 // group: what was configured, by source and name
	GroupHead       ID = 81 // group: checkpoint, counters
	GroupRow        ID = 82 // group: unfinished positions and gap runs
	GroupReady      ID = 83 // group: places to be claimed again
	GroupWait       ID = 84 // group: places by the instant of their next attempt
	GroupLease      ID = 85 // group: leases by deadline
	GroupKeyed      ID = 86 // group: unfinished positions by ordering key
	GroupDead       ID = 87 // group: dead letters with their events
	GroupSkip       ID = 88 // group: the last skips
	GroupRunEnd     ID = 89 // group: gap runs by their last position
	GroupRemoval    ID = 90 // group: deleted groups whose rows are being removed
)
