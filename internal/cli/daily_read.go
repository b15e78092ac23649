package cli

import (
	"fmt"
	"strings"

	"github.com/keyload/keyload/api"
)

type createCmd struct {
	Kind     string   `arg:"" help:"collection, stream-set, topic or queue"`
	Name     string   `arg:"" help:"its name"`
	Tenant   nonEmpty `placeholder:"NAME" help:"tenant it belongs to (default default)"`
	Database nonEmpty `placeholder:"NAME" help:"database it belongs to (default main)"`
	Domain   nonEmpty `placeholder:"NAME" help:"transaction domain: the resources that may commit together (default main)"`
	Index    []string `placeholder:"POINTER" sep:"none" help:"of a collection: a field to find documents by, as a JSON pointer such as /customer; commas join the fields of one index"`
	Attempts *string  `placeholder:"N" help:"of a queue: claims before a message becomes a dead letter (default 5)"`
}

// Help is the example.
func (*createCmd) Help() string {
	return "Every policy can be set with \"keyload resources configure\". For example:\n\n" +
		"    keyload create collection orders --index /customer\n    keyload create queue emails --attempts 3"
}

// Run configures the resource.
func (c *createCmd) Run(s *session) error {
	request := &api.ResourcesConfigureRequest{
		Tenant: string(c.Tenant), Database: string(c.Database), Domain: string(c.Domain), Name: c.Name, Kind: api.ResourceKind(c.Kind),
	}
	if c.Kind == "stream-set" {
		request.Kind = api.KindStreamSet
	}
	if len(c.Index) > 0 {
		request.Collection = &api.CollectionPolicy{Indexes: indexes(c.Index)}
	}
	s.flags = []flag{
		{name: "index", pointer: "/collection"}, {name: "attempts", pointer: "/queue"},
		{name: "tenant", pointer: "/tenant"}, {name: "database", pointer: "/database"}, {name: "domain", pointer: "/domain"},
	}
	attempts := short{name: "attempts", pointer: "/queue/maxAttempts", text: c.Attempts}
	if err := s.fill(api.ResourcesConfigure.Operation, request, attempts); err != nil {
		return err
	}
	response, err := call(s, api.ResourcesConfigure, request)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.showJSON(response)
	}
	what := "was there already, the same"
	if response.Created {
		what = "created"
	}
	_, err = fmt.Fprintf(s.streams.Out, "%s %s: %s (version %d)\n", c.Kind, c.Name, what, response.Resource.Version)
	return err
}

// indexes names each index after its fields.
func indexes(texts []string) []api.IndexDefinition {
	out := make([]api.IndexDefinition, len(texts))
	for i, t := range texts {
		paths := strings.Split(t, ",")
		name := strings.ReplaceAll(strings.Trim(strings.Join(paths, ""), "/"), "/", "-")
		out[i] = api.IndexDefinition{Name: name, Paths: paths}
	}
	return out
}

type getCmd struct {
	Collection string `arg:"" help:"name of the collection"`
	ID         string `arg:"" help:"id of the document"`
	within
}

// Help is the example.
func (*getCmd) Help() string { return "For example:\n\n    keyload get orders o-1" }

// Run reads the document.
func (c *getCmd) Run(s *session) error {
	p, err := c.ref()
	if err != nil {
		return err
	}
	response, err := call(s, api.DocumentsGet, &api.DocumentsGetRequest{Partition: p, Collection: c.Collection, ID: c.ID})
	if err != nil {
		return err
	}
	return s.show(response)
}

type receiveCmd struct {
	Queue string  `arg:"" help:"name of the queue"`
	Max   *string `placeholder:"N" help:"most messages to claim, 1 to 256 (default 1)"`
	Lease *string `placeholder:"LENGTH" help:"how long they are yours (default 30s)"`
	Wait  *string `placeholder:"LENGTH" help:"how long to wait for the first one, up to 20s (default 0s)"`
	once
}

// Help is the example.
func (*receiveCmd) Help() string {
	return "Another worker may get a message when its lease has ended. For example:\n\n" +
		"    keyload receive emails --wait 20s\n    keyload ack emails TOKEN"
}

// Run claims messages.
func (c *receiveCmd) Run(s *session) error {
	lane, err := c.lane(c.Queue)
	if err != nil {
		return err
	}
	request := &api.QueuesReceiveRequest{RequestID: string(c.CommandID), Lane: lane}
	err = s.fill(api.QueuesReceive.Operation, request,
		short{name: "max", pointer: "/maxMessages", text: c.Max},
		short{name: "lease", pointer: "/leaseSeconds", unit: "s", text: c.Lease},
		short{name: "wait", pointer: "/waitMillis", unit: "ms", text: c.Wait})
	if err != nil {
		return err
	}
	response, err := call(s, api.QueuesReceive, request)
	if err != nil {
		return err
	}
	return s.show(response)
}

func (w *within) lane(queue string) (api.LaneRef, error) {
	p, err := w.ref()
	return api.LaneRef{Partition: p, Queue: queue}, err
}

// finished is the arguments of the commands that end deliveries.
type finished struct {
	Queue  string   `arg:"" help:"name of the queue"`
	Tokens []string `arg:"" name:"token" help:"token of each delivery, as receive showed it"`
	once
}

// complete does the same with every delivery.
func (s *session) complete(f finished, item api.CompleteItem) error {
	lane, err := f.lane(f.Queue)
	if err != nil {
		return err
	}
	request := &api.QueuesCompleteRequest{CommandID: string(f.CommandID), Lane: lane}
	for _, t := range f.Tokens {
		item.Token = t
		request.Items = append(request.Items, item)
	}
	response, err := call(s, api.QueuesComplete, request)
	if err != nil {
		return err
	}
	return s.show(response)
}

type ackCmd struct {
	finished
}

// Help is the example.
func (*ackCmd) Help() string {
	return "Exits with 7 when a lease was replaced or has ended: then the message is not finished. For example:\n\n    keyload ack emails TOKEN"
}

// Run acknowledges the deliveries.
func (c *ackCmd) Run(s *session) error {
	return s.complete(c.finished, api.CompleteItem{Action: api.ActionAck})
}

type nackCmd struct {
	finished
	Delay   *string `placeholder:"LENGTH" help:"wait before the next attempt; by the queue's retry policy when absent"`
	Failure string  `placeholder:"TEXT" help:"why, for people"`
	Dead    bool    `help:"make it a dead letter at once"`
}

// Help is the example.
func (*nackCmd) Help() string {
	return "For example:\n\n    keyload nack emails TOKEN --failure 'mail server is down' --delay 5m"
}

// Run gives the deliveries back.
func (c *nackCmd) Run(s *session) error {
	item := api.CompleteItem{Action: api.ActionNack, Failure: c.Failure, Terminal: c.Dead}
	if c.Delay != nil {
		ms, err := span("ms", *c.Delay)
		if err != nil {
			return &badUsage{text: "--delay " + err.Error()}
		}
		item.DelayMillis = &ms
	}
	return s.complete(c.finished, item)
}
