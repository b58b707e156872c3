package engine

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/registrable"
	"github.com/decorum-crawler/decorum/storage"
)

// limitFieldByReason are the fields of the limits that end what a host makes up without
// end, by the reason for which a URL beyond is refused. Where there is none, the
// limit is fixed. How deep and how far a crawl goes is no such limit: its
// operator wants it to end there.
var limitFieldByReason = map[frontier.RefusalReason]string{
	frontier.LongURL:            "scope.max_url_length",
	frontier.TooManyRedirects:   "scope.max_redirects",
	frontier.DeepPath:           "scope.max_path_depth",
	frontier.RepeatedPath:       "scope.max_repeat",
	frontier.TooManyParams:      "scope.max_params",
	frontier.FarCalendar:        "",
	frontier.TooManyPatternURLs: "scope.max_urls_per_pattern",
	frontier.TooManyHostURLs:    "scope.max_urls_per_host",

	frontier.TooManyDomainHosts: "scope.max_hosts_per_domain",
	frontier.TooManyHosts:       "scope.max_hosts",
	frontier.LowMemory:          "",
}

// maxLimitWarnings is how many warnings of limits, and of seeds, a run gives.
const maxLimitWarnings = 100

// DiscoveryRefusalReporter counts what Discover refuses in a run, and tells of what may surprise:
// seeds, and hosts that reach a limit.
type DiscoveryRefusalReporter struct {
	log              *slog.Logger
	onRefused        func(storage.Entry, error) // of each; nil: nobody is
	RefusedURLCount  atomic.Int64
	refusedSeedCount atomic.Int64 // of count

	mu           sync.Mutex
	warnedLimits map[limitWarningKey]bool // at most maxLimitWarnings
}

// A limitWarningKey is a limit that a host or a domain has reached.
type limitWarningKey struct {
	hostOrDomain string // the domain for a limit of a domain; empty: the whole crawl
	reason       frontier.RefusalReason
}

// countAndReportRefusal is told of each URL that is refused. A seed that leads away is said,
// since the crawl may be over before it has begun.
func (o *DiscoveryRefusalReporter) countAndReportRefusal(e storage.Entry, err error) {
	o.RefusedURLCount.Add(1)
	if o.onRefused != nil {
		o.onRefused(e, err)
	}
	field, isLimit := limitFieldByReason[frontier.RefusalReasonOf(err)]
	switch {
	case e.Source == storage.SourceSeed:
		if o.refusedSeedCount.Add(1) <= maxLimitWarnings {
			o.log.Warn("a seed is out of scope", "seed", e.URL, "why", err)
		}
	case isLimit:
		o.warnLimitReached(e, err, field)
	case e.Source == storage.SourceRedirect && e.Depth == 0:
		o.log.Warn("a seed redirects to a URL out of scope: crawl from there, or widen the scope with --scope",
			"seed", e.Referrer, "to", e.URL, "why", err)
	}
}

// warnLimitReached warns when a host, a domain or the crawl reaches a limit for the first time
// in the run.
func (o *DiscoveryRefusalReporter) warnLimitReached(e storage.Entry, err error, field string) {
	limit := limitWarningKey{e.URL.Origin().Host(), frontier.RefusalReasonOf(err)}
	subject, key := "a host has", "host"
	switch limit.reason {
	case frontier.TooManyDomainHosts:
		subject, key, limit.hostOrDomain = "a domain has", "domain", registrable.Domain(limit.hostOrDomain)
	case frontier.TooManyHosts:
		subject, key, limit.hostOrDomain = "the crawl has", "", ""
	case frontier.LowMemory:
		return // the source of Config.IsMemoryLow logs it
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	// The limit of the crawl has one warning, so that many hosts cannot hide it.
	if o.warnedLimits[limit] || len(o.warnedLimits) >= maxLimitWarnings && key != "" {
		return
	}
	if o.warnedLimits == nil {
		o.warnedLimits = map[limitWarningKey]bool{}
	}
	o.warnedLimits[limit] = true
	var attrs []any
	if key != "" {
		attrs = append(attrs, key, limit.hostOrDomain)
	}
	attrs = append(attrs, "reason", limit.reason, "why", InnerErrorText(err), "url", plaintext.TruncateURL(e.URL.String()))
	if field != "" {
		attrs = append(attrs, "field", field)
	}
	o.log.Warn(subject+" reached a limit; what is beyond is refused, and counted in decorum report", attrs...)
	if len(o.warnedLimits) == maxLimitWarnings && key != "" {
		o.log.Warn("further hosts that reach limits are named by decorum report only")
	}
}

// InnerErrorText returns why something was refused, without what and where.
func InnerErrorText(err error) string {
	if e, ok := errors.AsType[*decorum.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}
