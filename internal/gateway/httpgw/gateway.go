package httpgw

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/gateway/httpgw/openapi"
	"github.com/keyload/keyload/internal/limits"
)

// Options are what a gateway needs.
type Options struct {
	// Door evaluates the operations.
	Door Door
	// Metrics gets the gateway's collectors and is what /metrics shows; a new
	// one when nil.
	Metrics *prometheus.Registry
	// Logger gets faults of the program; slog.Default when nil. Refusals are
	// answered, not logged.
	Logger *slog.Logger
	// Version of the program, for the documents.
	Version string
	// Backup makes backups for administrators; nil refuses them.
	Backup Backup
	// Agents answers what is sent to /mcp. It is made for the gateway that answers the
	// operations; nil is for none.
	Agents func(operations http.Handler) http.Handler
	// SessionCalls is how many calls one session may have in flight; 1,024 when
	// zero.
	SessionCalls int
	// Sessions is how many sessions may be open, and BodiesBytes how many bytes of
	// request bodies are held at once; as package limits says when zero.
	Sessions, BodiesBytes int
	// Connections is how many connections a server holds, AnswersBytes how many bytes of
	// answers that were not read yet; as package limits says when zero.
	Connections, AnswersBytes int
}

// Gateway answers HTTP requests. It is safe for concurrent use.
type Gateway struct {
	door         Door
	log          *slog.Logger
	routes       map[string]*route // by path
	byNumber     map[uint16]*route
	pages        map[string]http.HandlerFunc // what is read with GET
	makeBackup   Backup
	agents       http.Handler // nil without
	metrics      *metrics
	sessionCalls int

	// serving ends late in a shutdown, and with it whatever still waits; tailing
	// ends when it begins.
	serving  context.Context
	stop     context.CancelFunc
	tailing  context.Context
	endTails context.CancelFunc

	sessions sessions
	bodies   bodies
	answers  answers
	conns    connections
}

// route is one operation as it is served.
type route struct {
	op    *api.Operation
	stats map[string]*opStats // by surface
}

// New makes a gateway for every operation of the registry.
func New(o Options) (*Gateway, error) {
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.SessionCalls == 0 {
		o.SessionCalls = defaultSessionCalls
	}
	if o.Sessions == 0 {
		o.Sessions = limits.Sessions
	}
	if o.Connections == 0 {
		o.Connections = limits.Connections
	}
	if o.AnswersBytes == 0 {
		o.AnswersBytes = limits.AnswersBytes
	}
	if o.BodiesBytes == 0 {
		o.BodiesBytes = limits.BodiesBytes
	}
	g := &Gateway{
		door: o.Door, log: o.Logger, sessionCalls: o.SessionCalls, makeBackup: o.Backup,
		routes: map[string]*route{}, byNumber: map[uint16]*route{},
	}
	g.serving, g.stop = context.WithCancel(context.Background())
	g.tailing, g.endTails = context.WithCancel(g.serving)
	var err error
	if g.metrics, err = newMetrics(o.Metrics, g); err != nil {
		return nil, err
	}
	g.sessions.init(g.metrics.sessions, o.Sessions)
	g.conns.max = int64(o.Connections)
	g.answers.max, g.answers.share = o.AnswersBytes, o.AnswersBytes/2
	g.bodies.max, g.bodies.decoding = o.BodiesBytes, make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))
	for _, op := range api.Operations() {
		rt := &route{op: op, stats: g.metrics.of(op)}
		g.routes[op.Path()], g.byNumber[op.Number] = rt, rt
	}
	if o.Agents != nil {
		g.agents = o.Agents(g)
	}
	return g, g.addPages(o)
}

func (g *Gateway) addPages(o Options) error {
	document, err := openapi.Document(api.Operations(), o.Version)
	if err != nil {
		return err
	}
	page, err := openapi.Page(api.Operations(), o.Version)
	if err != nil {
		return err
	}
	g.pages = map[string]http.HandlerFunc{
		"/livez":          g.live,
		"/readyz":         g.ready,
		"/metrics":        promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{ErrorLog: promLog{o.Logger}}).ServeHTTP,
		"/openapi.json":   static("application/json", document),
		"/docs":           static("text/html; charset=utf-8", page),
		"/v1/events/tail": g.tail,
		"/v1/session":     g.openSession,
	}
	return nil
}

// ServeHTTP finds the operation or page of the path.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if rt := g.routes[r.URL.Path]; rt != nil {
		if r.Method != http.MethodPost {
			g.refuseMethod(w, r, http.MethodPost)
			return
		}
		g.operation(w, r, rt)
		return
	}
	if r.URL.Path == api.BackupPath {
		if r.Method != http.MethodPost {
			g.refuseMethod(w, r, http.MethodPost)
			return
		}
		g.backup(w, r)
		return
	}
	if r.URL.Path == agentsPath && g.agents != nil {
		g.serveAgent(w, r)
		return
	}
	if page := g.pages[r.URL.Path]; page != nil {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			g.refuseMethod(w, r, http.MethodGet)
			return
		}
		page(w, r)
		return
	}
	g.problem(w, r, fault.New(fault.NotFound, "unknown_route",
		"there is nothing at this path; operations are at /v1/<area>/<verb> and listed at /docs"))
}

func (g *Gateway) refuseMethod(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	f := fault.New(fault.Validation, "method_not_allowed", "this path is called with %s", allowed)
	g.writeProblem(w, answerType(r), f, http.StatusMethodNotAllowed)
}

func (g *Gateway) live(w http.ResponseWriter, _ *http.Request) {
	writeBody(w, jsonType, http.StatusOK, []byte(`{"live":true}`))
}

func (g *Gateway) ready(w http.ResponseWriter, r *http.Request) {
	err := g.door.Ready()
	if g.sessions.draining() {
		err = errDraining()
	}
	if err != nil {
		g.writeProblem(w, jsonType, toFault(err, nil, nil), http.StatusServiceUnavailable)
		return
	}
	writeBody(w, jsonType, http.StatusOK, []byte(`{"ready":true}`))
}

// errDraining refuses work while the server shuts down.
func errDraining() *fault.Error {
	return fault.New(fault.OwnershipLost, "shutting_down", "this server is shutting down; nothing was done")
}

func static(mediaType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { writeBody(w, mediaType, http.StatusOK, body) }
}

// promLog passes what the metrics page complains about to the log.
type promLog struct{ log *slog.Logger }

func (l promLog) Println(v ...any) { l.log.Error("metrics", "detail", v) }
