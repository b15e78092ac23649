package node

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/resource/system"
)

// metrics makes the registry of a server: the store, the Go runtime, the
// process. The gateways add theirs.
func metrics(e *engine.Engine) (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		&store{e}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// store reads the engine's counters when it is scraped.
type store struct{ engine *engine.Engine }

// figure is one metric of the whole store.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(engine.Stats) uint64
}

func counter(name, help string, of func(engine.Stats) uint64) figure {
	return figure{prometheus.NewDesc("keyload_store_"+name, help, nil, nil), prometheus.CounterValue, of}
}

var (
	figures = []figure{
		counter("commands_total", "Commands evaluated over the life of the store.", func(s engine.Stats) uint64 { return s.Commands }),
		counter("entries_total", "Log entries written since the start; commands that wait together share one.", func(s engine.Stats) uint64 { return s.Entries }),
		counter("syncs_total", "Times the disk was waited for since the start.", func(s engine.Stats) uint64 { return s.Syncs }),
		counter("log_bytes_total", "Bytes written to the log since the start.", func(s engine.Stats) uint64 { return s.Bytes }),
		counter("rows_written_total", "Rows written to the store since the start.", func(s engine.Stats) uint64 { return s.Rows }),
		{prometheus.NewDesc("keyload_store_disk_bytes", "Size of the store on disk.", nil, nil), prometheus.GaugeValue,
			func(s engine.Stats) uint64 { return s.Disk }},
	}
	readyDesc    = prometheus.NewDesc("keyload_ready", "1 while the node accepts work.", nil, nil)
	pausedDesc   = prometheus.NewDesc("keyload_dispatch_paused", "1 while the store delivers nothing: an administrator said so, or it was restored and nobody has let it go on.", nil, nil)
	positionDesc = prometheus.NewDesc("keyload_shard_position", "Last command applied by the shard.", []string{"shard"}, nil)
	durableDesc  = prometheus.NewDesc("keyload_shard_durable_position", "Last command of the shard that survives a power loss.", []string{"shard"}, nil)
	loadDesc     = prometheus.NewDesc("keyload_load", "What the node holds for its callers: commands that wait for the log, their bytes, queries that run or wait, parked calls.", []string{"what"}, nil)
	stoppedDesc  = prometheus.NewDesc("keyload_shard_stopped", "1 when the shard stopped and needs an operator.", []string{"shard"}, nil)
)

// Describe is for Prometheus.
func (s *store) Describe(out chan<- *prometheus.Desc) {
	for _, f := range figures {
		out <- f.desc
	}
	for _, d := range []*prometheus.Desc{readyDesc, pausedDesc, positionDesc, durableDesc, stoppedDesc, loadDesc} {
		out <- d
	}
}

// Collect is for Prometheus.
func (s *store) Collect(out chan<- prometheus.Metric) {
	stats := s.engine.Stats()
	for _, f := range figures {
		out <- prometheus.MustNewConstMetric(f.desc, f.kind, float64(f.of(stats)))
	}
	status := s.engine.Status()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(readyDesc, truth(status.Ready))
	if paused, err := dispatchPaused(s.engine.Store()); err == nil { // what cannot be read has no value
		gauge(pausedDesc, truth(paused))
	}
	load := engine.LoadOf(s.engine)
	gauge(loadDesc, float64(load.Commands), "commands")
	gauge(loadDesc, float64(load.Bytes), "bytes")
	gauge(loadDesc, float64(load.QueriesRunning), "queriesRunning")
	gauge(loadDesc, float64(load.QueriesWaiting), "queriesWaiting")
	gauge(loadDesc, float64(load.Parked), "parked")
	for _, sh := range status.Shards {
		name := strconv.FormatUint(uint64(sh.Shard), 10)
		gauge(positionDesc, float64(sh.Position), name)
		gauge(durableDesc, float64(sh.DurablePosition), name)
		gauge(stoppedDesc, truth(sh.Failure != ""), name)
	}
}

// dispatchPaused says whether the store delivers nothing, as its catalog has it.
func dispatchPaused(s *kv.Store) (bool, error) {
	snap := s.NewSnapshot()
	d, err := dispatch.State(snap, system.CatalogShard)
	return d.Paused, errors.Join(err, snap.Close())
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
