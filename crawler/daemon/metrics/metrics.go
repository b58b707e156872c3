package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

const namespace = "decorum"

// Metrics holds the metrics of a daemon, in a registry that is not shared. Its methods are safe for
// concurrent use.
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
	connections    *prometheus.CounterVec
	wireBytes      *prometheus.CounterVec
	notModified    prometheus.Counter
	savedBytes     *prometheus.CounterVec
}

// New returns metrics with all counters at 0. Each scrape calls listProjects for the state of the
// projects; log gets a warning if that fails.
func New(listProjects func(context.Context) ([]api.Project, error), log *slog.Logger) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		visits: newCounterVec("visits_total", "Requests sent, those for robots.txt and sitemaps included, "+
			"by the class of the answer's status; none: no complete answer came.", "project", "status_class"),
		visitSeconds: newHistogram("visit_seconds", "Time from the start of a request to the end of its answer.",
			prometheus.ExponentialBuckets(0.005, 2, 14)),
		bodyBytes: newCounter("bytes_total", "Bytes of the bodies received, as decoded."),
		discovered: newCounterVec("discovered_total",
			"New URLs that were queued, by the source in which they were found.", "source"),
		refused: newCounterVec("refused_total", "Refusals to queue or visit a URL, by reason.", "reason"),
		robotsFetches: newCounterVec("robots_fetch_total",
			"Requests for robots.txt files, by the outcome of the lookup.", "outcome"),
		robotsRechecks: newCounterVec("robots_rechecks_total",
			"Lookups of robots.txt files that were known before, by result.", "result"),
		commitSeconds: newHistogram("store_commit_seconds", "Time to make a change of the state durable.",
			prometheus.ExponentialBuckets(0.001, 2, 14)),
		panics:        newCounter("callback_panics_total", "Visits whose callbacks panicked."),
		pagesWithheld: newCounter("pages_withheld_total", "Pages whose site refuses the crawl's use of them."),
		localFailures: newCounter("local_failures_total",
			"Visits that failed on this machine; they are repeated, and not charged to the host."),
		retries: newCounterVec("retries_total", "Pages that failed and will be tried again, by the class of failure.",
			"reason"),
		connections: newCounterVec("connections_opened_total",
			"Connections opened for visits, by how their TLS handshake went: full, resumed, or none without TLS.",
			"handshake"),
		wireBytes: newCounterVec("wire_bytes_total", "Bytes that the connections to hosts carried, TLS included, "+
			"without TCP and IP, by direction: sent or received.", "direction"),
		notModified: newCounter("not_modified_total", "Answers 304, which have no body."),
		savedBytes: newCounterVec("saved_bytes_total", "Bytes of bodies that hosts did not send, "+
			"by what spared them: compression or revalidation (an answer 304).", "by"),
	}
	// A scrape also collects the state of the projects, of the Go runtime, and of the process.
	m.registry.MustRegister(m.visits, m.visitSeconds, m.bodyBytes, m.discovered, m.refused, m.robotsFetches,
		m.robotsRechecks, m.commitSeconds, m.panics, m.pagesWithheld, m.retries, m.localFailures, m.connections,
		m.wireBytes, m.notModified, m.savedBytes, newBuildInfo(),
		&allProjectsCollector{listProjects, log}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func newCounter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func newCounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func newHistogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name,
		Help: help, Buckets: buckets})
}

// newBuildInfo returns the metric build_info. Its value is 1; its labels say which program runs.
func newBuildInfo() prometheus.Collector {
	labels := prometheus.Labels{"version": decorum.Version(), "revision": "", "goversion": runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				labels["revision"] = s.Value
			}
		}
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "build_info", ConstLabels: labels,
		Help: "1, with the version of decorum, the commit it was built from (empty: unknown), and the version of Go."})
	g.Set(1)
	return g
}

// RegisterBrakes adds metrics of the brakes in force, which hold in all projects. Each scrape calls list.
// It may be called once.
func (m *Metrics) RegisterBrakes(list func(context.Context) ([]api.Brake, error)) {
	m.registry.MustRegister(&brakesCollector{list})
}

// RegisterBodyMemory adds metrics of the memory for the bodies of answers. It may be called once.
func (m *Metrics) RegisterBodyMemory(b *bodymem.Budget) {
	gauge := func(name, help string, value func() int64) prometheus.Collector {
		opts := prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}
		return prometheus.NewGaugeFunc(opts, func() float64 { return float64(value()) })
	}
	m.registry.MustRegister(
		gauge("body_memory_limit_bytes", "Limit of the memory for the bodies of all answers in progress, in bytes.",
			b.Size),
		gauge("body_memory_bytes", "Memory in use for the bodies of all answers in progress, in bytes.",
			func() int64 { return b.Usage().Bytes }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: "body_memory_ended_total",
			Help: "Visits ended because no memory was left for the body of their answer; they are repeated."},
			func() float64 { return float64(b.Usage().DeniedVisits) }))
}

// RegisterIdleConns adds metrics of the connections that are kept open for later visits. It may be called
// once.
func (m *Metrics) RegisterIdleConns(c *httpfetch.IdleConns) {
	gauge := func(name, help string, value func() int) prometheus.Collector {
		opts := prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}
		return prometheus.NewGaugeFunc(opts, func() float64 { return float64(value()) })
	}
	m.registry.MustRegister(
		gauge("idle_connections", "Connections that are kept open for later visits.", c.Len),
		gauge("idle_connections_limit", "Limit of the connections that are kept open for later visits.", c.Limit))
}

// Handler returns the handler of /metrics. It answers in the format that the request accepts, to at
// most four requests at a time.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry,
		promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4})
}

// Hooks returns hooks that count the visits of a project's crawl.
func (m *Metrics) Hooks(project string) crawler.Hooks {
	return crawler.Hooks{
		Visited:        func(v *crawler.Visit) { m.countVisit(project, v) },
		VisitRefused:   func(_ storage.Lease, d decorum.Decision) { m.countNotVisited(d) },
		VisitAborted:   func(_ storage.Lease, t crawler.HostTraffic) { m.countTraffic(t) },
		RobotsFetched:  m.countRobotsFetch,
		RetryScheduled: func(_ *crawler.Visit, f crawler.FailureClass) { m.retries.WithLabelValues(f.String()).Inc() },
	}
}

// DeleteProject removes the series of a deleted project.
func (m *Metrics) DeleteProject(project string) {
	m.visits.DeletePartialMatch(prometheus.Labels{"project": project})
}

// countVisit counts a visit that has ended. A visit that failed before its request was sent counts only
// as a panic or a local failure, and with its connection if it opened one.
func (m *Metrics) countVisit(project string, v *crawler.Visit) {
	if errors.Is(v.Err, decorum.Panicked) {
		m.panics.Inc()
	}
	if errors.Is(v.Err, decorum.LocalFailure) {
		m.localFailures.Inc()
	}
	m.countTraffic(v.Traffic())
	if !v.WasSent() {
		return
	}
	// Count the request and its answer.
	class := "none"
	if s := v.Status(); s > 0 {
		class = strconv.Itoa(s/100) + "xx"
	}
	m.visits.WithLabelValues(project, class).Inc()
	m.visitSeconds.Observe(v.End.Sub(v.Start).Seconds())
	if v.ContentWithheld() {
		m.pagesWithheld.Inc()
	}
}

// countTraffic counts what a visit, or the connection of an aborted one, cost its host; visits_total has its request.
func (m *Metrics) countTraffic(t crawler.HostTraffic) {
	m.bodyBytes.Add(float64(t.Bytes))
	m.notModified.Add(float64(t.NotModified))
	m.connections.WithLabelValues("full").Add(float64(t.FullHandshakes))
	m.connections.WithLabelValues("resumed").Add(float64(t.ResumedHandshakes))
	m.connections.WithLabelValues("none").Add(float64(t.Connections - t.FullHandshakes - t.ResumedHandshakes))
	m.wireBytes.WithLabelValues("sent").Add(float64(t.WireBytesSent))
	m.wireBytes.WithLabelValues("received").Add(float64(t.WireBytesReceived))
	m.savedBytes.WithLabelValues("compression").Add(float64(t.SavedByCompression))
	m.savedBytes.WithLabelValues("revalidation").Add(float64(t.SavedByRevalidation))
}

// CountNewURLQueued counts a URL that was queued. It is for frontier.Config.OnNewURLQueued.
func (m *Metrics) CountNewURLQueued(e storage.Entry) {
	m.discovered.WithLabelValues(e.Source.String()).Inc()
}

// CountRefusedURL counts a URL that was not queued. It is for frontier.Config.OnRefused.
func (m *Metrics) CountRefusedURL(_ storage.Entry, err error) {
	m.refused.WithLabelValues(string(frontier.RefusalReasonOf(err))).Inc()
}

// countNotVisited counts a leased URL that was not visited.
func (m *Metrics) countNotVisited(d decorum.Decision) {
	m.refused.WithLabelValues(notVisitedReason(d)).Inc()
	if d.Reason == decorum.ReasonLocalFailure || d.Reason == decorum.ReasonBodyMemory {
		m.localFailures.Inc()
	}
}

// notVisitedReason returns the label value for a decision not to visit a URL. It groups the reasons
// into the few that dashboards show.
func notVisitedReason(d decorum.Decision) string {
	switch d.Reason {
	case decorum.ReasonScope:
		return string(frontier.RefusalReasonOf(d.Err()))
	case decorum.ReasonTDMRep:
		return "tdmrep"
	case decorum.ReasonRobots:
		return "robots"
	case decorum.ReasonRobotsPending, decorum.ReasonRobotsUnreachable, decorum.ReasonTDMRepPending,
		decorum.ReasonTDMRepUnreachable,
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

// ObserveCommit records how long a commit took. It is for bolt.Options.OnCommitted.
func (m *Metrics) ObserveCommit(duration time.Duration) { m.commitSeconds.Observe(duration.Seconds()) }

var (
	queuedDesc = prometheus.NewDesc(namespace+"_queued", "URLs queued, in all projects.", nil, nil)
	hostsDesc  = prometheus.NewDesc(namespace+"_hosts",
		"Hosts with URLs to visit, in all projects, by whether they can be visited now.", []string{"state"}, nil)
	shortfallDesc = prometheus.NewDesc(namespace+"_delay_shortfall_seconds",
		"The most by which a pause between requests to a host was shorter than required; it must be 0.", nil, nil)
	pausedDesc = prometheus.NewDesc(namespace+"_visits_paused",
		"1 while no visit starts because this machine lacks a network or file descriptors, else 0.", nil, nil)
	concurrencyLimitDesc = prometheus.NewDesc(namespace+"_visit_limit",
		"Limit of visits at a time, in all projects, while the machine is too busy for more; 0: no such limit.", nil,
		nil)
	projectsDesc = prometheus.NewDesc(namespace+"_projects", "Projects, by state.", []string{"state"}, nil)

	// Each project has these; a project that is deleted has them no more.
	projectURLsDesc = prometheus.NewDesc(namespace+"_project_urls", "URLs of a project, by state: queued, of which "+
		"suspended ones are not counted; suspended: queued at origins that are closed for long; leased: of visits in "+
		"flight; parked: disallowed or out of scope; resting: visited, to be visited again.",
		[]string{"project", "state"}, nil)
	projectHostsDesc = prometheus.NewDesc(namespace+"_project_hosts",
		"Hosts of a project with URLs to visit, by whether they can be visited now.", []string{"project", "state"}, nil)
	projectStateDesc = prometheus.NewDesc(namespace+"_project_state",
		"1 for the state that a project is in, 0 for the others.", []string{"project", "state"}, nil)

	brakesDesc = prometheus.NewDesc(namespace+"_brakes",
		"Brakes in force, which hold in all projects, by whether they stop or slow hosts.", []string{"effect"}, nil)
)

// collectTimeout is how long a scrape waits for the state of the projects.
const collectTimeout = 10 * time.Second

// An allProjectsCollector collects the state of all projects at each scrape.
type allProjectsCollector struct {
	listProjects func(context.Context) ([]api.Project, error)
	log          *slog.Logger
}

// Describe implements prometheus.Collector.
func (h *allProjectsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queuedDesc, hostsDesc, shortfallDesc, pausedDesc,
		concurrencyLimitDesc, projectsDesc, projectURLsDesc, projectHostsDesc, projectStateDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. If the projects cannot be listed, it sends nothing, so that
// the series have a gap instead of an invented value.
func (h *allProjectsCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	projects, err := h.listProjects(ctx)
	if err != nil {
		h.log.Warn("metrics lack the state of the projects", "error", err)
		return
	}
	// Sum over the projects. States without a project count as 0.
	var queued, due, hosts, paused, limit int
	var shortfall api.Milliseconds
	states := map[api.ProjectState]int{}
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
		collectProject(ch, p)
	}
	// Send the sums.
	gauge := func(d *prometheus.Desc, v float64, labels ...string) { sendGauge(ch, d, v, labels...) }
	gauge(queuedDesc, float64(queued))
	gauge(hostsDesc, float64(due), "due")
	gauge(hostsDesc, float64(hosts-due), "waiting")
	gauge(pausedDesc, float64(paused))
	gauge(concurrencyLimitDesc, float64(limit))
	gauge(shortfallDesc, time.Duration(shortfall).Seconds())
	for _, state := range projectStates {
		gauge(projectsDesc, float64(states[state]), string(state))
	}
}

// projectStates holds the states of projects.
var projectStates = []api.ProjectState{api.StateRunning, api.StatePausing, api.StatePaused, api.StateStopped,
	api.StateDone, api.StateFailed}

// collectProject sends the gauges of one project.
func collectProject(ch chan<- prometheus.Metric, p api.Project) {
	c := p.FrontierCounts
	for state, n := range map[string]int{"queued": c.QueuedURLs - c.SuspendedURLs, "suspended": c.SuspendedURLs,
		"leased": c.LeasedURLs, "parked": c.ParkedURLs, "resting": c.AwaitingRevisit} {
		sendGauge(ch, projectURLsDesc, float64(n), p.Name, state)
	}
	sendGauge(ch, projectHostsDesc, float64(c.DueHosts), p.Name, "due")
	sendGauge(ch, projectHostsDesc, float64(c.QueuedHosts-c.DueHosts), p.Name, "waiting")
	for _, state := range projectStates {
		is := 0.0
		if p.State == state {
			is = 1
		}
		sendGauge(ch, projectStateDesc, is, p.Name, string(state))
	}
}

func sendGauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// A brakesCollector counts the brakes at each scrape.
type brakesCollector struct {
	list func(context.Context) ([]api.Brake, error)
}

// Describe implements prometheus.Collector.
func (b *brakesCollector) Describe(ch chan<- *prometheus.Desc) { ch <- brakesDesc }

// Collect implements prometheus.Collector. If the brakes cannot be listed, the series have a gap.
func (b *brakesCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	brakes, err := b.list(ctx)
	if err != nil {
		return
	}
	stopped := 0
	for _, brake := range brakes {
		if brake.Stop {
			stopped++
		}
	}
	sendGauge(ch, brakesDesc, float64(stopped), "stop")
	sendGauge(ch, brakesDesc, float64(len(brakes)-stopped), "slow")
}
