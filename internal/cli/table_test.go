package cli

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

func printed(t *testing.T, response any, terminal bool) string {
	t.Helper()
	var b bytes.Buffer
	p := printer{w: &b, terminal: terminal}
	if err := p.print(response); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if want = strings.TrimPrefix(want, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

var receipt = api.Receipt{
	CommandID: "0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e", CommittedAt: 1769914800000, Durability: api.DurableDisk,
	Token: api.CommitToken{Position: 12, Partition: api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "k/1"}},
}

func TestABatchIsShownAsOneLinePerChangeAndItsReceipt(t *testing.T) {
	equal(t, printed(t, &api.CommandsCommitResponse{Receipt: receipt, Results: []api.MutationResult{
		{Kind: "putDocument", Revision: 3}, {Kind: "enqueue", MessageID: "m-1", StateVersion: 1},
	}}, false), `
results: 2
  kind         revision  messageId  stateVersion
  putDocument  3
  enqueue                m-1        1
committed 2026-02-01T03:00:00.000Z at position 12 in default/main/main/k%2F1 (disk), command 0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e
`)
}

func TestADocumentIsShownWholeAndIndentedWhenLong(t *testing.T) {
	equal(t, printed(t, &api.DocumentsGetResponse{Document: api.Document{
		ID: "o-1", Revision: 2, UpdatedAt: 1769914800000, Redacted: []string{"/card", "/cvc"},
		Document: api.JSON(`{"customer":"Somebody with a long name","lines":[1,2],"total":90071992547409931}`),
	}}, true), `
id         o-1
revision   2
document   {
             "customer": "Somebody with a long name",
             "lines": [
               1,
               2
             ],
             "total": 90071992547409931
           }
updatedAt  2026-02-01T03:00:00.000Z
redacted   /card, /cvc
`)
}

func TestDeliveriesAreShownOneByOneWithTheirWholeToken(t *testing.T) {
	token := strings.Repeat("t", 200)
	out := printed(t, &api.QueuesReceiveResponse{Receipt: receipt, Deliveries: []api.Delivery{
		{MessageID: "m-1", Payload: api.JSON(`{"a":1}`), Token: token, Attempt: 1, Headers: map[string]string{"b": "2", "a": "1"}},
		{MessageID: "m-2", PayloadBase64: []byte("hi"), ContentType: "text/plain", Token: token, Attempt: 2},
	}, Examined: api.ReceiveExamined{Ready: 2}}, true)
	for _, want := range []string{"deliveries: 2\n  messageId ", " " + token + "\n", "headers             a=1, b=2\n", "payloadBase64       aGk=\n", "examined  2 ready, 0 expired, 0 scheduled\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestAnEmptyReceiveSaysWhyAndHasNoReceiptLine(t *testing.T) {
	equal(t, printed(t, &api.QueuesReceiveResponse{Reason: api.ReasonScheduled, NextDueAt: 1769914800000}, true), `
reason     scheduled
nextDueAt  2026-02-01T03:00:00.000Z
deliveries: none
`)
}

func TestLongValuesAreShortenedInTablesOnATerminalOnly(t *testing.T) {
	long := `{"text":"` + strings.Repeat("é", 100) + `"}`
	page := &api.DocumentsListResponse{Documents: []api.Document{{ID: "a", Revision: 1, Document: api.JSON(long)}}, Examined: api.Examined{Records: 1, Bytes: 9}}
	if out := printed(t, page, false); !strings.Contains(out, long) || !strings.Contains(out, "examined  1 records, 9 bytes\n") {
		t.Errorf("not whole:\n%s", out)
	}
	if out := printed(t, page, true); strings.Contains(out, long) || !strings.Contains(out, "é…") {
		t.Errorf("not shortened:\n%s", out)
	}
}

func TestAnAnswerSaysOfEachItemWhatBecameOfIt(t *testing.T) {
	ok := api.CompleteResult{MessageID: "m-1", State: api.StateAcked, StateVersion: 3}
	no := api.CompleteResult{Error: fault.New(fault.StaleLease, "lease_replaced", "another worker holds the message, which is longer than a cell may be").With("nextAction", "drop it")}
	equal(t, printed(t, &api.QueuesCompleteResponse{Receipt: receipt, Results: []api.CompleteResult{ok, no, no}}, true), `
results: 3
  item  messageId  state  stateVersion  error
  1     m-1        acked  3
  2                                     StaleLease: another worker holds the message, which is longer than a cell may be
  3                                     StaleLease: another worker holds the message, which is longer than a cell may be
2 of 3 items were refused and changed nothing; the rest is committed 2026-02-01T03:00:00.000Z at position 12 in default/main/main/k%2F1 (disk), command 0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e
next for item 2, 3: repeating it cannot help: drop it
`)
	equal(t, printed(t, &api.QueuesCompleteResponse{Receipt: receipt, Results: []api.CompleteResult{no}}, true), `
results: 1
  item  error
  1     StaleLease: another worker holds the message, which is longer than a cell may be
nothing changed: 1 of 1 items was refused
next for item 1: repeating it cannot help: drop it
`)
	equal(t, printed(t, &api.QueuesCompleteResponse{Receipt: receipt, Results: []api.CompleteResult{ok}}, true), `
results: 1
  messageId  state  stateVersion
  m-1        acked  3
committed 2026-02-01T03:00:00.000Z at position 12 in default/main/main/k%2F1 (disk), command 0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e
`)
}

func TestAListOfResourcesFitsALineOf100Characters(t *testing.T) {
	name := strings.Repeat("n", 24)
	page := &api.ResourcesListResponse{Resources: []api.Resource{
		{Tenant: "default", Database: "main", Name: name, Domain: "main", Kind: api.KindQueue, ID: 7, Version: 12, Paused: true, Deleting: true, Queue: &api.QueuePolicy{}, CreatedAt: 1, UpdatedAt: 1769914800000},
		{Tenant: "default", Database: "main", Name: "c", Domain: "main", Kind: api.KindCollection, ID: 8, Version: 1, Collection: &api.CollectionPolicy{}, CreatedAt: 1, UpdatedAt: 1769914800000},
	}}
	out := printed(t, page, false)
	equal(t, out, `
resources: 2 (--json shows every field)
  name                      domain  kind        paused  version  updatedAt                 deleting
  nnnnnnnnnnnnnnnnnnnnnnnn  main    queue       true    12       2026-02-01T03:00:00.000Z  true
  c                         main    collection  false   1        2026-02-01T03:00:00.000Z  false
`)
	for line := range strings.SplitSeq(out, "\n") {
		if len(line) > 100 {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
}

func TestTheColumnsOfATableAreFieldsOfItsStructure(t *testing.T) {
	for _, of := range []any{api.Resource{}, api.MessageInfo{}, api.Principal{}, api.APIKey{}, api.ShardStatus{}, api.GroupInfo{}, api.WindowRow{}, api.DeadLetter{}} {
		typ := reflect.TypeOf(of)
		if columnsOf(typ) == nil {
			t.Errorf("%s has no columns of its own", typ)
		}
		var names []string
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
		for _, c := range columnsOf(typ) {
			if !slices.Contains(names, c) {
				t.Errorf("%s has no field %s", typ, c)
			}
		}
	}
}

func TestAZeroIsShownWhereItSaysSomething(t *testing.T) {
	equal(t, printed(t, &api.AdminStatusResponse{Shards: []api.ShardStatus{{Shard: 0, Position: 3}, {Shard: 1}}}, true)[len("version       \n"):], `
incarnation   
format        0
durability    
startedAt     1970-01-01T00:00:00.000Z
uptimeMillis  0
ready         false
storedBytes   0
shards: 2 (--json shows every field)
  shard  catalog  position  durablePosition  loggedTime  failure
  0      false    3         0
  1      false    0         0
`)
}

func TestAColumnThatWasChosenIsShownThoughAllOfItIsZero(t *testing.T) {
	equal(t, printed(t, &api.SubscriptionsListResponse{Groups: []api.GroupInfo{{Group: "audit"}, {Group: "billing"}}}, true), `
examined  0 records, 0 bytes
groups: 2 (--json shows every field)
  group    checkpoint  tail  lag  paused  deadLetters  pinnedBytes
  audit    0           0     0    false   0            0
  billing  0           0     0    false   0            0
`)
}

func TestThatNothingChangedIsSaid(t *testing.T) {
	for changed, want := range map[bool]string{false: "changed  false\n", true: "changed  true\n"} {
		out := printed(t, &api.SubscriptionsResumeResponse{Receipt: receipt, State: api.GroupState{Generation: 1}, Changed: changed}, false)
		if !strings.HasPrefix(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestNestedNumbersStandUnderTheirHeading(t *testing.T) {
	out := printed(t, &api.QueuesStatusResponse{Counts: api.QueueCounts{Ready: 3}, Policy: api.QueuePolicy{Retry: api.RetryPolicy{Factor: 2}}, Paused: true}, true)
	for _, want := range []string{"paused ", "counts\n  scheduled          0\n  ready              3\n", "policy\n", "  retry\n    "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
