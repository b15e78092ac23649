package limits

// Names and headers.
const (
	// IdentifierBytes is the longest identifier.
	IdentifierBytes = 256
	// PointerBytes is the longest JSON pointer.
	PointerBytes = 1_024
	// ContentTypeBytes is the longest media type.
	ContentTypeBytes = 256
	// Headers is the most headers of an event or message.
	Headers = 64
	// HeaderBytes is the most bytes of all header names and values of one event
	// or message together.
	HeaderBytes = 32 << 10
	// TokenBytes is the longest token.
	TokenBytes = 512
	// CursorBytes is the longest cursor.
	CursorBytes = 2_048
	// FailureBytes is the longest failure text of a nack.
	FailureBytes = 1_024
)

// Values.
const (
	// PayloadBytes is the largest payload of an event or message.
	PayloadBytes = 1 << 20
	// DocumentBytes is the largest document.
	DocumentBytes = 1 << 20
	// JSONDepth is the most levels of objects and arrays of one JSON value.
	JSONDepth = 32
	// SchemaBytes is the largest JSON Schema of a collection.
	SchemaBytes = 64 << 10
	// ConditionBytes is the largest value a query compares with.
	ConditionBytes = 64 << 10
	// Number is the largest position, revision, generation or version.
	Number = 1<<63 - 1
)

// Requests.
const (
	// BodyBytes is the largest request body.
	BodyBytes = 8 << 20
	// BatchBytes is the largest encoded batch.
	BatchBytes = 8 << 20
	// BatchMutations is the most mutations of a batch.
	BatchMutations = 256
	// ProcessEffects is the most effects of one processed input.
	ProcessEffects = 256
	// EventsPerWrite is the most events of one append or publish.
	EventsPerWrite = 256
	// PatchesPerDocument is the most patches of one patchDocument.
	PatchesPerDocument = 256
	// CompleteItems is the most deliveries completed by one command.
	CompleteItems = 256
	// Violations is the most violations one refusal tells.
	Violations = 20
)

// Receive.
const (
	// ReceiveMessages is the most messages of one receive.
	ReceiveMessages = 256
	// ReceiveMessagesDefault is what a receive asks for.
	ReceiveMessagesDefault = 1
	// ReceiveBytes is the most bytes of one receive.
	ReceiveBytes = 8 << 20
	// ReceiveBytesDefault is what a receive asks for.
	ReceiveBytesDefault = 1 << 20
	// WaitMillis is the longest a receive or a read waits.
	WaitMillis = 20_000
	// LeaseSecondsMin is the shortest lease.
	LeaseSecondsMin = 1
	// LeaseSecondsDefault is the lease a receive or renewal asks for.
	LeaseSecondsDefault = 30
	// LeaseSeconds is the longest lease, and the longest with its renewals.
	LeaseSeconds = 43_200
	// NackDelayMillis is the longest delay of a nack: 30 days.
	NackDelayMillis = 2_592_000_000
	// ScanScheduled, ScanExpired and ScanReady are the most due scheduled
	// entries, expired leases and ready entries one command looks at.
	ScanScheduled = 256
	ScanExpired   = 256
	ScanReady     = 256
	// ScanSource is the most new positions of a source one receive of a group
	// looks at.
	ScanSource = 256
)

// Reads.
const (
	// PageRecords is the most records of a page.
	PageRecords = 1_000
	// PageRecordsDefault is what a read asks for.
	PageRecordsDefault = 100
	// PageBytes is the most bytes of a page.
	PageBytes = 8 << 20
	// PageBytesDefault is what a read asks for.
	PageBytesDefault = 1 << 20
	// ReadRecords is the most records a read looks at.
	ReadRecords = 10_000
	// ReadBytes is the most bytes a read looks at.
	ReadBytes = 64 << 20
	// QuerySeconds is the deadline of a query.
	QuerySeconds = 30
	// Conditions is the most conditions of a query.
	Conditions = 16
	// CursorSeconds is how long a cursor holds.
	CursorSeconds = 24 * 3_600
)

// Messages and queue policies.
const (
	// PriorityLast is the lowest urgency; 0 is the highest.
	PriorityLast = 9
	// PriorityDefault is the priority of a message that names none.
	PriorityDefault = 4
	// Attempts is the most claims before dead-lettering.
	Attempts = 1_000
	// AttemptsDefault is a queue's maxAttempts.
	AttemptsDefault = 5
	// RetryBaseMillisDefault and RetryMaxMillisDefault are a queue's waits.
	RetryBaseMillisDefault = 1_000
	RetryMaxMillisDefault  = 300_000
	// RetryMillis is the largest of either.
	RetryMillis = 86_400_000
	// RetryFactorDefault is a queue's growth of the wait; RetryFactor the most.
	RetryFactorDefault = 2
	RetryFactor        = 10
	// QueueMessagesDefault and QueueBytesDefault are a lane's stored quotas.
	QueueMessagesDefault = 1_000_000
	QueueBytesDefault    = 4 << 30
	// InFlightMessagesDefault and InFlightBytesDefault are a lane's quotas of
	// leased messages.
	InFlightMessagesDefault = 10_000
	InFlightBytesDefault    = 256 << 20
	// PolicyLeaseSecondsDefault is a queue's longest single lease.
	PolicyLeaseSecondsDefault = 300
	// DeadLetterMessagesDefault and DeadLetterBytesDefault are a lane's room for
	// dead letters.
	DeadLetterMessagesDefault = 100_000
	DeadLetterBytesDefault    = 512 << 20
	// QueueMessages, QueueBytes and InFlightMessages are the most a policy may
	// allow.
	QueueMessages    = 1_000_000_000
	QueueBytes       = 1 << 40
	InFlightMessages = 1_000_000
	// FinishedSecondsDefault is how long ids of finished messages are kept.
	FinishedSecondsDefault = 86_400
)

// Sources.
const (
	// SourceEventsDefault and SourceBytesDefault are the quotas of a topic or
	// stream.
	SourceEventsDefault = 10_000_000
	SourceBytesDefault  = 16 << 30
	// SourceEvents and SourceBytes are the most a policy may allow.
	SourceEvents = 1_000_000_000_000
	SourceBytes  = 1 << 50
	// SourceAgeSeconds is the greatest age of events a policy may name: a hundred
	// years.
	SourceAgeSeconds = 100 * 365 * 86_400
	// EventIDSecondsDefault is how long ids of purged events are kept.
	EventIDSecondsDefault = 30 * 86_400
)

// Collections.
const (
	// Indexes is the most indexes of a collection.
	Indexes = 32
	// IndexPaths is the most fields of an index.
	IndexPaths = 8
	// IndexEntryBytes is the longest key form of the fields of one index of one
	// document; a text takes its bytes and a few more.
	IndexEntryBytes = 1_024
	// TombstoneSecondsDefault is how long revisions of deleted documents are kept.
	TombstoneSecondsDefault = 30 * 86_400
	// FieldPolicies is the most protected fields of a resource.
	FieldPolicies = 64
)

// Principals.
const (
	// Grants is the most grants, and the most field grants, of a principal.
	Grants = 256
	// GrantCapabilities is the most capabilities of a grant.
	GrantCapabilities = 64
	// Roles is the most roles of a principal.
	Roles = 16
)

// RetentionSeconds is the longest any horizon of a policy may be: one year.
const RetentionSeconds = 365 * 86_400

// Horizons of the store.
const (
	// ReceiptSeconds is how long receipts live.
	ReceiptSeconds = 7 * 86_400
	// InboxSeconds is how long inbox rows live.
	InboxSeconds = 30 * 86_400
)

// Admission and the clock.
const (
	// AdmittedCommands and AdmittedBytes are the most that wait on one node; one
	// tenant may hold half of it.
	AdmittedCommands = 4_096
	AdmittedBytes    = 256 << 20
	// AdmissionReserve is kept for commands that finish or stop work.
	AdmissionReserve = 256
	// AdmissionReserveBytes is the reserve in bytes: 64 KiB for each command.
	AdmissionReserveBytes = AdmissionReserve * 64 << 10
	// QueriesRunning is how many queries of partitions run at once on one node, and
	// QueriesWaiting how many may wait for their turn; one tenant may have half of
	// each.
	QueriesRunning = 32
	QueriesWaiting = 1_024
	// ParkedCalls is how many calls may wait at once for something to deliver on one
	// node, half of them of one tenant. One more is answered at once.
	ParkedCalls = 16_384
	// ClusterNodes is the most nodes of a cluster.
	ClusterNodes = 7
	// LeaderWaitMillis is how long a call waits for its shard to have a leader.
	LeaderWaitMillis = 5_000
	// BodiesBytes is how many bytes of request bodies a server holds at once, half of
	// them of one tenant; what is above is refused before it is read.
	BodiesBytes = 256 << 20
	// BodiesReserveBytes is kept for small bodies, of at most SmallBodyBytes:
	// acknowledgements and what else frees things are among them. Larger ones take
	// turns to be decoded, checked and encoded.
	BodiesReserveBytes = 32 << 20
	SmallBodyBytes     = 64 << 10
	// AnswersBytes is how many bytes of answers a server holds for callers that have
	// not read them yet, half of them for one tenant. Who asks for many bytes waits for
	// room for at most AnswersWaitMillis before anything is read or claimed.
	AnswersBytes      = 256 << 20
	AnswersWaitMillis = 2_000
	// AnswersReserveBytes is kept for small answers, of at most SmallBodyBytes.
	AnswersReserveBytes = 32 << 20
	// SessionAnswersBytes is how many bytes of answers one session holds. What asks for
	// more waits until its client has read.
	SessionAnswersBytes = 128 << 20
	// Connections is how many connections a server holds, sessions among them. One more
	// is closed at once.
	Connections = 16_384
	// Sessions is how many sessions a server holds open.
	Sessions = 4_096
	// ClockBehindMillis is how far a leader's clock may be behind logged time.
	ClockBehindMillis = 500
	// ClockDriftMillis is how far wall and monotonic clock may part.
	ClockDriftMillis = 5_000
)

// Subscription groups.
const (
	// GroupsPerSource is the most groups one source has: retention looks at every
	// one of them for the lowest checkpoint.
	GroupsPerSource = 1_000
	// GroupWindow is the largest maxWindow.
	GroupWindow = 65_536
	// GroupSkips is how many skips a group remembers.
	GroupSkips = 16
)
