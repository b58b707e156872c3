// Package metrics counts what the crawls of a daemon do, and serves the counts to Prometheus. It
// observes crawls through hooks and decides nothing.
//
//	m := metrics.New(daemon.Projects, log)
//	hooks := m.Hooks("books")         // for the project's crawler
//	server.MetricsHandler = m.Handler() // server is an api.ServerConfig
//
// Begin reading at New, which lists the metrics. allProjectsCollector.Collect reads the state of
// projects at each scrape.
//
// The package starts no goroutine and holds no lock of its own. The number of series is limited:
// labels are names of projects, whose series DeleteProject removes, and fixed words. Hosts and URLs
// are never labels.
package metrics
