package cli

import (
	"reflect"
	"strings"

	"github.com/keyload/keyload/api"
)

// within is the flag of every daily command.
type within struct {
	Partition string `placeholder:"PARTITION" help:"partition to work in, tenant/database/domain/key; the parts default to default/main/main/main"`
}

func (w *within) ref() (api.PartitionRef, error) {
	p, err := api.ParsePartition(w.Partition)
	if err != nil {
		return p, &badUsage{text: valueText("--partition", err)}
	}
	return p, nil
}

// once is the flags of the daily commands that write.
type once struct {
	within
	CommandID nonEmpty `name:"command-id" placeholder:"UUID" help:"your stable identity of this call, to repeat it safely; made for you when absent"`
}

// commit sends changes as one batch and shows what they did.
func (s *session) commit(at once, changes ...api.Mutation) error {
	p, err := at.ref()
	if err != nil {
		return err
	}
	response, err := call(s, api.CommandsCommit, &api.CommandsCommitRequest{
		CommandID: string(at.CommandID), Partition: p, Mutations: changes,
	})
	if err != nil {
		return err
	}
	return s.show(response)
}

// payload reads a JSON argument.
func (s *session) payload(name, text string) (api.JSON, error) {
	v, err := s.json(text)
	if err != nil {
		return nil, &badUsage{text: name + " " + err.Error()}
	}
	return v, nil
}

// headers reads name=value texts.
func headers(texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, t := range texts {
		name, value, ok := strings.Cut(t, "=")
		if !ok || name == "" {
			return nil, &badUsage{text: "--header must be NAME=VALUE"}
		}
		out[name] = value
	}
	return out, nil
}

// moment reads a time flag of a daily command; nil is absent.
func (s *session) moment(name string, text *string) (api.Time, error) {
	if text == nil {
		return 0, nil
	}
	t, err := s.instant(*text)
	if err != nil {
		return 0, &badUsage{text: name + " " + err.Error()}
	}
	return t, nil
}

type putCmd struct {
	Collection string  `arg:"" help:"name of the collection"`
	ID         string  `arg:"" help:"id of the document"`
	Document   string  `arg:"" help:"the document: a JSON object, @file, or - for standard input"`
	Expect     *uint64 `placeholder:"REVISION" help:"revision the document must have; 0 means it must not exist"`
	once
}

// Help is the example.
func (*putCmd) Help() string {
	return "For example:\n\n    keyload put orders o-1 '{\"total\": 40}'\n    keyload put orders o-1 @order.json --expect 0"
}

// Run stores the document.
func (c *putCmd) Run(s *session) error {
	document, err := s.payload("DOCUMENT", c.Document)
	if err != nil {
		return err
	}
	return s.commit(c.once, api.Mutation{PutDocument: &api.PutDocument{
		Collection: c.Collection, ID: c.ID, Document: document, ExpectedRevision: c.Expect,
	}})
}

type deleteCmd struct {
	Collection string  `arg:"" help:"name of the collection"`
	ID         string  `arg:"" help:"id of the document"`
	Expect     *uint64 `placeholder:"REVISION" help:"revision the document must have"`
	once
}

// Help is the example.
func (*deleteCmd) Help() string { return "For example:\n\n    keyload delete orders o-1" }

// Run deletes the document.
func (c *deleteCmd) Run(s *session) error {
	return s.commit(c.once, api.Mutation{DeleteDocument: &api.DeleteDocument{
		Collection: c.Collection, ID: c.ID, ExpectedRevision: c.Expect,
	}})
}

// event is the arguments and flags of one event.
type event struct {
	Type    string   `arg:"" help:"what happened, for example OrderPlaced"`
	Payload string   `arg:"" help:"any JSON value, @file, or - for standard input"`
	EventID nonEmpty `name:"event-id" placeholder:"ID" help:"identity of the event, to store it once; made for you when absent"`
	Header  []string `placeholder:"NAME=VALUE" sep:"none" help:"a text that travels beside the payload; may be repeated"`
}

func (e *event) read(s *session) ([]api.Event, error) {
	payload, err := s.payload("PAYLOAD", e.Payload)
	if err != nil {
		return nil, err
	}
	h, err := headers(e.Header)
	return []api.Event{{EventID: string(e.EventID), Type: e.Type, Payload: payload, Headers: h}}, err
}

type appendCmd struct {
	StreamSet string `arg:"" help:"name of the stream set"`
	Stream    string `arg:"" help:"id of the stream"`
	event
	Expect *uint64 `placeholder:"POSITION" help:"last position the stream must have; 0 means it has no event yet"`
	once
}

// Help is the example.
func (*appendCmd) Help() string {
	return "For example:\n\n    keyload append history o-1 OrderPlaced '{\"total\": 40}' --expect 0"
}

// Run appends the event.
func (c *appendCmd) Run(s *session) error {
	events, err := c.read(s)
	if err != nil {
		return err
	}
	expected := api.ExpectAny()
	if c.Expect != nil {
		expected = api.ExpectExact(*c.Expect)
	}
	return s.commit(c.once, api.Mutation{AppendEvents: &api.AppendEvents{
		StreamSet: c.StreamSet, StreamID: c.Stream, Expected: expected, Events: events,
	}})
}

type publishCmd struct {
	Topic string `arg:"" help:"name of the topic"`
	event
	once
}

// Help is the example.
func (*publishCmd) Help() string {
	return "For example:\n\n    keyload publish orders-placed OrderPlaced '{\"order\": \"o-1\"}'"
}

// Run publishes the event.
func (c *publishCmd) Run(s *session) error {
	events, err := c.read(s)
	if err != nil {
		return err
	}
	return s.commit(c.once, api.Mutation{Publish: &api.Publish{Topic: c.Topic, Events: events}})
}

type enqueueCmd struct {
	Queue     string   `arg:"" help:"name of the queue"`
	Payload   string   `arg:"" help:"any JSON value, @file, or - for standard input"`
	MessageID nonEmpty `name:"message-id" placeholder:"ID" help:"identity of the message, to store it once; made for you when absent"`
	NotBefore *string  `placeholder:"TIME" help:"not delivered before this instant: 2026-01-31T12:00:00Z, or +30s from now"`
	ExpiresAt *string  `placeholder:"TIME" help:"not delivered from this instant on"`
	Priority  *int     `placeholder:"N" help:"0 is delivered first, 9 last (default 4)"`
	Header    []string `placeholder:"NAME=VALUE" sep:"none" help:"a text that travels beside the payload; may be repeated"`
	once
}

// Help is the example.
func (*enqueueCmd) Help() string {
	return "For example:\n\n    keyload enqueue emails '{\"order\": \"o-1\"}' --not-before +10m"
}

// Run enqueues the message.
func (c *enqueueCmd) Run(s *session) error {
	m := api.Message{MessageID: string(c.MessageID), Priority: c.Priority}
	var err error
	if m.Payload, err = s.payload("PAYLOAD", c.Payload); err != nil {
		return err
	}
	if m.Headers, err = headers(c.Header); err != nil {
		return err
	}
	if m.NotBefore, err = s.moment("--not-before", c.NotBefore); err != nil {
		return err
	}
	if m.ExpiresAt, err = s.moment("--expires-at", c.ExpiresAt); err != nil {
		return err
	}
	return s.commit(c.once, api.Mutation{Enqueue: &api.Enqueue{Queue: c.Queue, Message: m}})
}

type commitCmd struct {
	Changes string `arg:"" help:"a JSON array of mutations, @file, or - for standard input"`
	once
}

// Help is the example.
func (*commitCmd) Help() string {
	return `For example:

    keyload commit '[
      {"kind": "putDocument", "collection": "orders", "id": "o-1", "document": {"total": 40}},
      {"kind": "enqueue", "queue": "emails", "message": {"payload": {"order": "o-1"}}}]'`
}

// Run commits the batch.
func (c *commitCmd) Run(s *session) error {
	var changes []api.Mutation
	if err := s.setObjects(reflect.ValueOf(&changes).Elem(), []string{c.Changes}); err != nil {
		return &badUsage{text: valueText("CHANGES", err)}
	}
	return s.commit(c.once, changes...)
}
