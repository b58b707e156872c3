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
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

const namespace = "decorum"

// Metrics are the numbers of a daemon, in a registry of their own. Its methods may
// be called at the same time.
type Metrics struct {
	registry       *prometheus.Registry
	visits         *prometheus.CounterVec
	visitSeconds   prometheus.Histogram
	bodyBytes      prometheus.Counter
	discovered     *prometheus.CounterVec
	refused        *prometheus.CounterVec
	robotsFetches  *prometheus.CounterVec
	robotsRechecks *prometheus.CounterVec
	commitSeconds  prometheus.Histogram
	panics         prometheus.Counter
	pagesWithheld  prometheus.Counter
	retries        *prometheus.CounterVec
	localFailures  prometheus.Counter
}

// New returns metrics of a daemon that has done nothing yet. What projects hold
// is asked of when it is collected.
func New(listProjects func(context.Context) ([]api.Project, error), log *slog.Logger) *Metrics {
	m := &Metrics{
		registry:       prometheus.NewRegistry(),
		visits:         newCounterVec("visits_total", "Requests that were sent, robots.txt and sitemaps included, by the class of the answer's status; none: no whole answer came.", "project", "status_class"),
		visitSeconds:   newHistogram("visit_seconds", "From the start of a request to the end of its answer.", prometheus.ExponentialBuckets(0.005, 2, 14)),
		bodyBytes:      newCounter("bytes_total", "Bytes of bodies that were received, as decoded."),
		discovered:     newCounterVec("discovered_total", "URLs that were queued because they were new, by where they were found.", "source"),
		refused:        newCounterVec("refused_total", "URLs that were not queued or not visited, each time, by reason.", "reason"),
		robotsFetches:  newCounterVec("robots_fetch_total", "Requests for robots.txt files, by what came of the lookup.", "outcome"),
		robotsRechecks: newCounterVec("robots_rechecks_total", "Lookups of robots.txt files that were known, by what became of them.", "result"),
		commitSeconds:  newHistogram("store_commit_seconds", "Time to make changes of the state durable.", prometheus.ExponentialBuckets(0.001, 2, 14)),
		panics:         newCounter("callback_panics_total", "Visits whose callbacks panicked."),
		pagesWithheld:  newCounter("pages_withheld_total", "Pages whose site asks not to use them for what the crawl is for."),
		localFailures:  newCounter("local_failures_total", "Visits that failed on this machine; they are made again, and no host is charged."),
		retries:        newCounterVec("retries_total", "Pages that will be asked for again because they failed, by the class of failure.", "reason"),
	}
	m.registry.MustRegister(m.visits, m.visitSeconds, m.bodyBytes, m.discovered, m.refused, m.robotsFetches, m.robotsRechecks, m.commitSeconds, m.panics, m.pagesWithheld, m.retries, m.localFailures,
		&allProjectsCollector{listProjects, log}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func newCounter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func newCounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func newHistogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
}

// RegisterBodyMemory adds the memory of the bodies of answers under way.
func (m *Metrics) RegisterBodyMemory(b *bodymem.Budget) {
	gauge := func(name, help string, value func() int64) prometheus.Collector {
		opts := prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}
		return prometheus.NewGaugeFunc(opts, func() float64 { return float64(value()) })
	}
	m.registry.MustRegister(
		gauge("body_memory_limit_bytes", "Bytes that the bodies of all answers under way may take.", b.Size),
		gauge("body_memory_bytes", "Bytes that the bodies of all answers under way take.",
			func() int64 { return b.Usage().Bytes }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: "body_memory_ended_total",
			Help: "Visits that got no memory for the body of their answer; they are made again."},
			func() float64 { return float64(b.Usage().DeniedVisits) }))
}

// Handler serves the metrics, in the format that is asked for.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4})
}

// Hooks returns hooks for a crawl of a project.
func (m *Metrics) Hooks(project string) crawler.Hooks {
	return crawler.Hooks{
		Visited:        func(v *crawler.Visit) { m.countVisit(project, v) },
		VisitRefused:   func(_ storage.Lease, d decorum.Decision) { m.countNotVisited(d) },
		RobotsFetched:  m.countRobotsFetch,
		RetryScheduled: func(_ *crawler.Visit, f crawler.FailureClass) { m.retries.WithLabelValues(f.String()).Inc() },
	}
}

// DeleteProject drops the numbers of a project that is no more.
func (m *Metrics) DeleteProject(project string) {
	m.visits.DeletePartialMatch(prometheus.Labels{"project": project})
}

func (m *Metrics) countVisit(project string, v *crawler.Visit) {
	if errors.Is(v.Err, decorum.Panicked) {
		m.panics.Inc()
	}
	if errors.Is(v.Err, decorum.LocalFailure) {
		m.localFailures.Inc()
	}
	if !v.WasSent() {
		return
	}
	class := "none"
	if s := v.Status(); s > 0 {
		class = strconv.Itoa(s/100) + "xx"
	}
	m.visits.WithLabelValues(project, class).Inc()
	m.visitSeconds.Observe(v.End.Sub(v.Start).Seconds())
	if v.ContentWithheld() {
		m.pagesWithheld.Inc()
	}
	m.bodyBytes.Add(float64(v.BodyLen()))
}

// CountNewURLQueued counts a URL that was queued: frontier.Config.OnNewURLQueued.
func (m *Metrics) CountNewURLQueued(e storage.Entry) {
	m.discovered.WithLabelValues(e.Source.String()).Inc()
}

// CountRefusedURL counts a URL that was not queued: frontier.Config.OnRefused.
func (m *Metrics) CountRefusedURL(_ storage.Entry, err error) {
	m.refused.WithLabelValues(string(frontier.RefusalReasonOf(err))).Inc()
}

// countNotVisited counts a URL whose turn it was, and that was not visited.
func (m *Metrics) countNotVisited(d decorum.Decision) {
	m.refused.WithLabelValues(notVisitedReason(d)).Inc()
	if d.Reason == decorum.ReasonLocalFailure || d.Reason == decorum.ReasonBodyMemory {
		m.localFailures.Inc()
	}
}

// notVisitedReason returns why a URL was not visited, in a word.
func notVisitedReason(d decorum.Decision) string {
	switch d.Reason {
	case decorum.ReasonScope:
		return string(frontier.RefusalReasonOf(d.Err()))
	case decorum.ReasonTDMRep:
		return "tdmrep"
	case decorum.ReasonRobots:
		return "robots"
	case decorum.ReasonRobotsPending, decorum.ReasonRobotsUnreachable, decorum.ReasonTDMRepPending, decorum.ReasonTDMRepUnreachable,
		decorum.ReasonVisitHours, decorum.ReasonCrawlDelay, decorum.ReasonHostPages, decorum.ReasonHostBytes:
		return "robots_awaited"
	case decorum.ReasonHostRest, decorum.ReasonHostBusy, decorum.ReasonAddressBusy, decorum.ReasonRequestRate,
		decorum.ReasonOtherProcesses, decorum.ReasonBrake, decorum.ReasonNetwork:
		return "not_due"
	case decorum.ReasonLocalFailure, decorum.ReasonBodyMemory:
		return "local"
	case decorum.ReasonPageLimit, decorum.ReasonByteLimit:
		return "limit"
	case decorum.ReasonDropped, decorum.ReasonRobotsRedirect:
		return "dropped"
	}
	return "other"
}

func (m *Metrics) countRobotsFetch(l gate.RecordFetchResult) {
	m.robotsFetches.WithLabelValues(l.Outcome.String()).Inc()
	if l.RecheckResult != gate.NoRecheck {
		m.robotsRechecks.WithLabelValues(string(l.RecheckResult)).Inc()
	}
}

// ObserveCommit notes how long it took to make changes durable: bolt.Options.OnCommitted.
func (m *Metrics) ObserveCommit(duration time.Duration) { m.commitSeconds.Observe(duration.Seconds()) }

var (
	queuedDesc    = prometheus.NewDesc(namespace+"_queued", "URLs in queues, of all projects.", nil, nil)
	hostsDesc     = prometheus.NewDesc(namespace+"_hosts", "Hosts with URLs to visit, of all projects, by whether one can be visited now.", []string{"state"}, nil)
	shortfallDesc = prometheus.NewDesc(namespace+"_delay_shortfall_seconds", "The most by which the rest of a host ever fell short: must be 0.", nil, nil)
	pausedDesc    = prometheus.NewDesc(namespace+"_visits_paused",
		"1 while no visit begins because they fail on this machine, for lack of a network or of descriptors, else 0.", nil, nil)
	concurrencyLimitDesc = prometheus.NewDesc(namespace+"_visit_limit",
		"Visits at a time, of all projects, where the machine is too busy for more; 0: no such limit.", nil, nil)
	projectsDesc = prometheus.NewDesc(namespace+"_projects", "Projects, by state.", []string{"state"}, nil)
)

// collectTimeout is for how long projects are waited for when they are asked.
const collectTimeout = 10 * time.Second

// allProjectsCollector collects what projects hold now.
type allProjectsCollector struct {
	listProjects func(context.Context) ([]api.Project, error)
	log          *slog.Logger
}

// Describe is part of prometheus.Collector.
func (h *allProjectsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queuedDesc, hostsDesc, shortfallDesc, pausedDesc, concurrencyLimitDesc, projectsDesc} {
		ch <- d
	}
}

// Collect is part of prometheus.Collector. Projects that cannot be asked leave a
// gap: no number is made up.
func (h *allProjectsCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	projects, err := h.listProjects(ctx)
	if err != nil {
		h.log.Warn("metrics lack what projects hold", "error", err)
		return
	}
	var queued, due, hosts, paused, limit int
	var shortfall api.Milliseconds
	states := map[api.ProjectState]int{api.StateRunning: 0, api.StatePausing: 0, api.StatePaused: 0, api.StateStopped: 0, api.StateDone: 0, api.StateFailed: 0}
	for _, p := range projects {
		queued += p.FrontierCounts.QueuedURLs
		due += p.FrontierCounts.DueHosts
		hosts += p.FrontierCounts.QueuedHosts
		shortfall = max(shortfall, p.LargestDelayShortfall)
		states[p.State]++
		if p.MachinePauseReason != "" {
			paused = 1
		}
		limit = max(limit, p.MachineLoadVisitLimit)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(queuedDesc, float64(queued))
	gauge(hostsDesc, float64(due), "due")
	gauge(hostsDesc, float64(hosts-due), "waiting")
	gauge(pausedDesc, float64(paused))
	gauge(concurrencyLimitDesc, float64(limit))
	gauge(shortfallDesc, time.Duration(shortfall).Seconds())
	for state, n := range states {
		gauge(projectsDesc, float64(n), string(state))
	}
}
