package httpgw

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// The surfaces of this package, as metrics name them.
const (
	surfaceHTTP    = "http"
	surfaceSession = "session"
	surfaceAgents  = "mcp"
)

// okCode stands beside the codes of errors.
const okCode = "OK"

// metrics are what the gateway measures. No label holds a name that a caller
// chose.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
	sessions prometheus.Gauge
	tails    prometheus.Gauge
}

func newMetrics(r prometheus.Registerer, g *Gateway) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "keyload_requests_total", Help: "Requests answered, by surface, operation and code.",
		}, []string{"surface", "operation", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "keyload_request_seconds", Help: "Time from the request's arrival to its answer, waiting included.",
			Buckets: []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30},
		}, []string{"surface", "operation"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "keyload_requests_in_flight", Help: "Requests in evaluation, those that wait for a message or event included.",
		}),
		sessions: prometheus.NewGauge(prometheus.GaugeOpts{Name: "keyload_sessions", Help: "Open sessions."}),
		tails:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "keyload_tails", Help: "Open tails."}),
	}
	gauge := func(name, help string, n func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(n()) })
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.inFlight, m.sessions, m.tails,
		gauge("keyload_request_body_bytes", "Bytes of request bodies that are being read or evaluated.", g.bodies.bytes),
		gauge("keyload_answer_bytes", "Bytes of answers that are being made or were not read yet.", g.answers.bytes),
		gauge("keyload_connections", "Open connections, sessions and tails among them.", g.conns.count),
	} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// opStats are the series of one operation on one surface.
type opStats struct {
	ok       prometheus.Counter
	requests *prometheus.CounterVec
	seconds  prometheus.Observer
}

func (m *metrics) of(o *api.Operation) map[string]*opStats {
	out := map[string]*opStats{}
	for _, surface := range []string{surfaceHTTP, surfaceSession, surfaceAgents} {
		labels := prometheus.Labels{"surface": surface, "operation": o.Name}
		requests := m.requests.MustCurryWith(labels)
		out[surface] = &opStats{
			ok: requests.WithLabelValues(okCode), requests: requests, seconds: m.seconds.With(labels),
		}
	}
	return out
}

func (s *opStats) observe(took time.Duration, f *fault.Error) {
	s.seconds.Observe(took.Seconds())
	if f == nil {
		s.ok.Inc()
		return
	}
	s.requests.WithLabelValues(string(f.Code)).Inc()
}
