package replica

import (
	"fmt"
	"log/slog"

	"go.etcd.io/raft/v3"
)

// quiet is the logger of a raft group: what it tells of every election and append is
// of no use to an operator, and Status says it better.
type quiet struct {
	log   *slog.Logger
	shard uint16
}

var _ raft.Logger = quiet{}

func (q quiet) Debug(...any)            {}
func (q quiet) Debugf(string, ...any)   {}
func (q quiet) Info(...any)             {}
func (q quiet) Infof(string, ...any)    {}
func (q quiet) Warning(...any)          {}
func (q quiet) Warningf(string, ...any) {}

func (q quiet) Error(v ...any) { q.log.Warn("raft: "+fmt.Sprint(v...), "shard", q.shard) }
func (q quiet) Errorf(format string, v ...any) {
	q.log.Warn("raft: "+fmt.Sprintf(format, v...), "shard", q.shard)
}

// Fatal and Panic end in the loop, which stops the node's replicas and not the
// process.
func (q quiet) Fatal(v ...any)                 { panic(fmt.Sprint(v...)) }
func (q quiet) Fatalf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
func (q quiet) Panic(v ...any)                 { panic(fmt.Sprint(v...)) }
func (q quiet) Panicf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
