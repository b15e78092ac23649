package api

import (
	"strings"
	"testing"
)

func TestAMessageMustExpireAfterItIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		notBefore, expiresAt Time
		path                 string
	}{
		"no times": {0, 0, "ok"}, "only due": {5, 0, "ok"}, "only expiry": {0, 5, "ok"},
		"later": {5, 6, "ok"}, "equal": {5, 5, "/mutations/0/message/expiresAt"}, "earlier": {5, 4, "/mutations/0/message/expiresAt"},
	} {
		wantOnly(t, name, commitOfMessage(Message{Payload: JSON("1"), NotBefore: c.notBefore, ExpiresAt: c.expiresAt}), c.path)
	}
}

func TestAMutationHasExactlyOneKind(t *testing.T) {
	del, purge := &DeleteDocument{Collection: "c", ID: "i"}, &PurgeTopic{Topic: "t", ThroughPosition: 1}
	for name, c := range map[string]struct {
		m    Mutation
		kind string
		path string
	}{
		"none": {Mutation{}, "", "/mutations/0/kind"},
		"one":  {Mutation{DeleteDocument: del}, "deleteDocument", "ok"},
		"two":  {Mutation{DeleteDocument: del, PurgeTopic: purge}, "", "/mutations/0/kind"},
	} {
		wantOnly(t, name, validCommit(c.m), c.path)
		if c.m.Kind() != c.kind || (c.m.Body() == nil) != (c.kind == "") {
			t.Errorf("%s: kind %q, body %v", name, c.m.Kind(), c.m.Body())
		}
		if _, err := c.m.MarshalJSON(); (err == nil) != (c.kind != "") {
			t.Errorf("%s: MarshalJSON: %v", name, err)
		}
	}
}

func TestAnAppendHasExactlyOneExpectation(t *testing.T) {
	const at = "/mutations/0/expected"
	for name, c := range map[string]struct {
		e    ExpectedStream
		path string
	}{
		"none": {ExpectedStream{}, at}, "any": {ExpectAny(), "ok"}, "no stream": {ExpectNoStream(), "ok"},
		"exactly zero": {ExpectExact(0), "ok"}, "exactly seven": {ExpectExact(7), "ok"},
		"two":  {ExpectedStream{Any: true, Exact: ptr(uint64(1))}, at},
		"2^63": {ExpectExact(1 << 63), at + "/exact"},
	} {
		wantOnly(t, name, validCommit(Mutation{AppendEvents: &AppendEvents{
			StreamSet: "s", StreamID: "i", Expected: c.e, Events: []Event{validEvent()},
		}}), c.path)
	}
}

func TestAPatchHasAValueWhereItsOperationUsesOne(t *testing.T) {
	const at = "/mutations/0/patches/0"
	for name, c := range map[string]struct {
		p    Patch
		path string
	}{
		"set":               {Patch{PatchSet, "/a", JSON("null")}, "ok"},
		"set without":       {Patch{PatchSet, "/a", nil}, at + "/value"},
		"increment":         {Patch{PatchIncrement, "/a/b", JSON("1")}, "ok"},
		"increment without": {Patch{PatchIncrement, "/a", nil}, at + "/value"},
		"remove":            {Patch{PatchRemove, "/a~0~1", nil}, "ok"},
		"remove with":       {Patch{PatchRemove, "/a", JSON("1")}, at + "/value"},
		"unknown":           {Patch{"move", "/a", nil}, at + "/op"},
		"the root":          {Patch{PatchRemove, "", nil}, at + "/path"},
		"no slash":          {Patch{PatchRemove, "a", nil}, at + "/path"},
		"bad escape":        {Patch{PatchRemove, "/a~2", nil}, at + "/path"},
		"open escape":       {Patch{PatchRemove, "/a~", nil}, at + "/path"},
		"32 parts":          {Patch{PatchRemove, strings.Repeat("/a", 32), nil}, "ok"},
		"33 parts":          {Patch{PatchRemove, strings.Repeat("/a", 33), nil}, at + "/path"},
		"1,024 bytes":       {Patch{PatchRemove, "/" + strings.Repeat("a", 1023), nil}, "ok"},
		"1,025 bytes":       {Patch{PatchRemove, "/" + strings.Repeat("a", 1024), nil}, at + "/path"},
		"invalid UTF-8":     {Patch{PatchRemove, "/\xff", nil}, at + "/path"},
	} {
		wantOnly(t, name, validCommit(Mutation{PatchDocument: &PatchDocument{Collection: "c", ID: "i", Patches: []Patch{c.p}}}), c.path)
	}
}

func TestACompletionUsesOnlyTheFieldsOfItsAction(t *testing.T) {
	for name, c := range map[string]struct {
		item CompleteItem
		path string
	}{
		"ack":                   {CompleteItem{Action: ActionAck}, "ok"},
		"release":               {CompleteItem{Action: ActionRelease}, "ok"},
		"renew":                 {CompleteItem{Action: ActionRenew}, "ok"},
		"renew 12 h":            {CompleteItem{Action: ActionRenew, LeaseSeconds: 43_200}, "ok"},
		"renew 12 h + 1":        {CompleteItem{Action: ActionRenew, LeaseSeconds: 43_201}, "/items/0/leaseSeconds"},
		"ack with lease":        {CompleteItem{Action: ActionAck, LeaseSeconds: 1}, "/items/0/leaseSeconds"},
		"nack":                  {CompleteItem{Action: ActionNack}, "ok"},
		"nack at once":          {CompleteItem{Action: ActionNack, DelayMillis: ptr(int64(0))}, "ok"},
		"nack in 30 days":       {CompleteItem{Action: ActionNack, DelayMillis: ptr(int64(2_592_000_000))}, "ok"},
		"nack later":            {CompleteItem{Action: ActionNack, DelayMillis: ptr(int64(2_592_000_001))}, "/items/0/delayMillis"},
		"nack in the past":      {CompleteItem{Action: ActionNack, DelayMillis: ptr(int64(-1))}, "/items/0/delayMillis"},
		"nack for good":         {CompleteItem{Action: ActionNack, Terminal: true, Failure: "no"}, "ok"},
		"nack for good, later":  {CompleteItem{Action: ActionNack, Terminal: true, DelayMillis: ptr(int64(1))}, "/items/0/delayMillis"},
		"ack with delay":        {CompleteItem{Action: ActionAck, DelayMillis: ptr(int64(0))}, "/items/0/delayMillis"},
		"ack with failure":      {CompleteItem{Action: ActionAck, Failure: "x"}, "/items/0/failure"},
		"release for good":      {CompleteItem{Action: ActionRelease, Terminal: true}, "/items/0/terminal"},
		"failure of 1,024":      {CompleteItem{Action: ActionNack, Failure: strings.Repeat("x", 1024)}, "ok"},
		"failure of 1,025":      {CompleteItem{Action: ActionNack, Failure: strings.Repeat("x", 1025)}, "/items/0/failure"},
		"unknown action":        {CompleteItem{Action: "drop"}, "/items/0/action"},
		"no action":             {CompleteItem{}, "/items/0/action"},
		"token of 512":          {CompleteItem{Action: ActionAck, Token: strings.Repeat("x", 512)}, "ok"},
		"token of 513":          {CompleteItem{Action: ActionAck, Token: strings.Repeat("x", 513)}, "/items/0/token"},
		"token of invalid UTF8": {CompleteItem{Action: ActionAck, Token: "\xff"}, "/items/0/token"},
	} {
		if c.item.Token == "" {
			c.item.Token = "t"
		}
		r := &QueuesCompleteRequest{CommandID: someUUID, Lane: LaneRef{Queue: "q"}, Items: []CompleteItem{c.item}}
		ApplyDefaults(r)
		wantOnly(t, name, r, c.path)
		if c.item.Action == ActionRenew && r.Items[0].LeaseSeconds == 0 {
			t.Errorf("%s: a renewal has no length", name)
		}
	}
	r := &QueuesCompleteRequest{CommandID: someUUID, Lane: LaneRef{Queue: "q"}, Items: []CompleteItem{{Action: ActionAck}}}
	ApplyDefaults(r)
	wantOnly(t, "no token", r, "/items/0/token")
}

func TestAReadHasOneStartingPoint(t *testing.T) {
	stream := &StreamsReadRequest{Stream: StreamRef{StreamSet: "s", StreamID: "i"}, AfterPosition: 1, Cursor: "c"}
	ApplyDefaults(stream)
	wantOnly(t, "stream", stream, "/cursor")
	stream.Cursor, stream.Direction, stream.WaitMillis = "", Backward, 1
	wantOnly(t, "waiting backward", stream, "/waitMillis")
	stream.Direction = Forward
	wantOnly(t, "waiting forward", stream, "ok")
	topic := &EventsReadRequest{Source: SourceRef{Resource: "t"}, AfterPosition: 1, Cursor: "c"}
	ApplyDefaults(topic)
	wantOnly(t, "topic", topic, "/cursor")
	topic.AfterPosition = 0
	wantOnly(t, "topic by cursor", topic, "ok")
}

func TestASourceNamesAStreamExactlyWhenItIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		s    SourceRef
		path string
	}{
		"topic":             {SourceRef{Resource: "t"}, "ok"},
		"topic with stream": {SourceRef{Resource: "t", StreamID: "i"}, "/source/streamId"},
		"stream":            {SourceRef{Resource: "s", Kind: SourceStream, StreamID: "i"}, "ok"},
		"stream without id": {SourceRef{Resource: "s", Kind: SourceStream}, "/source/streamId"},
		"blank stream":      {SourceRef{Resource: "s", Kind: SourceStream, StreamID: " "}, "/source/streamId"},
		"other kind":        {SourceRef{Resource: "s", Kind: "queue"}, "/source/kind"},
	} {
		r := &EventsReadRequest{Source: c.s}
		ApplyDefaults(r)
		wantOnly(t, name, r, c.path)
	}
}

func TestAResourceHasThePolicyOfItsKindOnly(t *testing.T) {
	for name, c := range map[string]struct {
		r    ResourcesConfigureRequest
		path string
	}{
		"collection":       {ResourcesConfigureRequest{Kind: KindCollection}, "ok"},
		"stream set":       {ResourcesConfigureRequest{Kind: KindStreamSet}, "ok"},
		"topic":            {ResourcesConfigureRequest{Kind: KindTopic}, "ok"},
		"queue":            {ResourcesConfigureRequest{Kind: KindQueue}, "ok"},
		"no kind":          {ResourcesConfigureRequest{}, "/kind"},
		"unknown kind":     {ResourcesConfigureRequest{Kind: "table"}, "/kind"},
		"queue of a topic": {ResourcesConfigureRequest{Kind: KindTopic, Queue: &QueuePolicy{}}, "/queue"},
		"indexes of queue": {ResourcesConfigureRequest{Kind: KindQueue, Collection: &CollectionPolicy{}}, "/collection"},
		"source of queue":  {ResourcesConfigureRequest{Kind: KindQueue, Source: &SourcePolicy{}}, "/source"},
		"waits reversed":   {ResourcesConfigureRequest{Kind: KindQueue, Queue: &QueuePolicy{Retry: RetryPolicy{MaxMillis: 999}}}, "/queue/retry/maxMillis"},
		"lease above age":  {ResourcesConfigureRequest{Kind: KindQueue, Queue: &QueuePolicy{MaxLeaseAgeSeconds: 299}}, "/queue/maxLeaseAgeSeconds"},
		"unknown jitter":   {ResourcesConfigureRequest{Kind: KindQueue, Queue: &QueuePolicy{Retry: RetryPolicy{Jitter: "some"}}}, "/queue/retry/jitter"},
		"schema no object": {ResourcesConfigureRequest{Kind: KindCollection, Collection: &CollectionPolicy{Schema: JSON("true")}}, "/collection/schema"},
		"index twice": {ResourcesConfigureRequest{Kind: KindCollection, Collection: &CollectionPolicy{Indexes: []IndexDefinition{
			{Name: "a", Paths: []string{"/a"}}, {Name: "a", Paths: []string{"/b"}},
		}}}, "/collection/indexes/1/name"},
		"index of nothing": {ResourcesConfigureRequest{Kind: KindCollection, Collection: &CollectionPolicy{Indexes: []IndexDefinition{
			{Name: "a", Paths: []string{""}},
		}}}, "/collection/indexes/0/paths/0"},
	} {
		c.r.CommandID, c.r.Name = someUUID, "r"
		ApplyDefaults(&c.r)
		wantOnly(t, name, &c.r, c.path)
	}
}

func TestAQueueIsConfiguredWithEveryDefaultOfItsPolicy(t *testing.T) {
	r := &ResourcesConfigureRequest{CommandID: someUUID, Name: "emails", Kind: KindQueue}
	ApplyDefaults(r)
	want := QueuePolicy{
		MaxAttempts: 5, Retry: RetryPolicy{BaseMillis: 1000, MaxMillis: 300_000, Factor: 2, Jitter: "full"},
		MaxMessages: 1_000_000, MaxBytes: 4 << 30, MaxInFlightMessages: 10_000, MaxInFlightBytes: 256 << 20,
		MaxLeaseSeconds: 300, MaxLeaseAgeSeconds: 43_200,
		DeadLetter: DeadLetterPolicy{MaxMessages: 100_000, MaxBytes: 512 << 20}, FinishedRetentionSeconds: 86_400,
	}
	if r.Queue == nil || *r.Queue != want || r.Collection != nil || r.Source != nil {
		t.Errorf("got %+v", r)
	}
	before := *r.Queue
	if ApplyDefaults(r); *r.Queue != before {
		t.Error("defaults changed something the second time")
	}
}

func TestAPrincipalNamesKnownRolesCapabilitiesAndRights(t *testing.T) {
	for name, c := range map[string]struct {
		p    Principal
		path string
	}{
		"plain":              {Principal{}, "ok"},
		"role":               {Principal{Roles: []Role{RoleWorker}}, "ok"},
		"unknown role":       {Principal{Roles: []Role{"root"}}, "/principal/roles/0"},
		"empty role":         {Principal{Roles: []Role{""}}, "/principal/roles/0"},
		"grant":              {Principal{Grants: []Grant{{"*", "*", []Capability{"*", CapQueuesConsume}}}}, "ok"},
		"unknown capability": {Principal{Grants: []Grant{{"*", "*", []Capability{"queues.*"}}}}, "/principal/grants/0/capabilities/0"},
		"grant of nothing":   {Principal{Grants: []Grant{{"*", "*", nil}}}, "/principal/grants/0/capabilities"},
		"grant on nothing":   {Principal{Grants: []Grant{{"", "*", []Capability{"*"}}}}, "/principal/grants/0/database"},
		"field grant":        {Principal{FieldGrants: []FieldGrant{{"*", "*", "/a", []FieldRight{FieldRawRead}}}}, "ok"},
		"unknown right":      {Principal{FieldGrants: []FieldGrant{{"*", "*", "/a", []FieldRight{"read"}}}}, "/principal/fieldGrants/0/rights/0"},
		"no epoch":           {Principal{PolicyEpoch: 1 << 63}, "/principal/policyEpoch"},
	} {
		c.p.ID = "p"
		if c.p.PolicyEpoch == 0 {
			c.p.PolicyEpoch = 1
		}
		r := &PrincipalsConfigureRequest{CommandID: someUUID, Principal: c.p}
		ApplyDefaults(r)
		wantOnly(t, name, r, c.path)
	}
	r := &PrincipalsConfigureRequest{CommandID: someUUID, Principal: Principal{ID: "p"}}
	ApplyDefaults(r)
	wantOnly(t, "epoch zero", r, "/principal/policyEpoch")
}
