package metrics

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

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

// projectCollector collects what projects hold now.
type projectCollector struct {
	listProjects func(context.Context) ([]api.Project, error)
	log          *slog.Logger
}

// Describe is part of prometheus.Collector.
func (h *projectCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queuedDesc, hostsDesc, shortfallDesc, pausedDesc, concurrencyLimitDesc, projectsDesc} {
		ch <- d
	}
}

// Collect is part of prometheus.Collector. Projects that cannot be asked leave a
// gap: no number is made up.
func (h *projectCollector) Collect(ch chan<- prometheus.Metric) {
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
