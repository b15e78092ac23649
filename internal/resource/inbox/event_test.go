package inbox

import (
	"reflect"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// feed is a resource whose deliveries are events. Its acknowledgements are
// messages of the queue "in", so that a test sees each, and sees it undone.
const feed = 77

var feedProcess = api.Define[feedRequest, feedResponse](api.Operation{
	Name: "feed.process", Number: 9001, Kind: api.Command, Scope: api.PartitionScope,
})

type feedRequest struct {
	CommandID  string         `json:"commandId" cbor:"1,keyasint"`
	Stream     string         `json:"stream" cbor:"2,keyasint"`
	Generation uint64         `json:"generation" cbor:"3,keyasint"`
	Position   uint64         `json:"position" cbor:"4,keyasint"`
	Delivery   string         `json:"delivery" cbor:"5,keyasint"` // "" when its lease does not hold
	Scope      string         `json:"scope" cbor:"6,keyasint"`
	Effects    []api.Mutation `json:"effects,omitempty" cbor:"7,keyasint,omitempty"`
}

func (r *feedRequest) TargetPartition() api.PartitionRef { return place }
func (r *feedRequest) GetCommandID() string              { return r.CommandID }
func (r *feedRequest) SetCommandID(id string)            { r.CommandID = id }

type feedResponse struct {
	Receipt api.Receipt `json:"receipt" cbor:"1,keyasint"`
	Done    Done        `json:"done" cbor:"2,keyasint"`
}

func feedResource() op.Resource {
	return op.Resource{Name: "feed", Handlers: []op.Handler{
		op.Handle(feedProcess, op.Command[feedRequest, feedResponse]{Apply: func(c *op.Ctx, r *feedRequest) (*feedResponse, error) {
			in := OfEvent(table.Owner{Space: c.Space, Resource: feed}, r.Stream, r.Generation, r.Position)
			done, err := Process(c, in, r.Scope, 1, r.Effects, func(processed bool) error {
				if r.Delivery == "" {
					if processed {
						return nil
					}
					return fault.New(fault.StaleLease, "gone", "the lease is gone")
				}
				m := output("in", r.Delivery)
				_, err := c.Mutate(0, &m)
				return err
			})
			return &feedResponse{Done: done}, err
		}}),
	}}
}

func (b *bed) feed(delivery string, position uint64, effects ...api.Mutation) (Done, error) {
	b.t.Helper()
	r, err := call(b, feedProcess, &feedRequest{
		CommandID: b.id(), Stream: "s", Generation: 1, Position: position, Delivery: delivery, Scope: "view", Effects: effects,
	})
	if err != nil {
		return Done{}, err
	}
	return r.Done, nil
}

func TestAnEventHasItsEffectsOnceAndEveryLiveDeliveryIsAcknowledged(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	first, err := b.feed("d1", 5, toOut)
	b.must(err)
	if first.AlreadyProcessed || len(first.Results) != 1 || b.count("in") != 1 || b.count("out") != 1 {
		t.Errorf("%+v: %d acknowledged, %d outputs", first, b.count("in"), b.count("out"))
	}
	again, err := b.feed("d2", 5, toOut) // by another group, or after a seek
	b.must(err)
	if !again.AlreadyProcessed || again.Results != nil || again.EffectsToken != first.EffectsToken || b.count("in") != 2 || b.count("out") != 1 {
		t.Errorf("%+v: %d acknowledged, %d outputs", again, b.count("in"), b.count("out"))
	}
	before := b.rows()
	if stale, err := b.feed("", 5, toOut); err != nil || !reflect.DeepEqual(stale, again) {
		t.Errorf("without a lease the work is known to be done: %+v %v", stale, err)
	}
	b.same("a repeat without a lease", before)
	if next, err := b.feed("d3", 6, toOut); err != nil || next.AlreadyProcessed {
		t.Errorf("the next position: %+v %v", next, err)
	}
	if n := b.check()["inboxRecords"]; n != 2 {
		t.Errorf("%d records", n)
	}
}

func TestCase089_ADeliveryWithoutALeaseHasNoEffect(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	before := b.rows()
	if _, err := b.feed("", 5, toOut); code(err) != "StaleLease/gone" {
		t.Errorf("%v", err)
	}
	b.same("a stale delivery", before)
}

func TestOtherEffectsOfAnEventAreAConflictAndAcknowledgeNothing(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	_, err := b.feed("d1", 5, toOut)
	b.must(err)
	before := b.rows()
	for _, delivery := range []string{"d2", ""} {
		if _, err := b.feed(delivery, 5); code(err) != "Conflict/processed_differently" {
			t.Errorf("delivery %q: %v", delivery, err)
		}
	}
	b.same("a conflict", before)
}

func TestARefusedEffectUndoesTheAcknowledgementOfAnEvent(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue("out", "taken")
	before := b.rows()
	if _, err := b.feed("d1", 5, toOut, output("out", "taken")); code(err) != "Conflict/message_exists" {
		t.Errorf("%v", err)
	}
	b.same("a refused effect", before)
}

func TestAnAcknowledgementThatIsRefusedLeavesNoEffect(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxMessages: 1})
	_, err := b.feed("d1", 5)
	b.must(err)
	before := b.rows()
	if _, err := b.feed("d2", 6, toOut); code(err) == "" {
		t.Error("the queue of acknowledgements is full and nothing was said")
	}
	if _, err := b.feed("d2", 5); code(err) == "" {
		t.Error("the same of a repeat")
	}
	b.same("a refused acknowledgement", before)
}
