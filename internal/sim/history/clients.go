package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
)

// Record is everything that the clients of one store asked and were answered.
type Record struct {
	Documents Documents
	Ledger    *Ledger

	mu    sync.Mutex
	wrong []string
	calls int
}

// NewRecord makes an empty record.
func NewRecord() *Record { return &Record{Ledger: NewLedger()} }

// Calls is how many calls have ended, well or not.
func (r *Record) Calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

func (r *Record) ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
}

func (r *Record) err(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// Options of the clients.
type Options struct {
	// Doer is what a client calls, by its number from 0.
	Doer func(client int) api.Doer
	// Clients work at once, on so many documents.
	Clients, Documents int
	Seed               uint64
	// Run names what these clients make, so that several runs can share a store.
	Run string
	// Actions each client takes; 0 is until stop is closed.
	Actions int
	Stop    <-chan struct{}
}

const (
	registers = "registers" // documents whose history is recorded
	effects   = "effects"   // one for each message: its revision counts the effects
	tasks     = "tasks"     // queue
	notices   = "notices"   // topic
	diaries   = "diaries"   // stream set
)

// lanes are in partitions of their own, as a rule in different shards.
func lanes() []api.LaneRef {
	return []api.LaneRef{client.Lane(api.PartitionRef{Key: "left"}, tasks), client.Lane(api.PartitionRef{Key: "right"}, tasks)}
}

func watchers() api.GroupRef {
	return client.Group(client.Topic(api.PartitionRef{}, notices), "watchers")
}

// sources are the sources that are read at the end, by their names in the ledger.
func sources() map[string]api.SourceRef {
	return map[string]api.SourceRef{
		notices: client.Topic(api.PartitionRef{}, notices), diaries: client.StreamSource(api.PartitionRef{}, diaries, "all"),
	}
}

// Setup makes what the clients need.
func Setup(ctx context.Context, d api.Doer) error {
	c := client.CallsOf(d)
	retry := api.RetryPolicy{BaseMillis: 5, MaxMillis: 50}
	for _, r := range []api.ResourcesConfigureRequest{
		{Name: registers, Kind: api.KindCollection}, {Name: effects, Kind: api.KindCollection},
		{Name: notices, Kind: api.KindTopic}, {Name: diaries, Kind: api.KindStreamSet},
		{Name: tasks, Kind: api.KindQueue, Queue: &api.QueuePolicy{MaxAttempts: 1000, Retry: retry}},
	} {
		if _, err := c.ConfigureResource(ctx, &r); err != nil {
			return err
		}
	}
	_, err := c.ConfigureGroup(ctx, &api.SubscriptionsConfigureRequest{Group: watchers(), Definition: api.GroupDefinition{
		Policy: api.GroupPolicy{MaxAttempts: 1000, Retry: retry},
	}})
	return err
}

// Work lets the clients work until they are done, stop is closed or ctx ends.
func (r *Record) Work(ctx context.Context, o Options) {
	var wg sync.WaitGroup
	for n := range o.Clients {
		w := &worker{
			Record: r, Calls: client.CallsOf(o.Doer(n)), ctx: ctx, number: n, o: o, rng: rand.New(rand.NewPCG(o.Seed, uint64(n))),
		}
		wg.Go(func() {
			for i := 0; (o.Actions == 0 || i < o.Actions) && !w.stopped(); i++ {
				w.act()
			}
		})
	}
	wg.Wait()
}

// worker is one client.
type worker struct {
	*Record
	client.Calls
	ctx    context.Context
	number int
	o      Options
	rng    *rand.Rand
	named  int
}

func (w *worker) stopped() bool {
	select {
	case <-w.o.Stop:
		return true
	case <-w.ctx.Done():
		return true
	default:
		return false
	}
}

func (w *worker) name(what string) string {
	w.named++
	return fmt.Sprintf("%s-%s-%d-%d", what, w.o.Run, w.number, w.named)
}

func (w *worker) act() {
	switch n := w.rng.IntN(100); {
	case n < 30:
		w.read()
	case n < 60:
		w.write()
	case n < 72:
		w.enqueue()
	case n < 84:
		w.process()
	case n < 92:
		w.append()
	default:
		w.follow()
	}
	w.ended()
}

// happened sorts out an error: nobody knows, it was refused for the reason that is
// expected, or it certainly was not carried out.
func (w *worker) happened(err error, expected ...fault.Code) (unknown, refused bool) {
	code := fault.CodeOf(err)
	for _, c := range expected {
		refused = refused || c == code
	}
	switch code {
	case fault.UnknownWriteOutcome:
		return true, false
	case fault.OwnershipLost, fault.Cancelled, fault.ClockUncertain, fault.ResourceExhausted, fault.RecoveryRequired, fault.DispatchPaused:
		return false, false
	}
	if err != nil && !refused {
		w.err("client %d: %v", w.number, err)
	}
	return false, refused
}

func (w *worker) document() (p api.PartitionRef, id string) {
	n := w.rng.IntN(w.o.Documents)
	return api.PartitionRef{Key: "registers-" + strconv.Itoa(n%4)}, fmt.Sprintf("r-%s-%d", w.o.Run, n)
}

func (w *worker) read() {
	p, id := w.document()
	w.look(p, id)
}

// look reads one document and records it.
func (w *worker) look(p api.PartitionRef, id string) (revision uint64, ok bool) {
	call := w.Documents.Read(w.number, id)
	doc, err := w.Get(w.ctx, p, registers, id)
	switch _, missing := w.happened(err, fault.NotFound); {
	case err == nil:
		call.Saw(doc.Revision, string(doc.Document))
		return doc.Revision, true
	case missing:
		call.Saw(0, "")
		return 0, true
	}
	call.Dropped()
	return 0, false
}

// write writes over any revision, over the one that was just read, or over none.
func (w *worker) write() {
	p, id := w.document()
	var expected *uint64
	switch w.rng.IntN(5) {
	case 0:
		expected = new(uint64)
	case 1, 2:
		n, ok := w.look(p, id)
		if !ok {
			return
		}
		expected = &n
	}
	m := client.Put(registers, id, w.name("v"))
	m.PutDocument.Document = api.JSON(`{"v":` + string(m.PutDocument.Document) + `}`)
	m.PutDocument.ExpectedRevision = expected
	call := w.Documents.Write(w.number, id, string(m.PutDocument.Document), expected)
	resp, err := w.Commit(w.ctx, p, m)
	switch unknown, refused := w.happened(err, fault.RevisionConflict); {
	case err == nil:
		call.Wrote(resp.Results[0].Revision)
	case refused:
		call.Refused()
	case !unknown:
		call.Dropped()
	}
}

func (w *worker) enqueue() {
	id, lane := w.name("m"), lanes()[w.rng.IntN(2)]
	w.Ledger.Enqueue(id)
	_, err := w.Commit(w.ctx, lane.Partition, client.Enqueue(lane.Queue, api.Message{MessageID: id, Payload: api.Of(id)}))
	if w.happened(err); err == nil {
		w.Ledger.Enqueued(id)
	}
}

// process takes messages of both lanes in one call and processes them. Some it
// leaves, as a worker does that died.
func (w *worker) process() {
	req := &api.QueuesReceiveAcrossLanesRequest{}
	for _, l := range lanes() {
		req.Requests = append(req.Requests, api.QueuesReceiveRequest{Lane: l, MaxMessages: 1 + w.rng.Int64N(3), LeaseSeconds: 1 + w.rng.Int64N(3)})
	}
	got, err := w.ReceiveAcrossLanes(w.ctx, req)
	if w.happened(err, fault.LeaseExpired); err != nil {
		return
	}
	for i, o := range got.Outcomes {
		if o.Error != nil {
			w.happened(o.Error, fault.LeaseExpired, fault.StaleLease)
		}
		if o.Result == nil {
			continue
		}
		for _, d := range o.Result.Deliveries {
			w.Ledger.Delivered(d.MessageID)
			if w.rng.IntN(10) > 0 {
				w.finish(lanes()[i], d)
			}
		}
	}
}

func (w *worker) finish(lane api.LaneRef, d api.Delivery) {
	r, err := w.Process(w.ctx, &api.QueuesProcessRequest{
		Lane: lane, Token: d.Token, HandlerScope: "history", Effects: []api.Mutation{client.Put(effects, d.MessageID, map[string]string{"of": d.MessageID})}, // equal, whoever of several clients comes first
	})
	if w.happened(err, fault.LeaseExpired, fault.StaleLease, fault.NotFound, fault.TokenInvalidated); err == nil {
		w.Ledger.Done(r.MessageID, r.AlreadyProcessed)
	}
}

// append stores one event in the topic and one in the stream.
func (w *worker) append() {
	id := w.name("e")
	w.Ledger.Append(notices, id)
	w.Ledger.Append(diaries, id)
	e := api.Event{EventID: id, Type: "noted", Payload: api.Of(id)}
	r, err := w.Commit(w.ctx, api.PartitionRef{}, client.Publish(notices, e), client.Append(diaries, "all", e))
	if w.happened(err); err == nil {
		w.Ledger.Appended(notices, id, r.Results[0].Position)
		w.Ledger.Appended(diaries, id, r.Results[1].Position)
	}
}

// follow finishes events of the group and looks at its checkpoint.
func (w *worker) follow() {
	got, err := w.ReceiveEvents(w.ctx, &api.SubscriptionsReceiveRequest{Group: watchers(), MaxEvents: 4, LeaseSeconds: 2})
	if w.happened(err, fault.LeaseExpired, fault.StaleLease); err == nil && len(got.Deliveries) > 0 {
		var items []api.CompleteItem
		for _, d := range got.Deliveries {
			items = append(items, api.CompleteItem{Token: d.Token, Action: api.ActionAck})
		}
		_, err := w.CompleteEvents(w.ctx, watchers(), items...)
		w.happened(err, fault.LeaseExpired, fault.StaleLease)
	}
	look := w.Ledger.Look("watchers")
	st, err := w.GroupStatus(w.ctx, watchers(), 1)
	if w.happened(err); err == nil {
		look.Saw(st.State.Checkpoint)
	}
}
