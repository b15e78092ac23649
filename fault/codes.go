package fault

// Code is the class of an error. The set is closed: surfaces map each code to a
// status, an exit code and a page of documentation.
type Code string

// The codes of the contract.
const (
	Validation            Code = "Validation"            // malformed or out-of-range input
	Unauthenticated       Code = "Unauthenticated"       // missing, unknown, revoked or expired key
	PermissionDenied      Code = "PermissionDenied"      // capability, row, field or policy epoch
	NotFound              Code = "NotFound"              // resource, group, document or leased message
	Conflict              Code = "Conflict"              // an id with other content, unique clash, wrong state
	RevisionConflict      Code = "RevisionConflict"      // an exact version, revision or generation differs
	DuplicateEventID      Code = "DuplicateEventId"      // the same event with the same content exists
	StaleLease            Code = "StaleLease"            // the lease was replaced
	LeaseExpired          Code = "LeaseExpired"          // the lease's deadline has passed
	TokenInvalidated      Code = "TokenInvalidated"      // what the token names no longer holds
	CursorExpired         Code = "CursorExpired"         // cursor or command id older than its horizon
	HistoryUnavailable    Code = "HistoryUnavailable"    // retained away
	BudgetExceeded        Code = "BudgetExceeded"        // a read would cost more than it may
	UnsupportedCapability Code = "UnsupportedCapability" // not offered for this kind of thing
	DispatchPaused        Code = "DispatchPaused"        // queue, topic, group or store is paused
	ResourceExhausted     Code = "ResourceExhausted"     // quota, admission or retention pin
	Cancelled             Code = "Cancelled"             // the caller went away before anything was submitted
	Corruption            Code = "Corruption"            // stored bytes are not what they must be
	FormatUnsupported     Code = "FormatUnsupported"     // stored format is newer than this program
	UnknownWriteOutcome   Code = "UnknownWriteOutcome"   // may have happened: retry the same id
	OwnershipLost         Code = "OwnershipLost"         // no leader, or it moved
	ClockUncertain        Code = "ClockUncertain"        // the leader's clock cannot be trusted
	RecoveryRequired      Code = "RecoveryRequired"      // the store needs an operator
)

// Retry says what the caller may do after an error.
type Retry string

// The four kinds of retry advice.
const (
	RetrySameID      Retry = "same_id"      // nothing was recorded, or the outcome is unknown: repeat unchanged
	RetryNewID       Retry = "new_id"       // a recorded refusal: nothing happened, a new command may
	RetryAfterChange Retry = "after_change" // the caller must change something first
	RetryNever       Retry = "never"        // repeating cannot help
)

// class is what every error of one code has in common.
type class struct {
	status   int    // HTTP status
	exit     int    // exit code of the command line
	title    string // short, the same for every error of the code
	retry    Retry  // advice when nothing was recorded
	recorded bool   // whether a refusal decided by the state machine is stored
}

// classes is a value, not a registry: nothing adds to it.
func classOf(c Code) class {
	switch c {
	case Validation:
		return class{400, 2, "The request is not valid", RetryAfterChange, true}
	case Unauthenticated:
		return class{401, 3, "The caller is not known", RetryAfterChange, false}
	case PermissionDenied:
		return class{403, 4, "The caller may not do this", RetryAfterChange, true}
	case NotFound:
		return class{404, 5, "There is no such thing", RetryAfterChange, true}
	case Conflict:
		return class{409, 6, "It conflicts with what is stored", RetryAfterChange, true}
	case RevisionConflict:
		return class{409, 6, "A revision differs from the expected one", RetryAfterChange, true}
	case DuplicateEventID:
		return class{409, 6, "This event is already stored", RetryNever, true}
	case StaleLease:
		return class{409, 7, "The lease was replaced", RetryNever, true}
	case LeaseExpired:
		return class{409, 7, "The lease has expired", RetryNever, true}
	case TokenInvalidated:
		return class{409, 7, "The token no longer holds", RetryNever, true}
	case CursorExpired:
		return class{410, 8, "The cursor or command id is too old", RetryAfterChange, true}
	case HistoryUnavailable:
		return class{410, 8, "This part of the history is gone", RetryAfterChange, true}
	case BudgetExceeded:
		return class{413, 9, "The read costs more than it may", RetryAfterChange, false}
	case UnsupportedCapability:
		return class{422, 10, "This is not offered here", RetryNever, true}
	case DispatchPaused:
		return class{423, 11, "Delivery is paused", RetrySameID, false}
	case ResourceExhausted:
		return class{429, 12, "A limit is reached", RetryNewID, true}
	case Cancelled:
		return class{499, 13, "The caller went away", RetrySameID, false}
	case FormatUnsupported:
		return class{500, 15, "The stored format is not supported", RetryNever, false}
	case UnknownWriteOutcome:
		return class{503, 16, "It may or may not have happened", RetrySameID, false}
	case OwnershipLost:
		return class{503, 16, "No leader is available", RetrySameID, false}
	case ClockUncertain:
		return class{503, 16, "The clock cannot be trusted", RetrySameID, false}
	case RecoveryRequired:
		return class{503, 17, "The store needs an operator", RetrySameID, false}
	default:
		return class{500, 14, "Stored bytes are not what they must be", RetryNever, false}
	}
}

// Codes lists every code in the order of the contract's table.
func Codes() []Code {
	return []Code{
		Validation, Unauthenticated, PermissionDenied, NotFound, Conflict, RevisionConflict,
		DuplicateEventID, StaleLease, LeaseExpired, TokenInvalidated, CursorExpired,
		HistoryUnavailable, BudgetExceeded, UnsupportedCapability, DispatchPaused,
		ResourceExhausted, Cancelled, Corruption, FormatUnsupported, UnknownWriteOutcome,
		OwnershipLost, ClockUncertain, RecoveryRequired,
	}
}

// Status is the HTTP status of the code.
func (c Code) Status() int { return classOf(c).status }

// ExitCode is the exit code the command line ends with for the code.
func (c Code) ExitCode() int { return classOf(c).exit }

// Title is the short text every error of the code shares.
func (c Code) Title() string { return classOf(c).title }

// Recordable says whether a refusal with this code, decided by the state
// machine, is stored and answered again for the same command id.
func (c Code) Recordable() bool { return classOf(c).recorded }
