package membership

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/replica"
	"github.com/keyload/keyload/internal/resource/members"
)

const (
	// every is how often the list is compared with what the shards have.
	every = 250 * time.Millisecond
	// patience bounds one change of one shard.
	patience = 5 * time.Second
	// spreadEvery is how often at most a node hands a leadership on to even them out.
	spreadEvery = 2 * time.Second
)

// Replicas changes who holds a shard. The replicated log is one.
type Replicas interface {
	Progress(ctx context.Context, shard uint16) (replica.Progress, error)
	AddLearner(ctx context.Context, shard uint16, node uint64) error
	Promote(ctx context.Context, shard uint16, node uint64) error
	Remove(ctx context.Context, shard uint16, node uint64) error
	Transfer(ctx context.Context, shard uint16, node uint64) error
}

// Book is where the addresses of nodes are kept.
type Book interface {
	Set(node uint64, address string)
	Remove(node uint64)
}

// Config says what the service works with.
type Config struct {
	Engine   *engine.Engine
	Replicas Replicas
	Book     Book
	Peers    engine.Peers
	// Self is what this node tells of itself; First that the cluster begins with it.
	Self   api.ClusterNode
	First  bool
	Clock  func() time.Time // the wall clock; nil is the machine's
	Logger *slog.Logger
}

// Service runs until it is closed.
type Service struct {
	cfg    Config
	cancel context.CancelFunc
	wg     sync.WaitGroup
	spread time.Time // when a leadership was last handed on for evenness
	// said is why the last change of a shard's members failed, as it was logged.
	said map[uint16]failing
}

// failing is a step that cannot be made now, and why. The text of its error counts what
// is missing, and is another one each time.
type failing struct {
	step   step
	reason string
}

func reasonOf(err error) string {
	if f := fault.From(err); f != nil {
		return f.Reason
	}
	return err.Error()
}

// Start begins. The first node of a new cluster is in the list when it returns, unless
// that takes longer than patience: whoever adds a second one must find a cluster.
func Start(cfg Config) *Service {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Service{cfg: cfg, cancel: cancel, said: map[uint16]failing{}}
	heard := make(chan struct{})
	s.wg.Go(func() {
		defer close(heard)
		s.announce(ctx)
	})
	s.wg.Go(func() { s.run(ctx) })
	if list, err := engine.Nodes(cfg.Engine); cfg.First && err == nil && len(list.All) == 0 {
		select {
		case <-heard:
		case <-time.After(patience):
		}
	}
	return s
}

// Close stops and waits; a change under way ends first or is given up.
func (s *Service) Close() {
	s.cancel()
	s.wg.Wait()
}

// announce tells the cluster that this node is there, and where, until it is heard.
func (s *Service) announce(ctx context.Context) {
	for said := ""; ; {
		limit, cancel := context.WithTimeout(ctx, patience)
		err := engine.Announce(limit, s.cfg.Engine, members.JoinRequest{
			Node: s.cfg.Self.NodeID, Address: s.cfg.Self.Address, URL: s.cfg.Self.URL, First: s.cfg.First, Known: !s.cfg.First,
		})
		cancel()
		if err == nil {
			return
		}
		if text := err.Error(); text != said && ctx.Err() == nil {
			said = text
			s.cfg.Logger.Warn("the cluster does not know yet where this node is", "error", text)
		}
		if !sleep(ctx, time.Second) {
			return
		}
	}
}

func (s *Service) run(ctx context.Context) {
	for sleep(ctx, every) {
		list, err := engine.Nodes(s.cfg.Engine)
		if err != nil {
			s.cfg.Logger.Error("the list of members cannot be read", "error", err.Error())
			continue
		}
		s.know(list.All)
		for shard := range s.cfg.Engine.Shards() + 1 {
			if engine.Standing(s.cfg.Engine, shard).Here && ctx.Err() == nil {
				s.tend(ctx, shard, &list)
			}
		}
	}
}

// know keeps the addresses of all others.
func (s *Service) know(all []api.ClusterNode) {
	for i := range all {
		switch n := &all[i]; {
		case n.NodeID == s.cfg.Self.NodeID:
		case n.State == api.NodeRemoved && !s.needed(n.NodeID):
			s.cfg.Book.Remove(n.NodeID)
		default:
			s.cfg.Book.Set(n.NodeID, n.Address)
		}
	}
}

// needed says that a removed node still is a member of a shard, as far as this node
// knows: it may lead it, and must then hand on what it leads; it must hear of its
// removal, and may be needed for the majority that decides it.
func (s *Service) needed(node uint64) bool {
	for shard := range s.cfg.Engine.Shards() + 1 {
		p, err := s.cfg.Replicas.Progress(context.Background(), shard)
		if err != nil || find(p.Members, node) != nil {
			return true
		}
	}
	return false
}

// tend makes one step for one shard.
func (s *Service) tend(ctx context.Context, shard uint16, list *engine.Members) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p, err := s.cfg.Replicas.Progress(ctx, shard)
	if err != nil || !p.Here {
		return
	}
	v := view{self: s.cfg.Self.NodeID, shard: shard, list: list, members: p.Members, leads: s.leads(), unready: map[uint64]bool{}}
	v.unready[v.self] = engine.TakesWrites(s.cfg.Engine, shard) != nil
	step := s.choose(ctx, &v)
	switch step.do {
	case nothing:
		return
	case invite:
		err = s.cfg.Replicas.AddLearner(ctx, shard, step.node)
	case promote:
		err = s.cfg.Replicas.Promote(ctx, shard, step.node)
	case remove:
		err = s.cfg.Replicas.Remove(ctx, shard, step.node)
	case handOn, even:
		if step.do == even {
			s.spread = time.Now()
		}
		err = s.cfg.Replicas.Transfer(ctx, shard, step.node)
	}
	if err != nil {
		if why := (failing{step, reasonOf(err)}); s.said[shard] != why {
			s.said[shard] = why
			s.cfg.Logger.Info("a change of a shard's members is tried again", "shard", shard, "change", step.do.String(), "node", step.node, "error", err.Error())
		}
		return
	}
	delete(s.said, shard)
	s.cfg.Logger.Info("a shard's members were changed", "shard", shard, "change", step.do.String(), "node", step.node)
}

// choose is the next step. A leadership goes to no node that says that it is not
// ready: it would hand it on again.
func (s *Service) choose(ctx context.Context, v *view) step {
	for {
		step := v.next(time.Since(s.spread) >= spreadEvery)
		if step.do != handOn && step.do != even {
			return step
		}
		about := api.ClusterNodeStatus{Node: api.ClusterNode{NodeID: step.node}}
		if s.ask(ctx, &about); about.Reachable && about.Ready {
			return step
		}
		v.unready[step.node] = true
	}
}

// leads counts what each node leads, as far as this one knows.
func (s *Service) leads() map[uint64]int {
	out := map[uint64]int{}
	for shard := range s.cfg.Engine.Shards() + 1 {
		out[engine.Standing(s.cfg.Engine, shard).Leader]++
	}
	return out
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
