package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// tailWaitMillis is how long one read of tail waits: the longest allowed.
const tailWaitMillis = 20_000

type tailCmd struct {
	Topic     string  `arg:"" optional:"" help:"name of the topic"`
	StreamSet string  `name:"stream-set" placeholder:"NAME" help:"follow a stream of this stream set instead of a topic"`
	StreamID  string  `name:"stream-id" placeholder:"ID" help:"id of the stream"`
	After     *uint64 `placeholder:"POSITION" help:"begin after this position; 0 is the first one. Without it, at the first event that is retained"`
	Once      bool    `help:"end at the last event instead of waiting for more"`
	within
}

// Help is the example.
func (*tailCmd) Help() string {
	return "Writes one line for each event, with --json one object. For example:\n\n" +
		"    keyload tail orders-placed\n    keyload tail --stream-set history --stream-id o-1 --once --json"
}

// Run writes events until it is interrupted.
func (c *tailCmd) Run(s *session) error {
	source, err := c.source()
	if err != nil {
		return err
	}
	d, closeStore, err := s.open()
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }() // reads leave nothing to lose
	request := &api.EventsReadRequest{Source: source}
	if c.After != nil {
		request.AfterPosition = *c.After
	}
	s.request, s.flags = request, []flag{{name: "after", pointer: "/afterPosition"}}
	if !c.Once {
		request.WaitMillis = tailWaitMillis
	}
	for {
		page, err := api.Call(s.ctx, d, api.EventsRead, request)
		if c.After == nil && request.Cursor == "" && s.skipPurged(request, err) {
			continue
		}
		if err != nil {
			return err
		}
		for i := range page.Events {
			if err := s.showEvent(&page.Events[i]); err != nil {
				return err
			}
		}
		if c.Once && len(page.Events) == 0 {
			return nil
		}
		request.AfterPosition, request.Cursor = 0, page.Cursor
	}
}

// skipPurged lets a read that nobody gave a beginning begin at the first retained
// event, and says so.
func (s *session) skipPurged(request *api.EventsReadRequest, err error) bool {
	e := fault.From(err)
	if e == nil || e.Code != fault.HistoryUnavailable {
		return false
	}
	after, parseErr := strconv.ParseUint(e.Facts["afterPosition"], 10, 64)
	if parseErr != nil || after <= request.AfterPosition {
		return false
	}
	request.AfterPosition = after
	fmt.Fprintf(s.streams.Err, "keyload: the events up to position %d are no longer retained; beginning at position %d\n", after, after+1)
	return true
}

func (c *tailCmd) source() (api.SourceRef, error) {
	p, err := c.ref()
	if err != nil {
		return api.SourceRef{}, err
	}
	switch {
	case c.Topic != "" && c.StreamSet == "" && c.StreamID == "":
		return api.SourceRef{Partition: p, Resource: c.Topic, Kind: api.SourceTopic}, nil
	case c.Topic == "" && c.StreamSet != "" && c.StreamID != "":
		return api.SourceRef{Partition: p, Resource: c.StreamSet, Kind: api.SourceStream, StreamID: c.StreamID}, nil
	}
	return api.SourceRef{}, &badUsage{text: "name a topic, or both --stream-set and --stream-id"}
}

// showEvent writes one event on one line.
func (s *session) showEvent(e *api.StoredEvent) error {
	if s.JSON {
		return s.showJSON(e)
	}
	content := string(e.Payload)
	if e.PayloadBase64 != nil || e.Payload == nil {
		content = fmt.Sprintf("%d bytes of %s", len(e.PayloadBase64), e.ContentType)
	}
	line := []string{fmt.Sprint(e.Position), e.PublishedAt.String(), e.Type, e.EventID, content}
	if len(e.Headers) > 0 {
		line = append(line, pairs(e.Headers))
	}
	_, err := fmt.Fprintln(s.streams.Out, strings.Join(line, "  "))
	return err
}
