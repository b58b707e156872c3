package metrics

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

var (
	queuedDesc    = prometheus.NewDesc(prefix+"_queued", "URLs in queues, of all projects.", nil, nil)
	hostsDesc     = prometheus.NewDesc(prefix+"_hosts", "Hosts with URLs to visit, of all projects, by whether one can be visited now.", []string{"state"}, nil)
	shortfallDesc = prometheus.NewDesc(prefix+"_delay_shortfall_seconds", "The most by which the rest of a host ever fell short: must be 0.", nil, nil)
	pausedDesc    = prometheus.NewDesc(prefix+"_visits_paused",
		"1 while no visit begins because they fail on this machine, for lack of a network or of descriptors, else 0.", nil, nil)
	limitDesc = prometheus.NewDesc(prefix+"_visit_limit",
		"Visits at a time, of all projects, where the machine is too busy for more; 0: no such limit.", nil, nil)
	projectsDesc = prometheus.NewDesc(prefix+"_projects", "Projects, by state.", []string{"state"}, nil)
)

// collectTimeout is for how long projects are waited for when they are asked.
const collectTimeout = 10 * time.Second

// holdings collects what projects hold now.
type holdings struct {
	projects func(context.Context) ([]api.Project, error)
	log      *slog.Logger
}

// Describe is part of prometheus.Collector.
func (h *holdings) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queuedDesc, hostsDesc, shortfallDesc, pausedDesc, limitDesc, projectsDesc} {
		ch <- d
	}
}

// Collect is part of prometheus.Collector. Projects that cannot be asked leave a
// gap: no number is made up.
func (h *holdings) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	projects, err := h.projects(ctx)
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
		limit = max(limit, p.LoadConcurrencyLimit)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(queuedDesc, float64(queued))
	gauge(hostsDesc, float64(due), "due")
	gauge(hostsDesc, float64(hosts-due), "waiting")
	gauge(pausedDesc, float64(paused))
	gauge(limitDesc, float64(limit))
	gauge(shortfallDesc, time.Duration(shortfall).Seconds())
	for state, n := range states {
		gauge(projectsDesc, float64(n), string(state))
	}
}
