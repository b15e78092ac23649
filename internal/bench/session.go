package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"

	"github.com/keyload/keyload/api"
)

// session is one measurement: workloads, each in several modes and with several
// sizes of payloads.
type session struct {
	workloads []Workload
	modes     []Mode
	payloads  []int
	runs      int
	limit     limit
	backlog   int
	durable   api.Durability
	profile   string // file for processor profiles of embedded runs, "" for none
	dir       string // the session's own
	appends   int    // with fsync, to measure the disk before and after

	server   func(ctx context.Context, dir string) (*exec.Cmd, error)
	program  func() (string, error) // what the nodes of a cluster run
	progress *progress
	observe  func(messageID string)
	stores   int // made so far
}

// heldPerSecond is how many messages D gets for each second. A store that drains
// more ends before the time.
const heldPerSecond = 100_000

// setting is one row of the report: a workload in one mode with one size.
type setting struct {
	Workload
	mode    Mode
	payload int
}

// label names a setting on a line of progress.
func (s setting) label() string { return fmt.Sprintf("%s %s %d B", s.Name, s.mode, s.payload) }

// measure does every run and reports the medians.
func (s *session) measure(ctx context.Context) (*Report, error) {
	report := &Report{Machine: machine(), Durability: s.durable}
	var err error
	if report.Machine.FsyncMillis, err = fsyncMillis(s.dir, s.appends); err != nil {
		return nil, err
	}
	for _, size := range s.payloads {
		for _, w := range s.workloads {
			for _, mode := range s.modes {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				set := setting{w, mode, size}
				result, err := s.setting(ctx, set)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", set.label(), err)
				}
				report.Results = append(report.Results, result)
				s.progress.line(result.line())
			}
		}
	}
	report.Machine.FsyncAfterMillis, err = fsyncMillis(s.dir, s.appends)
	return report, err
}

// setting does the runs of one row, each on a new store unless the workload
// keeps one, and answers the run in the middle.
func (s *session) setting(ctx context.Context, set setting) (result *Result, err error) {
	var b *bed
	var done []*Result
	defer func() {
		if b != nil {
			err = errors.Join(err, b.close())
		}
	}()
	for i := range s.runs {
		if b != nil && !set.once {
			closing := b
			b = nil
			if err := closing.close(); err != nil {
				return nil, err
			}
		}
		label := fmt.Sprintf("%s, run %d of %d", set.label(), i+1, s.runs)
		if b == nil {
			if b, err = s.open(ctx, set, label); err != nil {
				return nil, err
			}
		}
		r, err := s.run(ctx, b, set, label, i == s.runs-1)
		if err != nil {
			return nil, err
		}
		done = append(done, r)
	}
	return median(done), nil
}

// open makes a store and whatever the workload needs in it.
func (s *session) open(ctx context.Context, set setting, label string) (*bed, error) {
	s.stores++
	dir := filepath.Join(s.dir, fmt.Sprintf("store-%d", s.stores))
	b := &bed{workload: set.Workload, payloads: payloads(set.payload), backlog: s.backlog, observe: s.observe}
	b.held = set.Batch * int(s.limit.cycles+1)
	if s.limit.cycles == 0 {
		b.held = int(s.limit.time.Seconds() * heldPerSecond)
	}
	var err error
	switch set.mode {
	case Embedded:
		b.target, err = openEmbedded(dir, s.durable)
	case Cluster:
		b.target, err = openCluster(ctx, dir, s.program)
	default:
		var cmd *exec.Cmd
		if cmd, err = s.server(ctx, dir); err == nil {
			b.target, err = openServer(cmd, set.mode == HTTP)
		}
	}
	if err != nil {
		return nil, err
	}
	shut := b.close
	b.close = func() error { return errors.Join(shut(), os.RemoveAll(dir)) }
	if err := s.ready(ctx, b, label); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// ready configures and prepares a store.
func (s *session) ready(ctx context.Context, b *bed, label string) (err error) {
	if err := b.configure(ctx); err != nil {
		return err
	}
	if b.workload.probe {
		if b.probes[0], err = b.probe(ctx); err != nil {
			return err
		}
	}
	if b.workload.prepare != nil {
		total := float64(max(b.backlog, 1))
		if !b.workload.once {
			total = float64(1 + b.held)
		}
		stop := s.progress.watch(label+": storing messages", func() float64 { return float64(b.loaded.Load()) / total })
		err := b.workload.prepare(ctx, b)
		stop()
		if err != nil {
			return err
		}
	}
	if b.workload.probe {
		b.probes[1], err = b.probe(ctx)
	}
	return err
}

// run measures once and checks the store's counters against the clients'.
func (s *session) run(ctx context.Context, b *bed, set setting, label string, last bool) (*Result, error) {
	d := newDrive(b)
	if err := d.warm(ctx); err != nil {
		return nil, err
	}
	if err := b.resetPeak(); err != nil {
		return nil, err
	}
	before, err := b.sample()
	if err != nil {
		return nil, err
	}
	d.processor = processorTime()
	stopProfile, err := s.startProfile(set, last)
	if err != nil {
		return nil, err
	}
	stop := s.progress.watch(label, func() float64 { return d.share(s.limit) })
	err = d.run(ctx, s.limit)
	stop()
	stopProfile()
	d.processor = processorTime() - d.processor
	if err != nil {
		return nil, err
	}
	after, err := b.sample()
	if err != nil {
		return nil, err
	}
	b.done.add(d.total.tally)
	if err := b.verify(ctx); err != nil {
		return nil, fmt.Errorf("the figures are worth nothing, the counters disagree: %w", err)
	}
	return newResult(set, b, d, before, after), nil
}

// startProfile profiles the last embedded run of each setting. With several
// settings each gets a file of its own.
func (s *session) startProfile(set setting, last bool) (stop func(), err error) {
	if s.profile == "" || set.mode != Embedded || !last {
		return func() {}, nil
	}
	name := s.profile
	if len(s.workloads)*len(s.payloads) > 1 {
		ext := filepath.Ext(name)
		name = fmt.Sprintf("%s-%s-%d%s", name[:len(name)-len(ext)], set.Name, set.payload, ext)
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// median is the run whose rate is in the middle, with all rates.
func median(runs []*Result) *Result {
	slices.SortFunc(runs, func(a, b *Result) int {
		switch {
		case a.PerSecond < b.PerSecond:
			return -1
		case a.PerSecond > b.PerSecond:
			return 1
		}
		return 0
	})
	m := runs[len(runs)/2]
	for _, r := range runs {
		m.RunsPerSecond = append(m.RunsPerSecond, r.PerSecond)
	}
	return m
}
