package cli

import (
	"github.com/keyload/keyload/api"
)

// place is what deliveries come from: a queue, or a group on a topic. Groups on
// streams have their own commands.
type place struct {
	Queue string   `arg:"" help:"name of the queue; with --group, of the topic"`
	Group nonEmpty `placeholder:"NAME" help:"the subscription group of the topic"`
	once
}

func (p *place) lane() (api.LaneRef, error) {
	at, err := p.ref()
	return api.LaneRef{Partition: at, Queue: p.Queue}, err
}

func (p *place) groupRef() (api.GroupRef, error) {
	at, err := p.ref()
	source := api.SourceRef{Partition: at, Resource: p.Queue, Kind: api.SourceTopic}
	return api.GroupRef{Source: source, Group: string(p.Group)}, err
}

type receiveCmd struct {
	place
	Max   *string `placeholder:"N" help:"most deliveries to claim, 1 to 256 (default 1)"`
	Lease *string `placeholder:"LENGTH" help:"how long they are yours (default 30s)"`
	Wait  *string `placeholder:"LENGTH" help:"how long to wait for the first one, up to 20s (default 0s)"`
}

// Help is the example.
func (*receiveCmd) Help() string {
	return "Another worker may get a delivery when its lease has ended. For example:\n\n" +
		"    keyload receive emails --wait 20s\n    keyload ack emails TOKEN\n\n" +
		"or, of a subscription group (keyload subscriptions configure makes it):\n\n" +
		"    keyload receive orders-placed --group billing --max 10\n    keyload ack orders-placed --group billing TOKEN"
}

// Run claims deliveries.
func (c *receiveCmd) Run(s *session) error {
	if c.Group != "" {
		ref, err := c.groupRef()
		if err != nil {
			return err
		}
		request := &api.SubscriptionsReceiveRequest{RequestID: string(c.CommandID), Group: ref}
		return answer(s, api.SubscriptionsReceive, request, c.shorts("/maxEvents")...)
	}
	lane, err := c.lane()
	if err != nil {
		return err
	}
	request := &api.QueuesReceiveRequest{RequestID: string(c.CommandID), Lane: lane}
	return answer(s, api.QueuesReceive, request, c.shorts("/maxMessages")...)
}

func (c *receiveCmd) shorts(most string) []short {
	return []short{
		{name: "max", pointer: most, text: c.Max},
		{name: "lease", pointer: "/leaseSeconds", unit: "s", text: c.Lease},
		{name: "wait", pointer: "/waitMillis", unit: "ms", text: c.Wait},
	}
}

// answer fills in the short flags, sends the request and shows the answer.
func answer[Req, Resp any](s *session, op api.Op[Req, Resp], request *Req, shorts ...short) error {
	if err := s.fill(op.Operation, request, shorts...); err != nil {
		return err
	}
	response, err := call(s, op, request)
	if err != nil {
		return err
	}
	return s.show(response)
}

// finished is the arguments of the commands that end deliveries.
type finished struct {
	place
	Tokens []string `arg:"" name:"token" help:"token of each delivery, as receive showed it"`
}

// complete does the same with every delivery.
func (s *session) complete(f *finished, item api.CompleteItem) error {
	items := make([]api.CompleteItem, len(f.Tokens))
	for i, t := range f.Tokens {
		item.Token = t
		items[i] = item
	}
	if f.Group != "" {
		ref, err := f.groupRef()
		if err != nil {
			return err
		}
		return answer(s, api.SubscriptionsComplete, &api.SubscriptionsCompleteRequest{CommandID: string(f.CommandID), Group: ref, Items: items})
	}
	lane, err := f.lane()
	if err != nil {
		return err
	}
	return answer(s, api.QueuesComplete, &api.QueuesCompleteRequest{CommandID: string(f.CommandID), Lane: lane, Items: items})
}

type ackCmd struct {
	finished
}

// Help is the example.
func (*ackCmd) Help() string {
	return "Exits with 7 when a lease was replaced or has ended; the answer says whether the delivery goes to another worker " +
		"or is finished all the same. One of a group that is finished already exits with 5. For example:\n\n" +
		"    keyload ack emails TOKEN\n    keyload ack orders-placed --group billing TOKEN"
}

// Run acknowledges the deliveries.
func (c *ackCmd) Run(s *session) error {
	return s.complete(&c.finished, api.CompleteItem{Action: api.ActionAck})
}

type nackCmd struct {
	finished
	Delay   *string `placeholder:"LENGTH" help:"wait before the next attempt; by the retry policy when absent"`
	Failure string  `placeholder:"TEXT" help:"why, for people"`
	Dead    bool    `help:"end its attempts at once: a dead letter, or what the group's policy says"`
}

// Help is the example.
func (*nackCmd) Help() string {
	return "For example:\n\n    keyload nack emails TOKEN --failure 'mail server is down' --delay 5m\n" +
		"    keyload nack orders-placed --group billing TOKEN --dead"
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
	return s.complete(&c.finished, item)
}
