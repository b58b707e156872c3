package project

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"mime"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones of windows, for machines without a database of them

	"github.com/decorum-crawler/decorum/crawler/internal/dialrules"
	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
	"github.com/decorum-crawler/decorum/storage"
)

// minOutputFileSize and maxOutputFileSize are the bounds, in bytes, of the size limits of output
// files.
const minOutputFileSize, maxOutputFileSize = 1 << 10, 1 << 40

// minRequestRate is one request per day, in requests per second. A crawl with a lower rate would
// never end.
const minRequestRate = 1.0 / 86400

var (
	// NamePattern matches valid project names.
	NamePattern    = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	versionPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]*$") // an RFC 9110 token
)

// checkProject returns the first field of p with an invalid value, and how to correct it, or nil.
func checkProject(p *Project) *FieldProblem {
	for _, check := range []func(*Project) *FieldProblem{
		checkAgentSettings, checkSigningSettings, checkSeeds, checkScopeSettings, checkDiscoverySettings,
		checkEnumFields, checkNumbers, checkPolitenessSettings, checkRevisitSettings, checkFetchSettings,
		checkOutputSettings, checkRedisSettings,
	} {
		if f := check(p); f != nil {
			return f
		}
	}
	return nil
}

// NewFieldProblem returns a FieldProblem with a formatted problem. format must use %q for values of
// the file and for texts that repeat them, so that FieldProblem can hide them.
func NewFieldProblem(field, format string, args ...any) *FieldProblem {
	return &FieldProblem{field, ": " + fmt.Sprintf(format, args...)}
}

// checkAgentSettings checks project and agent, except agent.signature.
func checkAgentSettings(p *Project) *FieldProblem {
	if p.Name != "" && !NamePattern.MatchString(p.Name) {
		return NewFieldProblem("project", "%q is not a project's name: expected 1 to 64 of a-z, 0-9 and -", p.Name)
	}
	// The User-Agent header, which has these values, is part of every request.
	for _, f := range []struct {
		field, value string
		maxBytes     int
	}{
		{"agent.product", p.Agent.Product, httpheader.MaxProductBytes},
		{"agent.version", p.Agent.Version, httpheader.MaxProductBytes},
		{"agent.contact", p.Agent.Contact, httpheader.MaxContactBytes},
	} {
		if len(f.value) > f.maxBytes {
			return NewFieldProblem(f.field, "%d bytes are too many for a value in every request: expected at most %d",
				len(f.value), f.maxBytes)
		}
	}
	// Tokens that no robots.txt can address are refused (AGENT-14).
	if _, err := robots.NewAgent(p.Agent.Product); err != nil {
		return NewFieldProblem("agent.product",
			"%q is not a product token: expected letters, _ and - only, as in examplebot", p.Agent.Product)
	}
	for i, token := range p.Agent.FallbackTokens {
		if _, err := robots.NewAgent(token); err != nil {
			return NewFieldProblem(indexedFieldName("agent.wider", i),
				"%q is not a product token: expected letters, _ and - only, as in examplebot", token)
		}
	}
	if !versionPattern.MatchString(p.Agent.Version) {
		return NewFieldProblem("agent.version", "%q is not a version: expected no blanks and no slashes, as in 1.0",
			p.Agent.Version)
	}
	switch {
	case p.Agent.Contact == "":
		return NewFieldProblem("agent.contact", "contact is required: a URL or mailto: address at which a site "+
			"owner can reach you; set agent.contact or --contact")
	case !httpheader.IsContact(p.Agent.Contact):
		return NewFieldProblem("agent.contact", "%q is not a contact: expected https://example.com/bot or "+
			"mailto:you@example.com, in ASCII", p.Agent.Contact)
	}
	return nil
}

// checkSeeds checks seeds and the names in seed_files. It reads no seed file.
func checkSeeds(p *Project) *FieldProblem {
	if len(p.Seeds) == 0 && len(p.SeedFiles) == 0 {
		return NewFieldProblem("seeds", "nothing to crawl: name URLs on the command line, or set seeds or seed_files")
	}
	for i, s := range p.Seeds {
		if err := p.seedURLProblem(s); err != nil {
			return NewFieldProblem(indexedFieldName("seeds", i), "%q %v", s, err)
		}
	}
	for i, name := range p.SeedFiles {
		if name == "" {
			return NewFieldProblem(indexedFieldName("seed_files", i), "expected the name of a file")
		}
	}
	return nil
}

// indexedFieldName returns the name of one item of a list.
func indexedFieldName(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// checkScopeSettings checks scope.within, the patterns and the parameter rules. checkNumbers checks
// the limits.
func checkScopeSettings(p *Project) *FieldProblem {
	if _, err := frontier.ParseScopeMode(p.Scope.ScopeMode); err != nil {
		return NewFieldProblem("scope.within", "%v", err)
	}
	// include and exclude share one budget.
	budget := newRegexpBudget()
	for _, f := range []struct {
		field    string
		patterns []string
	}{{"scope.include", p.Scope.Include}, {"scope.exclude", p.Scope.Exclude}} {
		for i, pattern := range f.patterns {
			if _, err := budget.compile(pattern); err != nil {
				return newRegexpProblem(indexedFieldName(f.field, i), pattern, err)
			}
		}
	}
	for _, f := range []struct {
		field string
		names []string
	}{{"scope.params.drop", p.Scope.Params.Drop}, {"scope.params.keep", p.Scope.Params.Keep}} {
		for i, name := range f.names {
			if _, err := frontier.NewParamCleaner(frontier.ParamRules{Drop: []string{name}}); err != nil {
				return NewFieldProblem(indexedFieldName(f.field, i), "%v, as in ref or utm_*", err)
			}
		}
	}
	return nil
}

// newRegexpProblem returns the problem of a pattern that is invalid or exceeds the regexpBudget.
func newRegexpProblem(field, pattern string, err error) *FieldProblem {
	if syntaxError := (*syntax.Error)(nil); errors.As(err, &syntaxError) {
		return NewFieldProblem(field, "%q is not a regular expression (RE2): %v", pattern, err)
	}
	return NewFieldProblem(field, "%v", err)
}

// checkDiscoverySettings refuses discover.images beside a handler: its callbacks alone choose the
// URLs to follow, so the setting would have no effect.
func checkDiscoverySettings(p *Project) *FieldProblem {
	if p.Discover.Images && p.Handler != "" {
		return NewFieldProblem("discover.images",
			"the callbacks of handler %q choose which URLs to follow; leave one of the two out", p.Handler)
	}
	return nil
}

// checkEnumFields checks robots and revisit.mode, whose fields each have a few values.
func checkEnumFields(p *Project) *FieldProblem {
	if _, err := robots.ParseDialect(p.Robots.Dialect); err != nil {
		return NewFieldProblem("robots.dialect", "%v", err)
	}
	if _, err := frontier.ParseRevisitMode(p.Revisit.Mode); err != nil {
		return NewFieldProblem("revisit.mode", "%v", err)
	}
	// The sources that say whether a site permits a purpose must not be switched off.
	if len(p.Robots.Purposes) > 0 && !p.Robots.ObeyExtensions {
		return NewFieldProblem("robots.purpose",
			"needs lines of robots.txt that robots.extensions: false ignores; leave one of the two out")
	}
	if len(p.Robots.Purposes) > 0 && !p.Robots.ObeyMetaTags {
		return NewFieldProblem("robots.purpose",
			"needs headers and meta elements that robots.meta: false ignores; leave one of the two out")
	}
	for i, purpose := range p.Robots.Purposes {
		if err := aiuse.ValidatePurposes([]string{purpose}); err != nil {
			return NewFieldProblem(indexedFieldName("robots.purpose", i), "%q is not one of %s",
				purpose, aiuse.KnownPurposes)
		}
	}
	return nil
}

// checkNumbers checks the ranges of numbers and sizes, and the fields that must not be 0.
func checkNumbers(p *Project) *FieldProblem {
	// Ranges. 0 stands for "no limit" or for the default where the range includes it.
	for _, f := range []struct {
		field           string
		value, min, max float64
	}{
		{"scope.max_depth", float64(p.Scope.MaxDepth), 0, 1e6},
		{"scope.max_pages_per_host", float64(p.Scope.MaxPagesPerHost), 0, math.MaxInt32},
		{"scope.max_url_length", float64(p.Scope.MaxURLLength), 16, 1 << 16},
		{"scope.max_params", float64(p.Scope.MaxParams), 0, 1e6},
		{"scope.max_path_depth", float64(p.Scope.MaxPathDepth), 0, 1e6},
		{"scope.max_repeat", float64(p.Scope.MaxPathRepeats), 0, 1e6},
		{"scope.max_redirects", float64(p.Scope.MaxRedirects), 0, 1e6},
		{"scope.max_duplicate_links", float64(p.Scope.MaxDuplicateLinks), 0, math.MaxInt32},
		{"scope.max_duplicates_per_pattern", float64(p.Scope.MaxDuplicatesPerPattern), 0, math.MaxInt32},
		{"scope.max_urls_per_pattern", float64(p.Scope.MaxURLsPerPattern), 0, math.MaxInt32},
		{"scope.max_urls_per_host", float64(p.Scope.MaxURLsPerHost), 0, math.MaxInt32},
		{"scope.max_hosts_per_domain", float64(p.Scope.MaxHostsPerDomain), 0, math.MaxInt32},
		{"scope.max_hosts", float64(p.Scope.MaxHosts), 0, math.MaxInt32},
		{"discover.max_links", float64(p.Discover.MaxLinks), 1, 1e6},
		{"discover.max_sitemaps", float64(p.Discover.MaxSitemapsPerHost), 1, 1e6},
		{"politeness.adaptive", p.Politeness.AdaptiveFactor, 0, 1000},
		{"politeness.concurrency", float64(p.Politeness.Concurrency), 1, 1000},
		{"limits.workers", float64(p.Limits.Workers), 1, 10_000},
		{"limits.pages", float64(p.Limits.Pages), 0, math.MaxInt32},
		{"limits.requests_per_second", p.Limits.RequestsPerSecond, 0, 1e6},
		{"fetch.max_body", float64(p.Fetch.MaxBody), 0, 1 << 40},
		{"fetch.max_sitemap_body", float64(p.Fetch.MaxSitemapBody), 1, 1 << 40},
		{"fetch.max_request_body", float64(p.Fetch.MaxRequestBody), 1, storage.MaxBodyBytes},
		{"fetch.max_header", float64(p.Fetch.MaxHeader), 1 << 10, 16 << 20},
		{"output.warc_max_size", float64(p.Output.WARCMaxFileSize), minOutputFileSize, maxOutputFileSize},
		{"output.ledger_max_size", float64(p.Output.LedgerMaxFileSize), minOutputFileSize, maxOutputFileSize},
	} {
		if !(f.value >= f.min && f.value <= f.max) { // also true for NaN
			return NewFieldProblem(f.field, "%v is out of range: expected %v to %v", formatWithoutExponent(f.value),
				formatWithoutExponent(f.min), formatWithoutExponent(f.max))
		}
	}
	if r := p.Limits.RequestsPerSecond; r > 0 && r < minRequestRate {
		return NewFieldProblem("limits.requests_per_second",
			"%v is less than one request a day: expected 0, for no limit, or more", r)
	}
	// Without these, the crawl could not work; 0 has no special meaning.
	for _, f := range []struct {
		field  string
		isZero bool
	}{
		{"robots.max_ttl", p.Robots.MaxTTL == 0},
		{"politeness.max_crawl_delay", p.Politeness.MaxCrawlDelay == 0},
		{"fetch.timeout", p.Fetch.Timeout == 0},
		{"fetch.max_body", p.Fetch.MaxBody == 0},
		{"output.ledger_checkpoint", p.Output.LedgerCheckpointInterval == 0},
	} {
		if f.isZero {
			return NewFieldProblem(f.field, "expected more than 0")
		}
	}
	return nil
}

// minRevisitInterval and maxRevisitInterval are the bounds of the time between two visits to a page.
const minRevisitInterval, maxRevisitInterval = time.Second, 3650 * day

// checkRevisitSettings checks the intervals of revisit.
func checkRevisitSettings(p *Project) *FieldProblem {
	for _, f := range []struct {
		field string
		value Duration
	}{{"revisit.every", p.Revisit.Interval}, {"revisit.min", p.Revisit.MinInterval},
		{"revisit.max", p.Revisit.MaxInterval}} {
		if d := time.Duration(f.value); d < minRevisitInterval || d > maxRevisitInterval {
			return NewFieldProblem(f.field, "%v is out of range: expected 1s to 3650d", f.value)
		}
	}
	if p.Revisit.MinInterval > p.Revisit.MaxInterval {
		return NewFieldProblem("revisit.min", "%v is longer than revisit.max, %v",
			p.Revisit.MinInterval, p.Revisit.MaxInterval)
	}
	return nil
}

// checkOutputSettings checks output. It refuses WARC files beside a proxy: they record the bytes
// that a server sent, but through a proxy the crawl sees only the bytes of the proxy. It also
// refuses a size limit for standard output, and settings of a ledger that is off.
func checkOutputSettings(p *Project) *FieldProblem {
	if !slices.Contains(allowedFileModes, p.Output.FileMode) {
		return NewFieldProblem("output.mode", "%q is not one of %s", p.Output.FileMode,
			strings.Join(allowedFileModes, ", "))
	}
	switch size := p.Output.JSONLMaxFileSize; {
	case size == 0:
	case p.Output.JSONL == "-":
		return NewFieldProblem("output.jsonl_max_size",
			"cannot be used with output.jsonl: \"-\", since standard output is not a file; leave one of the two out")
	case size < minOutputFileSize || size > maxOutputFileSize:
		return NewFieldProblem("output.jsonl_max_size", "%d is out of range: expected 0, for one file of any size, "+
			"or %d to %d", size, minOutputFileSize, maxOutputFileSize)
	}
	// The settings of the ledger need the ledger. Name the setting that the file has.
	if !p.Output.WriteLedger && (p.Output.LedgerKeyFile != "" || p.Output.RecordRefusalsInLedger) {
		field := "output.ledger_key"
		if p.Output.RecordRefusalsInLedger {
			field = "output.ledger_refusals"
		}
		return NewFieldProblem(field, "has no effect without a ledger; leave it out, or output.ledger: false")
	}
	if p.Output.WARCDir != "" && p.Fetch.Proxy != "" {
		return NewFieldProblem("output.warc", "cannot be used with fetch.proxy: WARC files hold what servers sent, "+
			"byte for byte; leave one of the two out")
	}
	return nil
}

// formatWithoutExponent formats a bound or a value. Whole numbers below 1e15 have no exponent.
func formatWithoutExponent(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return fmt.Sprintf("%d", int64(x))
	}
	return fmt.Sprint(x)
}

// checkPolitenessSettings checks the windows, the limits of IP addresses, and the overrides of
// hosts. checkNumbers checks the other fields of politeness.
func checkPolitenessSettings(p *Project) *FieldProblem {
	window := p.Politeness.Window.check("politeness.window")
	if f := cmp.Or(window, checkConcurrency("politeness.ip.concurrency", p.Politeness.PerIP.Concurrency)); f != nil {
		return f
	}
	// Two names in the file may be the same host. Sort them, so that every run reports the same
	// error.
	named := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(p.Politeness.Hosts)) {
		field := "politeness.hosts." + name
		host, ok := CanonicalHost(name)
		if !ok {
			return NewFieldProblem(field, "%q is not the name of a host: expected no scheme, port, path or "+
				"wildcard, as in intranet.example", name)
		}
		if sameHost, ok := named[host]; ok {
			return NewFieldProblem(field, "%q is the same host as %q", name, sameHost)
		}
		named[host] = name
		if f := p.Politeness.Hosts[name].check(field); f != nil {
			return f
		}
	}
	return nil
}

// check checks the override of one host. field is its path.
func (h HostPoliteness) check(field string) *FieldProblem {
	if f := checkConcurrency(field+".concurrency", h.Concurrency); f != nil {
		return f
	}
	if a := h.AdaptiveFactor; a != nil && !(*a >= 0 && *a <= 1000) { // also true for NaN
		return NewFieldProblem(field+".adaptive", "%v is out of range: expected 0 to 1000", formatWithoutExponent(*a))
	}
	if h.Window != nil {
		return h.Window.check(field + ".window")
	}
	return nil
}

// checkConcurrency checks an optional number of simultaneous visits. field is its path.
func checkConcurrency(field string, n *int) *FieldProblem {
	if n != nil && (*n < 1 || *n > 1000) {
		return NewFieldProblem(field, "%d is out of range: expected 1 to 1000", *n)
	}
	return nil
}

// check checks the zone and the hours of a window. field is its path.
func (w Window) check(field string) *FieldProblem {
	if w.Hours == "" && w.Zone != "" {
		return NewFieldProblem(field, "expected hours, as in 22:00-06:00")
	}
	if _, err := time.LoadLocation(w.Zone); err != nil || w.Zone == "Local" {
		return NewFieldProblem(field+".zone", "%q is not a time zone: expected its IANA name, as in Europe/Prague",
			w.Zone)
	}
	if _, err := w.parse(); err != nil {
		return NewFieldProblem(field+".hours", "%v", err)
	}
	return nil
}

// checkFetchSettings checks fetch and store.path, except for the sizes, which checkNumbers checks.
func checkFetchSettings(p *Project) *FieldProblem {
	for i, t := range p.Fetch.ContentTypes {
		if name, _, err := mime.ParseMediaType(t); err != nil || name != t || !strings.Contains(t, "/") {
			return NewFieldProblem(indexedFieldName("fetch.content_types", i),
				"%q is not a media type: expected type/subtype in lower case, as in text/html", t)
		}
	}
	for i, rule := range p.Fetch.ConnectToRules {
		if _, err := dialrules.ParseConnectTo(rule); err != nil {
			return NewFieldProblem(indexedFieldName("fetch.connect_to", i), "%v (IPv6 addresses in brackets)", err)
		}
	}
	// The names of headers are case-insensitive. Sort them, so that every run reports the same
	// error.
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p.Fetch.Headers)) {
		if lower := strings.ToLower(name); seen[lower] {
			return NewFieldProblem("fetch.headers."+name, "the header is set twice, in upper and lower case")
		} else {
			seen[lower] = true
		}
		if err := httpheader.CheckCustom(name, p.Fetch.Headers[name]); err != nil {
			return NewFieldProblem("fetch.headers."+name, "%v", err)
		}
	}
	if p.Fetch.FirstByteTimeout > p.Fetch.Timeout {
		return NewFieldProblem("fetch.first_byte", "%v is longer than fetch.timeout, %v",
			p.Fetch.FirstByteTimeout, p.Fetch.Timeout)
	}
	// ftp connections bypass the proxy, and callbacks never see ftp visits.
	switch {
	case p.Fetch.FTP && p.Fetch.Proxy != "":
		return NewFieldProblem("fetch.ftp", "%v; leave one of the two out", errProxiedFTP)
	case p.Fetch.FTP && p.Handler != "":
		return NewFieldProblem("fetch.ftp", "%v; leave one of the two out", errFTPWithHandler)
	}
	if p.Store.Path == "" {
		return NewFieldProblem("store.path", "expected the name of a directory")
	}
	if p.Fetch.Proxy == "" {
		return nil
	}
	// Errors about the proxy do not repeat its URL, which may contain a password.
	if _, err := dialrules.ParseProxy(p.Fetch.Proxy); err != nil {
		return NewFieldProblem("fetch.proxy", "%v", err)
	}
	if len(p.Fetch.ConnectToRules) > 0 {
		return NewFieldProblem("fetch.proxy",
			"the proxy makes the connections and ignores fetch.connect_to; leave one of the two out")
	}
	return nil
}
