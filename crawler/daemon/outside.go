package daemon

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// limitFields are the fields of the limits that end what a host makes up without
// end, by the reason for which a URL beyond is refused. Where there is none, the
// limit is fixed. How deep and how far a crawl goes is no such limit: its
// operator wants it to end there.
var limitFields = map[frontier.Reason]string{
	frontier.LongURL:       "scope.max_url_length",
	frontier.ManyRedirects: "scope.max_redirects",
	frontier.DeepPath:      "scope.max_path_depth",
	frontier.RepeatedPath:  "scope.max_repeat",
	frontier.ManyParams:    "scope.max_params",
	frontier.FarCalendar:   "",
	frontier.FullOfPattern: "scope.max_urls_per_pattern",
	frontier.FullHost:      "scope.max_urls_per_host",

	frontier.ManyHostsOfDomain: "scope.max_hosts_per_domain",
	frontier.ManyHosts:         "scope.max_hosts",
	frontier.LowMemory:         "",
}

// maxLimitWarnings is how many warnings of limits, and of seeds, a run gives.
const maxLimitWarnings = 100

// outside counts what Discover refuses in a run, and tells of what may surprise:
// seeds, and hosts that reach a limit.
type outside struct {
	log       *slog.Logger
	onRefused func(storage.Entry, error) // of each; nil: nobody is
	count     atomic.Int64
	seeds     atomic.Int64 // of count

	mu     sync.Mutex
	warned map[hostLimit]bool // at most maxLimitWarnings
}

// A hostLimit is a limit that a host or a domain has reached.
type hostLimit struct {
	host   string // the domain for a limit of a domain; empty: the whole crawl
	reason frontier.Reason
}

// refuse is told of each URL that is refused. A seed that leads away is said,
// since the crawl may be over before it has begun.
func (o *outside) refuse(e storage.Entry, err error) {
	o.count.Add(1)
	if o.onRefused != nil {
		o.onRefused(e, err)
	}
	field, limit := limitFields[frontier.ReasonOf(err)]
	switch {
	case e.Source == storage.Seed:
		if o.seeds.Add(1) <= maxLimitWarnings {
			o.log.Warn("a seed is out of scope", "seed", e.URL, "why", err)
		}
	case limit:
		o.reach(e, err, field)
	case e.Source == storage.Redirect && e.Depth == 0:
		o.log.Warn("a seed redirects to a URL out of scope: crawl from there, or widen the scope with --scope",
			"seed", e.Referrer, "to", e.URL, "why", err)
	}
}

// reach warns when a host, a domain or the crawl reaches a limit for the first time
// in the run.
func (o *outside) reach(e storage.Entry, err error, field string) {
	at := hostLimit{e.URL.Origin().Host(), frontier.ReasonOf(err)}
	who, named := "a host has", "host"
	switch at.reason {
	case frontier.ManyHostsOfDomain:
		who, named, at.host = "a domain has", "domain", frontier.RegistrableDomain(at.host)
	case frontier.ManyHosts:
		who, named, at.host = "the crawl has", "", ""
	case frontier.LowMemory:
		return // the source of Config.LowMemory logs it
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	// The limit of the crawl has one warning, so that many hosts cannot hide it.
	if o.warned[at] || len(o.warned) >= maxLimitWarnings && named != "" {
		return
	}
	if o.warned == nil {
		o.warned = map[hostLimit]bool{}
	}
	o.warned[at] = true
	var attrs []any
	if named != "" {
		attrs = append(attrs, named, at.host)
	}
	attrs = append(attrs, "reason", at.reason, "why", cause(err), "url", shown(e.URL.String()))
	if field != "" {
		attrs = append(attrs, "field", field)
	}
	o.log.Warn(who+" reached a limit; what is beyond is refused, and counted in decorum report", attrs...)
	if len(o.warned) == maxLimitWarnings && named != "" {
		o.log.Warn("further hosts that reach limits are named by decorum report only")
	}
}
