package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/keyload/keyload/api"
)

// clusterHelp is what an operator of a cluster has to know first.
const clusterHelp = `The list of members says which nodes the cluster should have; the shards follow by themselves, and cluster status shows how far they are. --wait waits until a change has taken effect everywhere; cluster status --wait, until nothing is missing.

A directory with a file cluster.json is that of a node; docs/cluster.md says what is in it, and goes through running a cluster step by step.

A node died and comes back with its disk: start it again, nothing else. Its disk is lost: it is a new node with a new number, never used before. Make its certificate, put it in the place of the lost one, start it with an empty directory:

    keyload cluster replace 2 4 node4.example:7700 --wait

Before maintenance of a node, let others lead, so that nothing waits for an election; afterwards let it lead again:

    keyload cluster drain 2 --wait
    keyload cluster drain 2 --off

To grow, add a node, start it, and wait; an even number of nodes tolerates no more losses than one less:

    keyload cluster add 4 node4.example:7700 --wait`

// showCluster shows people the state of a cluster.
func showCluster(s *session, r *api.ClusterStatusResponse) error {
	_, err := io.WriteString(s.streams.Out, s.name.in(clusterText(r)))
	return err
}

func clusterText(r *api.ClusterStatusResponse) string {
	if len(r.Nodes) == 0 {
		return "this store runs alone; it is no cluster (keyload cluster --help)\n"
	}
	p := pictureOf(r)
	text := fmt.Sprintf("nodes: %d (node %d was asked)\n", len(p.nodes), p.asked) + rendered(p.nodeTable())
	if len(p.shards) > 0 {
		text += "\nshards: " + fmt.Sprint(len(p.shards)) + " (of each node: how many commands it is behind)\n" + rendered(p.shardTable())
	}
	notes := p.attention()
	if len(notes) == 0 {
		return text + "\nevery node is reached, and every shard has a leader\n"
	}
	return text + "\n" + strings.Join(notes, "\n") + "\n"
}

func rendered(w table.Writer) string {
	w.SetStyle(plainStyle())
	var b strings.Builder
	for line := range strings.SplitSeq(w.Render(), "\n") {
		b.WriteString("  " + strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func (p *picture) nodeTable() table.Writer {
	w := table.NewWriter()
	w.AppendHeader(table.Row{"node", "state", "reachable", "ready", "leads", "lag", "skew", "address"})
	for i := range p.nodes {
		n := &p.nodes[i]
		state := string(n.Node.State)
		if n.Node.Draining {
			state += ", draining"
		}
		row := table.Row{n.Node.NodeID, state, yes(n.Reachable), "", "", "", "", n.Node.Address}
		if n.Reachable {
			row[3], row[4], row[5], row[6] = yes(n.Ready), n.Leads, p.lag(n), fmt.Sprintf("%d ms", n.SkewMillis)
		}
		w.AppendRow(row)
	}
	return w
}

func (p *picture) shardTable() table.Writer {
	w := table.NewWriter()
	header := table.Row{"shard", "leader", "term"}
	for i := range p.nodes {
		header = append(header, fmt.Sprintf("node %d", p.nodes[i].Node.NodeID))
	}
	w.AppendHeader(header)
	for _, shard := range p.shards {
		row := table.Row{shard, "none", ""}
		if c := p.led[shard]; c != nil {
			row[1], row[2] = c.Leader, c.Term
		}
		for i := range p.nodes {
			row = append(row, p.copyText(shard, &p.nodes[i]))
		}
		w.AppendRow(row)
	}
	return w
}

// copyText says in a word how a node's copy of a shard is.
func (p *picture) copyText(shard uint32, n *api.ClusterNodeStatus) string {
	if !n.Reachable {
		return "?"
	}
	for _, c := range p.copies[shard] {
		behind := fmt.Sprint(p.ahead[shard] - c.Position)
		switch {
		case c.node != n.Node.NodeID:
		case c.Failure != "":
			return "stopped"
		case c.Learner:
			return "learns, " + behind
		case !c.Member:
			return "no member"
		default:
			return behind
		}
	}
	return "none"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
