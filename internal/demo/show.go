package demo

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/keyload/keyload/api"
)

// Summary is the result of a run, the last line of Out with JSON.
type Summary struct {
	Deliveries       int                     `json:"deliveries"`             // of the input
	Events           int                     `json:"events"`                 // on streams of repositories
	Published        int                     `json:"published"`              // on the topic
	Messages         int                     `json:"messages"`               // finished
	Effects          int                     `json:"effects"`                // events appended by handlers
	Lost             int                     `json:"lost"`                   // anything expected and not there
	RepeatedEffects  int                     `json:"repeatedEffects"`        // anything there more than once, of a batch or of a handler
	Wrong            int                     `json:"wrong"`                  // anything with other content or in another place
	Kills            int                     `json:"kills"`                  // of the process that owned the store
	KillsInGaps      int                     `json:"killsInGaps"`            // those that left a group with a gap run
	CheckFindings    int                     `json:"checkFindings"`          // broken invariants of the store, of every node's copy
	Nodes            int                     `json:"nodes,omitzero"`         // of the cluster
	DigestsEqual     *bool                   `json:"digestsEqual,omitempty"` // of the nodes' states, with a cluster
	Retries          int64                   `json:"retries"`                // attempts that handlers gave back, of the queue and of all groups
	LeaseLosses      int64                   `json:"leaseLosses"`            // leases that ran out
	Renewals         int64                   `json:"renewals"`               // leases that handlers prolonged
	LateRefused      int64                   `json:"lateRefused"`            // workers that came back after their lease and changed nothing
	ReplayedReceipts int64                   `json:"replayedReceipts"`       // repeated batches that a receipt answered
	Groups           map[string]GroupSummary `json:"groups"`
	Seed             uint64                  `json:"seed"`
	Workers          int                     `json:"workers"`
	Seconds          float64                 `json:"seconds"`
	Dir              string                  `json:"dir,omitempty"` // of the store, when it was kept
	Problems         []string                `json:"problems,omitempty"`
}

// GroupSummary is the result of one subscription group.
type GroupSummary struct {
	Checkpoint  uint64 `json:"checkpoint"`
	Tail        uint64 `json:"tail"`
	GapRuns     int64  `json:"gapRuns"`    // left in the end
	MaxGapRuns  int64  `json:"maxGapRuns"` // most seen at once while it ran
	Effects     int    `json:"effects"`    // events appended by its handlers
	Retries     int64  `json:"retries"`
	LeaseLosses int64  `json:"leaseLosses"`
}

// proved says that the run showed what it promises.
func (s *Summary) proved(kills int) bool {
	return s.Lost == 0 && s.RepeatedEffects == 0 && s.Wrong == 0 && s.CheckFindings == 0 && s.Kills == kills &&
		(s.DigestsEqual == nil || *s.DigestsEqual)
}

// conclude fills in the summary.
func (r *run) conclude(f *found, v *verdict, took time.Duration) {
	s, sum := &r.summary, v.sum()
	s.Deliveries, s.Published, s.Effects = len(r.input), len(f.Topic), len(f.Effects)
	for _, events := range f.History {
		s.Events += len(events)
	}
	for _, m := range f.Messages {
		if m.State == api.StateAcked {
			s.Messages++
		}
		s.Retries += m.Failures
		s.LeaseLosses += m.LeaseLosses
	}
	s.Groups = map[string]GroupSummary{}
	for name, g := range f.Groups {
		s.Groups[name] = GroupSummary{g.Checkpoint, g.Tail, g.Runs, r.maxRuns[name], len(g.Trail), g.Retries, g.LeaseLosses}
		s.Retries += g.Retries
		s.LeaseLosses += g.LeaseLosses
	}
	s.Lost, s.RepeatedEffects, s.Wrong = sum.lost, sum.repeated, sum.wrong
	s.CheckFindings = len(f.Findings)
	s.Problems = v.problems
	for _, x := range f.Findings[:min(len(f.Findings), maxProblems)] {
		s.Problems = append(s.Problems, "check of the store: "+x)
	}
	s.Seconds = math.Round(took.Seconds()*1000) / 1000
	if r.options.Keep {
		s.Dir = r.dir
	}
}

// print writes the result: one object, or a table for people.
func (r *run) print(v *verdict) error {
	if r.options.JSON {
		b, err := json.Marshal(&r.summary)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(r.options.Out, "%s\n", b)
		return err
	}
	_, err := fmt.Fprint(r.options.Out, r.render(v))
	return err
}

func (r *run) render(v *verdict) string {
	s := &r.summary
	w := table.NewWriter()
	w.SetStyle(table.StyleLight)
	if r.options.Plain || r.options.Terminal && !unicodeTerminal() {
		w.SetStyle(table.StyleDefault)
	}
	w.Style().Format.Header = text.FormatDefault
	readBack := "from the input, read back by a fresh process"
	if s.Nodes > 0 {
		readBack = "from the input, read back from the cluster"
	}
	w.AppendHeader(table.Row{readBack, "expected", "found", "lost", "repeated", "wrong"})
	var columns []table.ColumnConfig
	for n := 2; n <= 6; n++ {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	w.SetColumnConfigs(columns)
	for _, x := range v.rows {
		w.AppendRow(table.Row{x.what, x.expected, x.found, x.lost, x.repeated, x.wrong})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n\n", w.Render())
	fmt.Fprintf(&b, "killed %s, %d of them with gaps in a group; %d repeated batches answered by their receipts;\n",
		many(int64(s.Kills), "time"), s.KillsInGaps, s.ReplayedReceipts)
	fmt.Fprintf(&b, "%d attempts given back and retried; %d leases renewed; %d leases ran out;\n", s.Retries, s.Renewals, s.LeaseLosses)
	fmt.Fprintf(&b, "%d workers came back after their lease and changed nothing; check of the store: %d findings\n", s.LateRefused, s.CheckFindings)
	for i := range groups {
		g := s.Groups[groups[i].name]
		fmt.Fprintf(&b, "group %s: checkpoint %d of %d, %s left, up to %d on the way\n", groups[i].name, g.Checkpoint, g.Tail, many(g.GapRuns, "gap"), g.MaxGapRuns)
	}
	if s.DigestsEqual != nil {
		fmt.Fprintf(&b, "%s, of which the leader of the busy shard was killed each time; the same state on all of them: %v\n", many(int64(s.Nodes), "node"), *s.DigestsEqual)
	}
	for _, p := range s.Problems {
		fmt.Fprintf(&b, "  %s\n", p)
	}
	if s.proved(r.options.Kills) {
		fmt.Fprintf(&b, "\nEverything is there exactly once. %.1f s, seed %d.\n", s.Seconds, s.Seed)
	} else {
		fmt.Fprintf(&b, "\nNOT as it must be: %d lost, %d repeated, %d wrong. Repeat it with --seed %d.\n", s.Lost, s.RepeatedEffects, s.Wrong, s.Seed)
	}
	if s.Dir != "" && s.Nodes > 0 {
		fmt.Fprintf(&b, "\nThe cluster is in %s. Go on with it:\n  %s\n", s.Dir, r.options.Suggest("cluster", "dev", "--dir", s.Dir))
	} else if s.Dir != "" {
		look := r.options.Suggest
		fmt.Fprintf(&b, "\nThe store is in %s. Look at it, for example:\n  %s\n  %s\n  %s\n", s.Dir,
			look("documents", "list", repositories, "--dir", s.Dir), look("queues", "status", queue, "--dir", s.Dir),
			look("subscriptions", "status", topic, groups[0].name, "--dir", s.Dir))
	}
	return b.String()
}
