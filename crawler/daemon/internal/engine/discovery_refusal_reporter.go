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

// limitFieldByReason maps the reasons for refusals at a limit against endless URLs, such as URL traps, to
// the field that sets the limit. An empty field means that the limit is fixed. The limit of scope is
// not included, nor that of depth except for lists of pages: the operator wants the crawl to end there.
var limitFieldByReason = map[frontier.RefusalReason]string{
	frontier.DeepChain:          "scope.max_depth",
	frontier.LongURL:            "scope.max_url_length",
	frontier.TooManyRedirects:   "scope.max_redirects",
	frontier.DeepPath:           "scope.max_path_depth",
	frontier.RepeatedPath:       "scope.max_repeat",
	frontier.TooManyParams:      "scope.max_params",
	frontier.FarCalendar:        "",
	frontier.TooManyPatternURLs: "scope.max_urls_per_pattern",
	frontier.TooManyHostURLs:    "scope.max_urls_per_host",
	frontier.DuplicatePattern:   "scope.max_duplicates_per_pattern",
	frontier.DuplicateLinks:     "scope.max_duplicate_links",
	frontier.TooManySortLinks:   "discover.max_sort_links",
	frontier.TooManyFeeds:       "discover.max_feeds",

	frontier.TooManyDomainHosts: "scope.max_hosts_per_domain",
	frontier.TooManyHosts:       "scope.max_hosts",
	frontier.LowMemory:          "",
}

// maxLimitWarnings limits the warnings about hosts at a limit, and those about seeds, in one run.
const maxLimitWarnings = 100

// A DiscoveryRefusalReporter counts the URLs that Frontier.Discover refuses in a run. It logs those that
// may surprise the operator: seeds, and hosts that reach a limit.
type DiscoveryRefusalReporter struct {
	log              *slog.Logger
	onRefused        func(storage.Entry, error) // called for each refused URL; may be nil
	RefusedURLCount  atomic.Int64
	refusedSeedCount atomic.Int64 // the seeds in RefusedURLCount, and what they redirect to

	mu           sync.Mutex               // guards warnedLimits
	warnedLimits map[limitWarningKey]bool // at most maxLimitWarnings, and the one of the crawl
}

// A limitWarningKey identifies a limit that a host, a domain or the crawl has reached.
type limitWarningKey struct {
	hostOrDomain string // empty: the whole crawl, or all hosts alike
	reason       frontier.RefusalReason
}

// countAndReportRefusal counts a refused URL, and logs a refused seed, the target of a seed's redirect
// or the first refusal at a limit. A crawl whose seeds are refused ends at once, so the log must say why.
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
	case !e.SeedOrigin.IsZero() && o.refusedSeedCount.Add(1) <= maxLimitWarnings:
		o.log.Warn("a seed redirects to a URL out of scope", "seed", e.Referrer, "to", e.URL, "why", err)
	}
}

// warnLimitReached logs a warning when a host, a domain or the crawl reaches a limit for the first time in
// the run. field is the one that sets the limit, or empty.
func (o *DiscoveryRefusalReporter) warnLimitReached(e storage.Entry, err error, field string) {
	// Name what has reached the limit.
	limit := limitWarningKey{e.URL.Origin().Host(), frontier.RefusalReasonOf(err)}
	subject, key, name := "a host has", "host", limit.hostOrDomain
	switch limit.reason {
	case frontier.TooManyDomainHosts:
		limit.hostOrDomain = registrable.Domain(name)
		subject, key, name = "a domain has", "domain", limit.hostOrDomain
	case frontier.TooManyHosts:
		subject, key, limit.hostOrDomain = "the crawl has", "", ""
	case frontier.TooManySortLinks, frontier.TooManyFeeds:
		limit.hostOrDomain = "" // many hosts reach it, and it is no sign of a trap: the first host is enough
	case frontier.LowMemory:
		return // NewMemoryPressureMonitor logs it
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	// Warn once for each key. The limit of the whole crawl is exempt from maxLimitWarnings, so that
	// many hosts cannot hide it.
	if o.warnedLimits[limit] || len(o.warnedLimits) >= maxLimitWarnings && key != "" {
		return
	}
	if o.warnedLimits == nil {
		o.warnedLimits = map[limitWarningKey]bool{}
	}
	o.warnedLimits[limit] = true
	var attrs []any
	if key != "" {
		attrs = append(attrs, key, name)
	}
	attrs = append(attrs, "reason", limit.reason, "why", InnerErrorText(err), "url",
		plaintext.TruncateURL(e.URL.String()))
	if field != "" {
		attrs = append(attrs, "field", field)
	}
	o.log.Warn(subject+" reached a limit; further URLs are refused, and counted in decorum report", attrs...)
	if len(o.warnedLimits) == maxLimitWarnings && key != "" {
		o.log.Warn("further hosts that reach limits are named by decorum report only")
	}
}

// InnerErrorText returns the text of the cause inside a *decorum.Error, without its operation and URL. For
// any other error it returns the whole text.
func InnerErrorText(err error) string {
	if e, ok := errors.AsType[*decorum.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}
