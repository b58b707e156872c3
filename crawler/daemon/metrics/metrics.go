// Package metrics counts what the crawls of a daemon do, for Prometheus. It looks
// on by hooks, and decides nothing.
//
// The number of series is bounded: labels are names of projects, which are
// forgotten with them, and words of this module; hosts and URLs are none.
package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

const prefix = "decorum"

// Metrics are the numbers of a daemon, in a registry of their own. Its methods may
// be called at the same time.
type Metrics struct {
	registry   *prometheus.Registry
	visits     *prometheus.CounterVec
	took       prometheus.Histogram
	bytes      prometheus.Counter
	discovered *prometheus.CounterVec
	refused    *prometheus.CounterVec
	robots     *prometheus.CounterVec
	rechecks   *prometheus.CounterVec
	commits    prometheus.Histogram
	panics     prometheus.Counter
	withheld   prometheus.Counter
	retries    *prometheus.CounterVec
	local      prometheus.Counter
}

// New returns metrics of a daemon that has done nothing yet. What projects hold
// is asked of when it is collected.
func New(projects func(context.Context) ([]api.Project, error), log *slog.Logger) *Metrics {
	m := &Metrics{
		registry:   prometheus.NewRegistry(),
		visits:     counters("visits_total", "Requests that were sent, robots.txt and sitemaps included, by the class of the answer's status; none: no whole answer came.", "project", "status_class"),
		took:       histogram("visit_seconds", "From the start of a request to the end of its answer.", prometheus.ExponentialBuckets(0.005, 2, 14)),
		bytes:      counter("bytes_total", "Bytes of bodies that were received, as decoded."),
		discovered: counters("discovered_total", "URLs that were queued because they were new, by where they were found.", "source"),
		refused:    counters("refused_total", "URLs that were not queued or not visited, each time, by reason.", "reason"),
		robots:     counters("robots_fetch_total", "Requests for robots.txt files, by what came of the lookup.", "outcome"),
		rechecks:   counters("robots_rechecks_total", "Lookups of robots.txt files that were known, by what became of them.", "result"),
		commits:    histogram("store_commit_seconds", "Time to make changes of the state durable.", prometheus.ExponentialBuckets(0.001, 2, 14)),
		panics:     counter("callback_panics_total", "Visits whose callbacks panicked."),
		withheld:   counter("pages_withheld_total", "Pages whose site asks not to use them for what the crawl is for."),
		local:      counter("local_failures_total", "Visits that failed on this machine; they are made again, and no host is charged."),
		retries:    counters("retries_total", "Pages that will be asked for again because they failed, by the class of failure.", "reason"),
	}
	m.registry.MustRegister(m.visits, m.took, m.bytes, m.discovered, m.refused, m.robots, m.rechecks, m.commits, m.panics, m.withheld, m.retries, m.local,
		&holdings{projects, log}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: prefix, Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: prefix, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: prefix, Name: name, Help: help, Buckets: buckets})
}

// BodyMemory adds the memory of the bodies of answers under way. use returns the bytes
// reserved now, and the number of visits that ended because they got no memory.
func (m *Metrics) BodyMemory(limit int64, usage func() (inUse, ended int64)) {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: prefix, Name: name, Help: help}, value)
	}
	m.registry.MustRegister(
		gauge("body_memory_limit_bytes", "Bytes that the bodies of all answers under way may take.",
			func() float64 { return float64(limit) }),
		gauge("body_memory_bytes", "Bytes that the bodies of all answers under way take.", func() float64 {
			inUse, _ := usage()
			return float64(inUse)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: prefix, Name: "body_memory_ended_total",
			Help: "Visits that got no memory for the body of their answer; they are made again."}, func() float64 {
			_, ended := usage()
			return float64(ended)
		}))
}

// Handler serves the metrics, in the format that is asked for.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4})
}

// Hooks returns hooks for a crawl of a project.
func (m *Metrics) Hooks(project string) crawler.Hooks {
	return crawler.Hooks{
		Visited:       func(v *crawler.Visit) { m.visited(project, v) },
		Refused:       func(_ storage.Lease, err error) { m.turnedDown(err) },
		RobotsFetched: m.learnt,
		Retried:       func(_ *crawler.Visit, f crawler.FailureClass) { m.retries.WithLabelValues(f.String()).Inc() },
	}
}

// Forget drops the numbers of a project that is no more.
func (m *Metrics) Forget(project string) {
	m.visits.DeletePartialMatch(prometheus.Labels{"project": project})
}

func (m *Metrics) visited(project string, v *crawler.Visit) {
	if errors.Is(v.Err, decorum.Panicked) {
		m.panics.Inc()
	}
	if errors.Is(v.Err, decorum.Local) {
		m.local.Inc()
	}
	if !v.Sent() {
		return
	}
	class := "none"
	if s := v.Status(); s > 0 {
		class = strconv.Itoa(s/100) + "xx"
	}
	m.visits.WithLabelValues(project, class).Inc()
	m.took.Observe(v.End.Sub(v.Start).Seconds())
	if v.Withheld() {
		m.withheld.Inc()
	}
	m.bytes.Add(float64(v.BodyLen()))
}

// Discovered counts a URL that was queued: frontier.Config.OnDiscovered.
func (m *Metrics) Discovered(e storage.Entry) { m.discovered.WithLabelValues(e.Source.String()).Inc() }

// Refused counts a URL that was not queued: frontier.Config.OnRefused.
func (m *Metrics) Refused(_ storage.Entry, err error) {
	m.refused.WithLabelValues(string(frontier.RefusalReasonOf(err))).Inc()
}

// turnedDown counts a URL whose turn it was, and that was not visited.
func (m *Metrics) turnedDown(err error) {
	m.refused.WithLabelValues(reasonOf(err)).Inc()
	if errors.Is(err, decorum.Local) {
		m.local.Inc()
	}
}

// reasonOf returns why a URL was not visited, in a word.
func reasonOf(err error) string {
	var (
		early     politeness.TooEarly
		busy      *politeness.Busy
		postponed *robots.PostponedError

		refusal *robots.Refusal
	)
	switch {
	case errors.Is(err, decorum.OutOfScope):
		return string(frontier.RefusalReasonOf(err))
	case errors.As(err, &refusal) && refusal.TDMRep != "":
		return "tdmrep"
	case errors.Is(err, decorum.Disallowed):
		return "robots"
	case errors.As(err, &postponed), errors.Is(err, decorum.Pending):
		return "robots_awaited"
	case errors.As(err, &early), errors.As(err, &busy), errors.Is(err, decorum.NotDue):
		return "not_due"
	case errors.Is(err, decorum.Local):
		return "local"
	case errors.Is(err, crawler.ErrPages), errors.Is(err, crawler.ErrBytes):
		return "limit"
	case errors.Is(err, decorum.Dropped):
		return "dropped"
	}
	return "other"
}

func (m *Metrics) learnt(l robots.Lesson) {
	m.robots.WithLabelValues(l.Outcome.String()).Inc()
	if l.Recheck != robots.NoRecheck {
		m.rechecks.WithLabelValues(string(l.Recheck)).Inc()
	}
}

// Committed notes how long it took to make changes durable: bolt.Options.OnCommitted.
func (m *Metrics) Committed(took time.Duration) { m.commits.Observe(took.Seconds()) }
