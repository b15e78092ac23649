package replica

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/keyload/keyload/internal/machine"
)

const (
	// outgoingStreams bounds the snapshots that a node sends at one time.
	outgoingStreams = 2
	// holdTicks is for how long after a snapshot was sent the log behind it is kept for
	// its receiver, who installs it meanwhile.
	holdTicks = 2400
)

// sender sends a group's snapshots, and remembers for whom the log must be kept.
type sender struct {
	g     *group
	holds map[uint64]*hold
}

// hold keeps the log from an entry on for a node that gets, or got, a snapshot.
type hold struct {
	index uint64 // 0 until the stream has begun
	until uint64 // tick; 0 while it is being sent
}

// send streams the state to a node that lacks more than the log has.
func (sn *sender) send(m *pb.Message) {
	g := sn.g
	to := m.GetTo()
	if h := sn.holds[to]; g.l.streaming >= outgoingStreams || h != nil && h.until == 0 {
		g.node.ReportSnapshot(to, raft.SnapshotFailure) // it is tried again with a heartbeat
		return
	}
	held := &hold{index: m.GetSnapshot().GetMetadata().GetIndex()}
	sn.holds[to] = held
	g.l.streaming++
	g.l.h.streams.Add(1)
	go func() {
		defer g.l.h.streams.Done()
		err := g.s.stream(m)
		if err != nil {
			g.l.h.cfg.Logger.Warn("a snapshot was not sent", "shard", g.s.number, "to", to, "error", err.Error())
		}
		g.l.h.in.call(func(l *loop) {
			l.streaming--
			held.until = l.ticks + holdTicks
			status := raft.SnapshotFinish
			if err != nil {
				status = raft.SnapshotFailure
				delete(sn.holds, to)
			}
			if !g.idle() {
				g.node.ReportSnapshot(to, status)
			}
		})
	}()
}

// lowest is the lowest entry that a receiver of a snapshot needs the log after.
func (sn *sender) lowest(match func(node uint64) uint64) (index uint64, any bool) {
	for node, h := range sn.holds {
		if h.until != 0 && (h.until < sn.g.l.ticks || match(node) >= h.index) {
			delete(sn.holds, node)
			continue
		}
		if !any || h.index < index {
			index, any = h.index, true
		}
	}
	return index, any
}

// stream sends the state as it is now. It can hold more than raft asked for, so the
// message that leads to its installation is made anew from what it does hold.
func (s *shard) stream(m *pb.Message) error {
	ctx, cancel := context.WithCancel(s.h.life)
	defer cancel()
	snap, err := s.apply.snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	snap.Within(ctx)
	at, ok, err := machine.StoredApplied(snap, s.number)
	if err != nil {
		return err
	}
	if !ok || !slices.Contains(append(slices.Clone(at.Voters), at.Learners...), m.GetTo()) {
		return fmt.Errorf("the state does not know node %d as a member yet", m.GetTo())
	}
	header := &snapshotHeader{s.h.cfg.Machine.Incarnation, s.number, &pb.Message{
		Type: pb.MsgSnap.Enum(), From: m.From, To: m.To, Term: m.Term,
		Snapshot: snapshotOf(position{at.Index, at.Term}, confOf(&at)),
	}}
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := writeSnapshot(w, header, snap, s.pace(ctx))
		w.CloseWithError(err) // nil is the end of the stream
		written <- err
	}()
	err = s.h.cfg.Transport.SendSnapshot(ctx, m.GetTo(), s.number, r)
	cancel()
	r.CloseWithError(context.Canceled)
	if werr := <-written; err == nil {
		err = werr
	}
	return err
}

// pace holds a stream to its share of a second, frame by frame.
func (s *shard) pace(ctx context.Context) func(bytes int) error {
	begun, sent := time.Now(), int64(0)
	return func(bytes int) error {
		sent += int64(bytes)
		early := time.Duration(float64(sent)/float64(s.h.cfg.SnapshotBytes)*float64(time.Second)) - time.Since(begun)
		if early <= 0 {
			return ctx.Err()
		}
		timer := time.NewTimer(early)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
