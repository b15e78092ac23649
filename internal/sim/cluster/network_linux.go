package cluster

import (
	"fmt"
	"math/rand/v2"
)

// network is a part of the loopback network, drawn for one cluster. Ports outside
// 127.0.0.1 are never taken by somebody's outgoing connection, so a node that is
// started again finds its own free.
type network struct{ a, b int }

func newNetwork() network { return network{1 + rand.IntN(254), rand.IntN(255)} }

// api and peer are where a node listens for callers and for other nodes, way is where
// other nodes reach it. Nodes are numbered from 0.
func (n network) api(i int) string  { return fmt.Sprintf("127.%d.%d.%d:7600", n.a, n.b, 1+i) }
func (n network) peer(i int) string { return fmt.Sprintf("127.%d.%d.%d:7601", n.a, n.b, 1+i) }
func (n network) way(i int) string  { return fmt.Sprintf("127.%d.%d.%d:7601", n.a, n.b, 101+i) }
