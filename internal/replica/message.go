package replica

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// The first byte of a message says what it is.
const (
	ofRaft    = 1
	ofDigests = 2
)

var errMessage = errors.New("replica: a message that no node sends")

func encodeMessage(m *pb.Message) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend([]byte{ofRaft}, m)
}

// decodeMessage reads a message that came from another node, and refuses what raft
// would take for its own node's doing, or what comes on other ways.
func decodeMessage(from, to uint64, b []byte) (*pb.Message, error) {
	m := new(pb.Message)
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, err
	}
	switch m.GetType() {
	case pb.MsgApp, pb.MsgAppResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp,
		pb.MsgHeartbeat, pb.MsgHeartbeatResp, pb.MsgTimeoutNow, pb.MsgReadIndex, pb.MsgReadIndexResp:
	default:
		return nil, errMessage
	}
	if m.GetFrom() != from || m.GetTo() != to || from == to {
		return nil, errMessage
	}
	return m, nil
}

// Receive takes a message of another node.
func (l *Log) Receive(from uint64, shard uint16, message []byte) {
	h := l.host
	if int(shard) >= len(h.shards) || len(message) == 0 || len(message) > MessageBytes {
		return
	}
	switch message[0] {
	case ofRaft:
		m, err := decodeMessage(from, h.cfg.Node, message[1:])
		if err != nil {
			h.cfg.Logger.Warn("a message was dropped", "from", from, "shard", shard, "error", err.Error())
			return
		}
		h.in.message(shard, m, len(message))
	case ofDigests:
		if points, err := decodePoints(message[1:]); err == nil {
			h.shards[shard].apply.compare(from, points)
		}
	}
}

// Unreachable is told that messages to a node were lost.
func (l *Log) Unreachable(node uint64) {
	l.host.in.call(func(l *loop) {
		for _, g := range l.groups {
			if !g.idle() && g.leads() {
				g.node.ReportUnreachable(node)
			}
		}
	})
}
