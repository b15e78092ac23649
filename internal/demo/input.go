package demo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/webhooks"
)

// The resources of the demo, all in one partition.
const (
	repositories  = "repositories" // collection: deliveries of a repository by event
	history       = "history"      // stream set: a stream of deliveries per repository
	topic         = "webhooks"     // topic: every delivery
	queue         = "notify"       // queue: a message for each delivery that somebody should hear of
	notified      = "notified"     // collection: effect of a message, one document each
	totals        = "totals"       // collection: effect of a message, counted
	totalsID      = "notifications"
	effects       = "effects" // stream set: effect of a message, one event each
	effectsStream = "notifications"
	effectType    = "Notified"
	handlerScope  = "notify"
)

// noRepository stands for the repository of a delivery that is about none.
const noRepository = "(none)"

// notifying are the events somebody should hear of.
var notifying = []string{"issues", "pull_request", "push", "release"}

// delivery is one webhook as the demo understands it.
type delivery struct {
	id         string // of its events and its message
	event      string
	eventType  string // event, or event.action
	repository string
	payload    api.JSON
	notice     *notice // nil when nobody needs to hear of it
}

// notice is the payload of a message.
type notice struct {
	Delivery   string `json:"delivery"`
	Repository string `json:"repository"`
	Event      string `json:"event"`
	Action     string `json:"action,omitempty"`
	Subject    string `json:"subject"`
}

// text is what the handler makes of a notice.
func (n *notice) text() string {
	return strings.Join(strings.Fields(n.Repository+": "+n.Event+" "+n.Action+": "+n.Subject), " ")
}

// readInput reads the deliveries in the order of the file.
func readInput() ([]delivery, error) {
	all, err := webhooks.Deliveries()
	if err != nil {
		return nil, err
	}
	out := make([]delivery, len(all))
	for i, w := range all {
		if out[i], err = understand(i, &w); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func understand(i int, w *webhooks.Delivery) (delivery, error) {
	d := delivery{id: fmt.Sprintf("delivery-%03d", i+1), event: w.Event, eventType: w.Event, repository: noRepository}
	if w.Repository != nil {
		d.repository = *w.Repository
	}
	action := ""
	if w.Action != nil {
		action = *w.Action
		d.eventType += "." + action
	}
	var text bytes.Buffer
	if err := json.Compact(&text, w.Payload); err != nil {
		return d, fmt.Errorf("delivery %d: %w", i+1, err)
	}
	d.payload = text.Bytes()
	if !slices.Contains(notifying, w.Event) {
		return d, nil
	}
	subject, err := subjectOf(w.Payload)
	if err != nil {
		return d, fmt.Errorf("delivery %d: %w", i+1, err)
	}
	d.notice = &notice{Delivery: d.id, Repository: d.repository, Event: w.Event, Action: action, Subject: subject}
	return d, nil
}

// subjectOf is the title of the issue or pull request, the tag of the release or
// the ref that was pushed to.
func subjectOf(payload []byte) (string, error) {
	var body struct {
		Issue       struct{ Title string }
		PullRequest struct{ Title string } `json:"pull_request"`
		Release     struct {
			TagName string `json:"tag_name"`
		}
		Ref string
	}
	err := json.Unmarshal(payload, &body)
	return body.Issue.Title + body.PullRequest.Title + body.Release.TagName + body.Ref, err
}

// messages counts the deliveries that make a message.
func messages(all []delivery) int {
	n := 0
	for _, d := range all {
		if d.notice != nil {
			n++
		}
	}
	return n
}

// digest names an event by its type and payload. Its id is no part: what is
// stored twice under two ids is still the same thing twice.
func digest(eventType string, payload []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s ", len(eventType), eventType)
	h.Write(payload)
	return hex.EncodeToString(h.Sum(nil))
}
