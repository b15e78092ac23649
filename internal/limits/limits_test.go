package limits_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
)

// bound is one number of a struct tag that must be the named limit.
type bound struct {
	typ   reflect.Type
	field string
	tag   string
	want  int64
}

// of lists bounds of one type: "Field tag" and the limit by turns.
func of[T any](pairs ...any) []bound {
	var out []bound
	for i := 0; i < len(pairs); i += 2 {
		field, tag, _ := strings.Cut(pairs[i].(string), " ")
		out = append(out, bound{reflect.TypeFor[T](), field, tag, int64(pairs[i+1].(int))})
	}
	return out
}

func TestTheTagsOfRequestsAreTheLimits(t *testing.T) {
	var all []bound
	add := func(b []bound) { all = append(all, b...) }
	add(of[api.CommandsCommitRequest]("Mutations maxItems", limits.BatchMutations))
	add(of[api.QueuesProcessRequest]("Effects maxItems", limits.ProcessEffects, "Token maxLength", limits.TokenBytes))
	add(of[api.CommandsInboxRequest]("Effects maxItems", limits.ProcessEffects))
	add(of[api.AppendEvents]("Events maxItems", limits.EventsPerWrite))
	add(of[api.Publish]("Events maxItems", limits.EventsPerWrite))
	add(of[api.PutDocument]("Document maxLength", limits.DocumentBytes))
	add(of[api.PatchDocument]("Patches maxItems", limits.PatchesPerDocument))
	add(of[api.Patch]("Value maxLength", limits.DocumentBytes))
	add(of[api.Event]("Payload maxLength", limits.PayloadBytes, "PayloadBase64 maxLength", limits.PayloadBytes,
		"Headers maxItems", limits.Headers, "ContentType maxLength", limits.ContentTypeBytes))
	add(of[api.Message]("Payload maxLength", limits.PayloadBytes, "PayloadBase64 maxLength", limits.PayloadBytes,
		"Headers maxItems", limits.Headers, "ContentType maxLength", limits.ContentTypeBytes,
		"Priority default", limits.PriorityDefault, "Priority maximum", limits.PriorityLast, "MaxAttempts maximum", limits.Attempts))
	add(of[api.QueuesReceiveRequest](
		"MaxMessages default", limits.ReceiveMessagesDefault, "MaxMessages maximum", limits.ReceiveMessages,
		"MaxBytes default", limits.ReceiveBytesDefault, "MaxBytes maximum", limits.ReceiveBytes,
		"LeaseSeconds default", limits.LeaseSecondsDefault, "LeaseSeconds minimum", limits.LeaseSecondsMin,
		"LeaseSeconds maximum", limits.LeaseSeconds, "WaitMillis maximum", limits.WaitMillis))
	add(of[api.QueuesCompleteRequest]("Items maxItems", limits.CompleteItems))
	add(of[api.CompleteItem]("Token maxLength", limits.TokenBytes, "Failure maxLength", limits.FailureBytes,
		"DelayMillis maximum", limits.NackDelayMillis, "LeaseSeconds maximum", limits.LeaseSeconds))
	page := []any{
		"Limit default", limits.PageRecordsDefault, "Limit maximum", limits.PageRecords,
		"MaxBytes default", limits.PageBytesDefault, "MaxBytes maximum", limits.PageBytes, "Cursor maxLength", limits.CursorBytes,
	}
	add(of[api.DocumentsListRequest](page...))
	add(of[api.DocumentsQueryRequest](append(page, "Where maxItems", limits.Conditions)...))
	add(of[api.StreamsReadRequest](append(page, "WaitMillis maximum", limits.WaitMillis)...))
	add(of[api.EventsReadRequest](append(page, "WaitMillis maximum", limits.WaitMillis)...))
	list := []any{"Limit default", limits.PageRecordsDefault, "Limit maximum", limits.PageRecords, "Cursor maxLength", limits.CursorBytes}
	add(of[api.QueuesListRequest](list...))
	add(of[api.ResourcesListRequest](list...))
	add(of[api.PrincipalsListRequest](list...))
	add(of[api.APIKeysListRequest](list...))
	add(of[api.Condition]("Value maxLength", limits.ConditionBytes))
	add(of[api.QueuePolicy](
		"MaxAttempts default", limits.AttemptsDefault, "MaxAttempts maximum", limits.Attempts,
		"MaxMessages default", limits.QueueMessagesDefault, "MaxMessages maximum", limits.QueueMessages,
		"MaxBytes default", limits.QueueBytesDefault, "MaxBytes maximum", limits.QueueBytes,
		"MaxInFlightMessages default", limits.InFlightMessagesDefault, "MaxInFlightMessages maximum", limits.InFlightMessages,
		"MaxInFlightBytes default", limits.InFlightBytesDefault, "MaxInFlightBytes maximum", limits.QueueBytes,
		"MaxLeaseSeconds default", limits.PolicyLeaseSecondsDefault, "MaxLeaseSeconds maximum", limits.LeaseSeconds,
		"MaxLeaseAgeSeconds default", limits.LeaseSeconds, "MaxLeaseAgeSeconds maximum", limits.LeaseSeconds,
		"FinishedRetentionSeconds default", limits.FinishedSecondsDefault, "FinishedRetentionSeconds maximum", limits.RetentionSeconds))
	add(of[api.RetryPolicy](
		"BaseMillis default", limits.RetryBaseMillisDefault, "BaseMillis maximum", limits.RetryMillis,
		"MaxMillis default", limits.RetryMaxMillisDefault, "MaxMillis maximum", limits.RetryMillis,
		"Factor default", limits.RetryFactorDefault, "Factor maximum", limits.RetryFactor))
	add(of[api.DeadLetterPolicy](
		"MaxMessages default", limits.DeadLetterMessagesDefault, "MaxMessages maximum", limits.QueueMessages,
		"MaxBytes default", limits.DeadLetterBytesDefault, "MaxBytes maximum", limits.QueueBytes))
	add(of[api.SourcePolicy](
		"MaxEvents default", limits.SourceEventsDefault, "MaxEvents maximum", limits.SourceEvents,
		"MaxBytes default", limits.SourceBytesDefault, "MaxBytes maximum", limits.SourceBytes,
		"EventIDRetentionSeconds default", limits.EventIDSecondsDefault, "EventIDRetentionSeconds maximum", limits.RetentionSeconds,
		"MaxAgeSeconds maximum", limits.SourceAgeSeconds))
	add(of[api.CollectionPolicy]("Indexes maxItems", limits.Indexes, "Schema maxLength", limits.SchemaBytes,
		"TombstoneRetentionSeconds default", limits.TombstoneSecondsDefault, "TombstoneRetentionSeconds maximum", limits.RetentionSeconds))
	add(of[api.IndexDefinition]("Paths maxItems", limits.IndexPaths))
	add(of[api.ResourcesConfigureRequest]("FieldPolicies maxItems", limits.FieldPolicies))
	add(of[api.Principal]("Grants maxItems", limits.Grants, "FieldGrants maxItems", limits.Grants, "Roles maxItems", limits.Roles))
	add(of[api.Grant]("Capabilities maxItems", limits.GrantCapabilities))

	for _, b := range all {
		f, ok := b.typ.FieldByName(b.field)
		got, err := strconv.ParseInt(f.Tag.Get(b.tag), 10, 64)
		if !ok || err != nil || got != b.want {
			t.Errorf("%s.%s: %s is %q, the limit is %d", b.typ, b.field, b.tag, f.Tag.Get(b.tag), b.want)
		}
	}
}

func TestTheBoundsOfFormatsAreTheLimits(t *testing.T) {
	identifier := func(n int) bool {
		r := &api.PrincipalsGetRequest{ID: strings.Repeat("i", n), Tenant: "t"}
		return api.Validate(r) == nil
	}
	pointer := func(n int) bool {
		return api.Validate(&api.FieldPolicy{Path: "/" + strings.Repeat("p", n-1)}) == nil
	}
	depth := func(n int) bool {
		return api.Validate(&api.Condition{Path: "/p", Op: api.OpEqual, Value: api.JSON(strings.Repeat("[", n) + strings.Repeat("]", n))}) == nil
	}
	headers := func(n int) bool {
		return api.Validate(&api.Event{Type: "x", Payload: api.JSON("1"), SchemaVersion: 1, Headers: map[string]string{"h": strings.Repeat("v", n-1)}}) == nil
	}
	for name, c := range map[string]struct {
		accepts func(int) bool
		limit   int
	}{
		"identifier bytes": {identifier, limits.IdentifierBytes}, "pointer bytes": {pointer, limits.PointerBytes},
		"JSON depth": {depth, limits.JSONDepth}, "header bytes": {headers, limits.HeaderBytes},
	} {
		if !c.accepts(c.limit-1) || !c.accepts(c.limit) || c.accepts(c.limit+1) {
			t.Errorf("%s: the bound is not %d", name, c.limit)
		}
	}
	if api.MaxViolations != limits.Violations {
		t.Errorf("%d violations are told, the limit is %d", api.MaxViolations, limits.Violations)
	}
	r := &api.QueuesCompleteRequest{Items: []api.CompleteItem{{Action: api.ActionRenew}}}
	if api.ApplyDefaults(r); r.Items[0].LeaseSeconds != limits.LeaseSecondsDefault {
		t.Errorf("a renewal lasts %d s", r.Items[0].LeaseSeconds)
	}
}
