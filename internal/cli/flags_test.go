package cli

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
)

func TestEveryFieldOfEveryRequestHasAFlagOrLiesInsideOne(t *testing.T) {
	for _, o := range operations() {
		for _, pointer := range leaves(o.op.Request, "") {
			covered := slices.ContainsFunc(o.flags, func(f flag) bool {
				return pointer == f.pointer || strings.HasPrefix(pointer, f.pointer+"/")
			})
			// The kind of a source follows from the name of its flag.
			if !covered && !strings.HasSuffix(pointer, "/source/kind") {
				t.Errorf("%s: no flag sets %s", o.op.Name, pointer)
			}
		}
	}
}

// leaves are the JSON pointers of all plain fields of a type, through
// structures.
func leaves(t reflect.Type, at string) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return []string{at}
	}
	var out []string
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" {
			out = append(out, leaves(t.Field(i).Type, at+"/"+name)...)
		}
	}
	return out
}

func TestFlagsOfOneCommandHaveDifferentNamesAndSayWhatTheyAreFor(t *testing.T) {
	for _, o := range operations() {
		seen := map[string]bool{"request": true, "json": true, "dir": true, "url": true, "api-key": true, "as": true, "help": true}
		for _, f := range o.flags {
			if seen[f.name] {
				t.Errorf("%s has two flags --%s", o.op.Name, f.name)
			}
			seen[f.name] = true
			if strings.TrimSpace(f.help()) == "" {
				t.Errorf("%s --%s has no help", o.op.Name, f.name)
			}
		}
	}
}

func TestEveryAreaOfOperationsIsDescribed(t *testing.T) {
	for _, b := range branches(operations()) {
		if areaHelp(b.word) == "" {
			t.Errorf("areaHelp has no line for %q", b.word)
		}
	}
}

// words takes a command line apart as a shell does, as far as the examples need
// it: single quotes and blanks.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}

// built parses a command line of an operation and builds its request.
func built(t *testing.T, line string) (any, error) {
	t.Helper()
	var p program
	parser, byWords, err := newParser(&p, operations(), Streams{Out: t.Output(), Err: t.Output()}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	selected, err := parser.Parse(words(line)[1:])
	if err != nil {
		return nil, err
	}
	o := byWords[commandWords(selected.Selected())]
	if o == nil {
		t.Fatalf("%q is no operation", line)
	}
	in, err := o.typedIn(selected.Selected().Target)
	if err != nil {
		return nil, err
	}
	return reading().build(o.op, o.flags, in)
}

func TestEveryExampleInTheHelpIsAValidRequest(t *testing.T) {
	for _, o := range operations() {
		line := example(o.op.Name)
		if !strings.HasPrefix(line, "keyload "+wordsLine(o.op)) {
			t.Errorf("%s: the example is %q", o.op.Name, line)
			continue
		}
		request, err := built(t, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if reflect.TypeOf(request) != reflect.PointerTo(o.op.Request) && err == nil {
			t.Errorf("%s: built a %T", line, request)
		}
	}
}

func TestFlagsReachTheirPlaceInTheRequest(t *testing.T) {
	const id = "0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e"
	for _, c := range []struct{ line, want string }{
		{
			"keyload queues receive --command-id " + id + " --queue jobs --partition acme/shop --max-messages 10 --wait-millis 20s",
			`{"requestId":"` + id + `","lane":{"partition":{"tenant":"acme","database":"shop","domain":"main","key":"main"},"queue":"jobs"},"maxMessages":10,"maxBytes":1048576,"leaseSeconds":30,"waitMillis":20000}`,
		},
		{
			"keyload events read --stream-set s --stream-id i --after-position 7",
			`{"source":{"partition":{"tenant":"default","database":"main","domain":"main","key":"main"},"resource":"s","kind":"stream","streamId":"i","generation":1},"afterPosition":7,"limit":100,"maxBytes":1048576}`,
		},
		{
			"keyload principals configure --command-id " + id + " --id w --roles worker,reader --roles producer --expires-at +1d --policy-epoch 2 --grants '{\"database\":\"*\",\"resource\":\"jobs\",\"capabilities\":[\"*\"]}'",
			`{"commandId":"` + id + `","principal":{"id":"w","tenant":"default","roles":["worker","reader","producer"],"grants":[{"database":"*","resource":"jobs","capabilities":["*"]}],"expiresAt":"2026-02-02T03:04:05.000Z","policyEpoch":2}}`,
		},
		{
			"keyload documents query --collection c --where '[{\"path\":\"/a\",\"value\":1}]' --where '{\"path\":\"/b\",\"op\":\"lt\",\"value\":9007199254740993}' --descending",
			`{"partition":{"tenant":"default","database":"main","domain":"main","key":"main"},"collection":"c","where":[{"path":"/a","op":"eq","value":1},{"path":"/b","op":"lt","value":9007199254740993}],"descending":true,"limit":100,"maxBytes":1048576}`,
		},
		{
			"keyload documents list --request '{\"collection\":\"c\",\"limit\":5}' --limit 6 --prefix o-",
			`{"partition":{"tenant":"default","database":"main","domain":"main","key":"main"},"collection":"c","prefix":"o-","limit":6,"maxBytes":1048576}`,
		},
	} {
		request, err := built(t, c.line)
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		got, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.line, got, c.want)
		}
	}
}

func TestAPolicyIsSetNumberByNumberAndTakesDefaultsForTheRest(t *testing.T) {
	request, err := built(t, "keyload resources configure --name jobs --kind queue --queue.max-attempts 3 --queue.retry.base-millis 5s")
	if err != nil {
		t.Fatal(err)
	}
	q := request.(*api.ResourcesConfigureRequest).Queue
	if q.MaxAttempts != 3 || q.Retry.BaseMillis != 5000 || q.Retry.Factor != 2 || q.MaxMessages != 1_000_000 {
		t.Errorf("policy is %+v", *q)
	}
}

func TestThePartsOfAGroupsPolicyKeepTheirNames(t *testing.T) {
	request, err := built(t, "keyload subscriptions configure prices audit --max-attempts 3 --retry.base-millis 5s --dead-letter.max-events 7 --dead-letter.max-bytes 8")
	if err != nil {
		t.Fatal(err)
	}
	p := request.(*api.SubscriptionsConfigureRequest).Definition.Policy
	if p.MaxAttempts != 3 || p.Retry.BaseMillis != 5000 || p.DeadLetter != (api.GroupDeadLetters{MaxEvents: 7, MaxBytes: 8}) {
		t.Errorf("policy is %+v", p)
	}
	for _, flag := range []string{"--max-events", "--max-bytes", "--base-millis", "--factor"} {
		if _, err := built(t, "keyload subscriptions configure prices audit "+flag+" 1"); err == nil || !strings.Contains(err.Error(), "unknown flag "+flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestWhatARequestCannotDoWithoutMayBeTypedWithoutItsFlag(t *testing.T) {
	for line, flagged := range map[string]string{
		"keyload queues status jobs":                              "keyload queues status --queue jobs",
		"keyload queues explain jobs m-1":                         "keyload queues explain --queue jobs --message-id m-1",
		"keyload queues explain jobs --message-id m-1":            "keyload queues explain --queue jobs --message-id m-1",
		"keyload queues list jobs --state ready":                  "keyload queues list --queue jobs --state ready",
		"keyload documents get --partition a/b orders o-1":        "keyload documents get --collection orders --id o-1 --partition a/b",
		"keyload streams read history o-1":                        "keyload streams read --stream-set history --stream-id o-1",
		"keyload events read placed":                              "keyload events read --topic placed",
		"keyload resources get emails":                            "keyload resources get --name emails",
		"keyload principals get mailer":                           "keyload principals get --id mailer",
		"keyload cluster replace 2 4 four:7601":                   "keyload cluster replace --node-id 2 --by 4 --address four:7601",
		"keyload cluster transfer 1 3":                            "keyload cluster transfer --shard 1 --node-id 3",
		"keyload cluster drain 2":                                 "keyload cluster drain 2 --off=false",
		"keyload cluster drain 2 --off":                           "keyload cluster drain --request '{\"nodeId\":2,\"draining\":false}'",
		"keyload cluster drain --request '{\"nodeId\":2}'":        "keyload cluster drain 2",
		"keyload documents list --request '{\"limit\":5}' orders": "keyload documents list --collection orders --limit 5",
	} {
		got, err := built(t, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		want, err := built(t, flagged)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []any{got, want} { // each has an id of its own
			if c, ok := r.(api.CommandRequest); ok {
				c.SetCommandID("")
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %+v\nwant %+v", line, got, want)
		}
	}
}

func TestEveryOperationOnOneThingTakesItsNameAsTheFirstArgument(t *testing.T) {
	none := []string{"commands.commit", "resources.list", "principals.list", "api-keys.list", "admin.status", "admin.check", "admin.restore-status", "cluster.status", "queues.receive-across-lanes"}
	for _, o := range operations() {
		if args := o.arguments(); (len(args) == 0) != slices.Contains(none, o.op.Name) {
			t.Errorf("%s takes %d arguments", o.op.Name, len(args))
		}
		if o.op.Area() == "queues" && len(o.arguments()) > 0 && o.arguments()[0].name != "queue" {
			t.Errorf("the first argument of %s is %s", o.op.Name, o.arguments()[0].name)
		}
	}
}

func TestAZeroThatWasTypedIsNeverTakenForAbsent(t *testing.T) {
	// Here it says the same as saying nothing.
	same := []string{"/afterPosition", "/waitMillis", "/shard"}
	for _, o := range operations() {
		for _, f := range o.flags {
			if f.shape != shapeNumber {
				continue
			}
			request := reflect.New(o.op.Request).Elem()
			err := reading().set(&f, request, []string{"0"})
			kept := f.required || settle(request, f.index).Kind() == reflect.Pointer
			if err == nil && !kept && !slices.Contains(same, f.pointer) {
				t.Errorf("%s --%s 0 counts as absent", o.op.Name, f.name)
			}
		}
	}
}

func TestAWrongCommandLineNamesTheFlagAndSaysWhatIsAllowed(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"keyload queues receive", "--queue is required"},
		{"keyload queues receive --queue jobs --max-messages 0", "--max-messages must be at least 1"},
		{"keyload queues receive --queue jobs --max-messages 257", "--max-messages must be at most 256"},
		{"keyload queues receive --queue jobs --max-messages ten", "--max-messages must be a whole number"},
		{"keyload queues receive --queue jobs --max-messages=-1", "--max-messages must not be negative"},
		{"keyload queues receive --queue jobs --max-messages 99999999999999999999", "--max-messages must be at most 9223372036854775807"},
		{"keyload queues receive --queue jobs --wait-millis 20001ms", "--wait-millis must be at most 20000"},
		{"keyload queues receive --queue jobs --lease-seconds 1500ms", "--lease-seconds must be a whole number, or a length of time such as 90s, 5m or 2h"},
		{"keyload queues receive --queue jobs --command-id 7", "--command-id must be a UUID"},
		{"keyload queues receive --queue jobs --partition a/b/c/d/e", "--partition has 5 parts"},
		{"keyload queues complete --queue jobs --items '{\"token\":\"t\",\"action\":\"eat\"}'", "--items (at /0/action) must be one of ack"},
		{"keyload queues complete --queue jobs --items '{\"tokn\":\"t\"}'", "--items (at /tokn) is not a field here"},
		{"keyload queues complete --queue jobs --items '[1'", "--items is not valid JSON"},
		{"keyload queues redrive --queue jobs --message-id m --not-before tomorrow", "--not-before must be an instant such as"},
		{"keyload queues receive --queue ''", "--queue must not be empty"},
		{"keyload queues receive --queue jobs --command-id ''", "--command-id must not be empty"},
		{"keyload queues list --queue jobs --state ''", "--state must not be empty"},
		{"keyload queues status jobs --queue jobs", "--queue is given twice"},
		{"keyload queues status jobs more", "unexpected argument more"},
		{"keyload subscriptions resume prices audit --generation 2", "--expected-generation is required; --generation is that of the source, not of the group"},
		{"keyload resources delete jobs --expected-version 0", "--expected-version must be at least 1"},
		{"keyload resources configure jobs queue --queue.max-attempts 0", "--queue.max-attempts must be at least 1"},
		{"keyload resources configure jobs queue --queue-policy '{\"maxAttempts\":0}'", "--queue-policy (at /maxAttempts) must be at least 1"},
		{"keyload resources configure jobs queue --queue-policy '{\"retry\":{\"factor\":0}}'", "--queue-policy (at /retry/factor) must be at least 1"},
		{"keyload resources configure jobs queue --queue.max-attempts 1001", "--queue.max-attempts must be at most 1000"},
		{"keyload api-keys create mailer --expires-at 1970-01-01T00:00:00Z", "--expires-at must be after 1970"},
		{"keyload events read", "--topic or --stream-set is required"},
		{"keyload events read --topic t --stream-set s", "--topic and --stream-set cannot be given together"},
		{"keyload documents get --collection c --id i --request '{\"colection\":\"x\"}'", "colection is not a field here"},
		{"keyload documents list --collection c --limit 5 --request -", "is empty"},
		{"keyload commands commit --mutations '[{\"kind\":\"enqueue\",\"queue\":\"q\",\"message\":{}}]'", "--mutations (at /0/message/payload) is required"},
	} {
		_, err := built(t, c.line)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.line, err, c.want)
		}
	}
}
