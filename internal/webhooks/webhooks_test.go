package webhooks

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestTheDataHasTheDeliveriesItSays(t *testing.T) {
	all, err := Deliveries()
	if err != nil {
		t.Fatal(err)
	}
	events, hello, none, noAction, size := map[string]bool{}, 0, 0, 0, 0
	for i, d := range all {
		if d.Event == "" {
			t.Errorf("delivery %d has no event name", i+1)
		}
		events[d.Event] = true
		size += len(d.Payload)
		var body struct {
			Action     *string
			Repository *struct {
				FullName string `json:"full_name"`
			}
		}
		if err := json.Unmarshal(d.Payload, &body); err != nil {
			t.Fatalf("delivery %d: %v", i+1, err)
		}
		switch {
		case d.Repository == nil:
			none++
		case body.Repository == nil || body.Repository.FullName != *d.Repository:
			t.Errorf("delivery %d is of %s, its payload says otherwise", i+1, *d.Repository)
		case *d.Repository == "Codertocat/Hello-World":
			hello++
		}
		if d.Action == nil {
			noAction++
		} else if body.Action == nil || *body.Action != *d.Action {
			t.Errorf("delivery %d has action %s, its payload says otherwise", i+1, *d.Action)
		}
	}
	if len(all) != 329 || len(events) != 58 || hello != 230 || none != 49 {
		t.Errorf("%d deliveries, %d event types, %d of Codertocat/Hello-World, %d without a repository; want 329, 58, 230, 49",
			len(all), len(events), hello, none)
	}
	if size < 3_000_000 || noAction == 0 || noAction == len(all) {
		t.Errorf("%d bytes of payloads, %d without an action", size, noAction)
	}
}

func TestTheOrderIsThatOfTheFile(t *testing.T) {
	all, err := Deliveries()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Deliveries()
	if err != nil {
		t.Fatal(err)
	}
	if all[0].Event != "branch_protection_rule" || *all[0].Action != "edited" || *all[0].Repository != "octo-org/octo-repo" {
		t.Errorf("the first delivery is %s %s", all[0].Event, *all[0].Action)
	}
	for i := range all {
		if all[i].Event != again[i].Event || !bytes.Equal(all[i].Payload, again[i].Payload) {
			t.Fatalf("delivery %d differs between two reads", i+1)
		}
	}
	clear(again[0].Payload)
	if bytes.Equal(all[0].Payload, again[0].Payload) {
		t.Error("two reads share their bytes")
	}
}

func TestDamagedDataIsAnError(t *testing.T) {
	flipped := bytes.Clone(packed)
	flipped[len(flipped)-5] ^= 1 // in the checksum
	for name, gz := range map[string][]byte{
		"empty": nil, "cut": packed[:len(packed)/2], "checksum": flipped, "not gzip": []byte("{}\n"),
	} {
		if got, err := read(gz); err == nil {
			t.Errorf("%s: read %d deliveries without an error", name, len(got))
		}
	}
}

func TestTheLicenceGoesWithTheData(t *testing.T) {
	for _, part := range []string{"@octokit/webhooks-examples", "7.6.1", "Copyright (c) 2018 Gregor Martynus", "WITHOUT WARRANTY OF ANY KIND"} {
		if !strings.Contains(Attribution, part) {
			t.Errorf("the attribution lacks %q", part)
		}
	}
}
