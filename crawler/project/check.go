package project

import (
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
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
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

// checkProject returns the fields of p with invalid values, each with how to correct it.
func checkProject(p *Project) []FieldProblem {
	found := &problemCollector{reported: map[string]bool{}}
	for _, check := range []func(*Project, *problemCollector){
		checkAgentSettings, checkSigningSettings, checkSeeds, checkScopeSettings, checkDiscoverySettings,
		checkChoices, checkPurposes, checkNumbers, checkPolitenessSettings, checkRevisitSettings, checkFetchSettings,
		checkProxy, checkOutputSettings, checkRedisSettings,
	} {
		check(p, found)
	}
	return found.problems
}

// A problemCollector collects the problems of a project: the first of each field, because the others
// may follow from it.
type problemCollector struct {
	problems []FieldProblem
	reported map[string]bool // by path of the field
}

// add adds a problem as NewFieldProblem formats it.
func (c *problemCollector) add(field, format string, args ...any) {
	if !c.reported[field] {
		c.reported[field] = true
		c.problems = append(c.problems, *NewFieldProblem(field, format, args...))
	}
}

// NewFieldProblem returns a FieldProblem with a formatted problem. format must use %q for values of
// the file and for texts that repeat them, so that FieldProblem can hide them.
func NewFieldProblem(field, format string, args ...any) *FieldProblem {
	return &FieldProblem{field, ": " + fmt.Sprintf(format, args...)}
}

// checkAgentSettings checks project and agent, except agent.signature.
func checkAgentSettings(p *Project, found *problemCollector) {
	if p.Name != "" && !NamePattern.MatchString(p.Name) {
		found.add("project", "%q is not a project's name: expected 1 to 64 of a-z, 0-9 and -", p.Name)
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
			found.add(f.field, "%d bytes are too many for a value in every request: expected at most %d",
				len(f.value), f.maxBytes)
		}
	}
	// Tokens that no robots.txt can address are refused (AGENT-14).
	if _, err := robots.NewAgent(p.Agent.Product); err != nil {
		found.add("agent.product",
			"%q is not a product token: expected letters, _ and - only, as in examplebot", p.Agent.Product)
	}
	for i, token := range p.Agent.FallbackTokens {
		if _, err := robots.NewAgent(token); err != nil {
			found.add(indexedFieldName("agent.wider", i),
				"%q is not a product token: expected letters, _ and - only, as in examplebot", token)
		}
	}
	if !versionPattern.MatchString(p.Agent.Version) {
		found.add("agent.version", "%q is not a version: expected no blanks and no slashes, as in 1.0",
			p.Agent.Version)
	}
	switch {
	case p.Agent.Contact == "":
		found.add("agent.contact", "contact is required: a URL or mailto: address at which a site "+
			"owner can reach you; set agent.contact or --contact")
	case !httpheader.IsContact(p.Agent.Contact):
		found.add("agent.contact", "%q is not a contact: expected https://example.com/bot or "+
			"mailto:you@example.com, in ASCII", p.Agent.Contact)
	}
}

// checkSeeds checks seeds and the names in seed_files. It reads no seed file.
func checkSeeds(p *Project, found *problemCollector) {
	if len(p.Seeds) == 0 && len(p.SeedFiles) == 0 {
		found.add("seeds", "nothing to crawl: set seeds or seed_files; decorum crawl also takes URLs as arguments")
	}
	for i, s := range p.Seeds {
		if err := p.seedURLProblem(s); err != nil {
			found.add(indexedFieldName("seeds", i), "%q %v", s, err)
		}
	}
	for i, name := range p.SeedFiles {
		if name == "" {
			found.add(indexedFieldName("seed_files", i), "expected the name of a file")
		}
	}
}

// indexedFieldName returns the name of one item of a list.
func indexedFieldName(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// checkScopeSettings checks the patterns and the parameter rules of scope.
func checkScopeSettings(p *Project, found *problemCollector) {
	// include and exclude share one budget.
	budget := newRegexpBudget()
	if checkPatterns("scope.include", p.Scope.Include, budget, found) {
		checkPatterns("scope.exclude", p.Scope.Exclude, budget, found)
	}
	for _, f := range []struct {
		field string
		names []string
	}{{"scope.params.drop", p.Scope.Params.Drop}, {"scope.params.keep", p.Scope.Params.Keep}} {
		for i, name := range f.names {
			if _, err := frontier.NewParamCleaner(frontier.ParamRules{Drop: []string{name}}); err != nil {
				found.add(indexedFieldName(f.field, i), "%v, as in ref or utm_*", err)
			}
		}
	}
}

// checkPatterns checks the patterns of a field. It ends at the first that exceeds the budget, and
// reports whether none does.
func checkPatterns(field string, patterns []string, budget *regexpBudget, found *problemCollector) bool {
	for i, pattern := range patterns {
		_, err := budget.compile(pattern)
		switch syntaxError := (*syntax.Error)(nil); {
		case errors.As(err, &syntaxError):
			found.add(indexedFieldName(field, i), "%q is not a regular expression (RE2): %v", pattern, err)
		case err != nil:
			found.add(indexedFieldName(field, i), "%v", err)
			return false
		}
	}
	return true
}

// checkDiscoverySettings refuses discover.images, forms and resources beside a handler: its callbacks alone
// choose the URLs to follow, so the settings would have no effect.
func checkDiscoverySettings(p *Project, found *problemCollector) {
	for _, field := range []struct {
		path  string
		isSet bool
	}{{"discover.images", p.Discover.Images}, {"discover.forms", p.Discover.Forms},
		{"discover.resources", p.Discover.Resources}} {
		if field.isSet && p.Handler != "" {
			found.add(field.path,
				"the callbacks of handler %q choose which URLs to follow; leave one of the two out", p.Handler)
		}
	}
}

// checkPurposes refuses robots.purpose where the crawl ignores the sources that say whether a site
// permits a purpose.
func checkPurposes(p *Project, found *problemCollector) {
	if len(p.Robots.Purposes) > 0 && !p.Robots.ObeyExtensions {
		found.add("robots.purpose",
			"needs lines of robots.txt that robots.extensions: false ignores; leave one of the two out")
	}
	if len(p.Robots.Purposes) > 0 && !p.Robots.ObeyMetaTags {
		found.add("robots.purpose",
			"needs headers and meta elements that robots.meta: false ignores; leave one of the two out")
	}
}

// checkNumbers checks the ranges of numbers and sizes, and the fields that must not be 0.
func checkNumbers(p *Project, found *problemCollector) {
	checkNumberRanges(p, found)
	if r := p.Limits.RequestsPerSecond; r > 0 && r < minRequestRate {
		found.add("limits.requests_per_second",
			"%v is less than one request a day: expected 0, for no limit, or more", r)
	}
	// Without these, the crawl could not work; 0 has no special meaning.
	for _, f := range []struct {
		field  string
		isZero bool
	}{
		{"robots.max_ttl", p.Robots.MaxTTL == 0},
		{"politeness.max_crawl_delay", p.Politeness.MaxCrawlDelay == 0},
		{"politeness.backoff.initial", p.Politeness.Backoff.Initial == 0},
		{"fetch.timeout", p.Fetch.Timeout == 0},
		{"fetch.max_body", p.Fetch.MaxBody == 0},
		{"output.ledger_checkpoint", p.Output.LedgerCheckpointInterval == 0},
	} {
		if f.isZero {
			found.add(f.field, "expected more than 0")
		}
	}
}

// minRevisitInterval and maxRevisitInterval are the bounds of the time between two visits to a page.
const minRevisitInterval, maxRevisitInterval = time.Second, 3650 * day

// checkRevisitSettings checks the intervals of revisit.
func checkRevisitSettings(p *Project, found *problemCollector) {
	for _, f := range []struct {
		field string
		value Duration
	}{{"revisit.every", p.Revisit.Interval}, {"revisit.min", p.Revisit.MinInterval},
		{"revisit.max", p.Revisit.MaxInterval}} {
		if d := time.Duration(f.value); d < minRevisitInterval || d > maxRevisitInterval {
			found.add(f.field, "%v is out of range: expected 1s to 3650d", f.value)
		}
	}
	for _, f := range []struct {
		field string
		value Duration
	}{{"revisit.max_freshness", p.Revisit.MaxFreshness},
		{"revisit.max_heuristic_freshness", p.Revisit.MaxHeuristicFreshness},
		{"revisit.max_sitemap_freshness", p.Revisit.MaxSitemapFreshness}} {
		if d := time.Duration(f.value); d < 0 || d > maxRevisitInterval {
			found.add(f.field, "%v is out of range: expected 0s to 3650d", f.value)
		}
	}
	if p.Revisit.MinInterval > p.Revisit.MaxInterval {
		found.add("revisit.min", "%v is longer than revisit.max, %v",
			p.Revisit.MinInterval, p.Revisit.MaxInterval)
	}
}

// checkOutputSettings checks output. It refuses WARC files beside a proxy: they record the bytes
// that a server sent, but through a proxy the crawl sees only the bytes of the proxy. It also
// refuses a size limit for standard output, and settings of a ledger that is off.
func checkOutputSettings(p *Project, found *problemCollector) {
	switch size := p.Output.JSONLMaxFileSize; {
	case size == 0:
	case p.Output.JSONL == "-":
		found.add("output.jsonl_max_size",
			"cannot be used with output.jsonl: \"-\", since standard output is not a file; leave one of the two out")
	case size < minOutputFileSize || size > maxOutputFileSize:
		found.add("output.jsonl_max_size", "%d is out of range: expected 0, for one file of any size, "+
			"or %d to %d", size, minOutputFileSize, maxOutputFileSize)
	}
	// The settings of the ledger need the ledger. Name the setting that the file has.
	if !p.Output.WriteLedger && (p.Output.LedgerKeyFile != "" || p.Output.RecordRefusalsInLedger) {
		field := "output.ledger_key"
		if p.Output.RecordRefusalsInLedger {
			field = "output.ledger_refusals"
		}
		found.add(field, "has no effect without a ledger; leave it out, or output.ledger: false")
	}
	if p.Output.WARCDir != "" && p.Fetch.Proxy != "" {
		found.add("output.warc", "cannot be used with fetch.proxy: WARC files hold what servers sent, "+
			"byte for byte; leave one of the two out")
	}
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
func checkPolitenessSettings(p *Project, found *problemCollector) {
	p.Politeness.Window.check("politeness.window", found)
	checkConcurrency("politeness.ip.concurrency", p.Politeness.PerIP.Concurrency, found)
	if b := p.Politeness.Backoff; b.Initial > b.Max {
		found.add("politeness.backoff.initial", "%v is longer than politeness.backoff.max, %v", b.Initial, b.Max)
	}
	// Two names in the file may be the same host. Sort them, so that every run reports the same
	// one.
	named := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(p.Politeness.Hosts)) {
		field := "politeness.hosts." + name
		host, ok := CanonicalHost(name)
		if !ok {
			found.add(field, "%q is not the name of a host: expected no scheme, port, path or "+
				"wildcard, as in intranet.example", name)
		} else if sameHost, ok := named[host]; ok {
			found.add(field, "%q is the same host as %q", name, sameHost)
		}
		named[host] = name
		p.Politeness.Hosts[name].check(field, found)
	}
}

// check checks the override of one host. field is its path.
func (h HostPoliteness) check(field string, found *problemCollector) {
	checkConcurrency(field+".concurrency", h.Concurrency, found)
	if a := h.AdaptiveFactor; a != nil && !(*a >= 0 && *a <= 1000) { // also true for NaN
		found.add(field+".adaptive", "%v is out of range: expected 0 to 1000", formatWithoutExponent(*a))
	}
	if h.Window != nil {
		h.Window.check(field+".window", found)
	}
}

// checkConcurrency checks an optional number of simultaneous visits. field is its path.
func checkConcurrency(field string, n *int, found *problemCollector) {
	if n != nil && (*n < 1 || *n > 1000) {
		found.add(field, "%d is out of range: expected 1 to 1000", *n)
	}
}

// check checks the zone and the hours of a window. field is its path.
func (w Window) check(field string, found *problemCollector) {
	if w.Hours == "" && w.Zone != "" {
		found.add(field, "expected hours, as in 22:00-06:00")
	}
	if _, err := time.LoadLocation(w.Zone); err != nil || w.Zone == "Local" {
		found.add(field+".zone", "%q is not a time zone: expected its IANA name, as in Europe/Prague",
			w.Zone)
	}
	if _, err := politeness.ParseWindow(w.Hours, ""); w.Hours != "" && err != nil {
		found.add(field+".hours", "%v", err)
	}
}

// checkFetchSettings checks fetch and store.path, except for the sizes, which checkNumbers checks.
func checkFetchSettings(p *Project, found *problemCollector) {
	for i, t := range p.Fetch.ContentTypes {
		if name, _, err := mime.ParseMediaType(t); err != nil || name != t || !strings.Contains(t, "/") {
			found.add(indexedFieldName("fetch.content_types", i),
				"%q is not a media type: expected type/subtype in lower case, as in text/html", t)
		}
	}
	for i, rule := range p.Fetch.ConnectToRules {
		if _, err := dialrules.ParseConnectTo(rule); err != nil {
			found.add(indexedFieldName("fetch.connect_to", i), "%v (IPv6 addresses in brackets)", err)
		}
	}
	// The names of headers are case-insensitive. Sort them, so that every run reports the same
	// one.
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p.Fetch.Headers)) {
		if lower := strings.ToLower(name); seen[lower] {
			found.add("fetch.headers."+name, "the header is set twice, in upper and lower case")
		} else {
			seen[lower] = true
		}
		if err := httpheader.CheckCustom(name, p.Fetch.Headers[name]); err != nil {
			found.add("fetch.headers."+name, "%v", err)
		}
	}
	if p.Fetch.FirstByteTimeout > p.Fetch.Timeout {
		found.add("fetch.first_byte", "%v is longer than fetch.timeout, %v",
			p.Fetch.FirstByteTimeout, p.Fetch.Timeout)
	}
	// ftp connections bypass the proxy, and callbacks never see ftp visits.
	switch {
	case p.Fetch.FTP && p.Fetch.Proxy != "":
		found.add("fetch.ftp", "%v; leave one of the two out", errProxiedFTP)
	case p.Fetch.FTP && p.Handler != "":
		found.add("fetch.ftp", "%v; leave one of the two out", errFTPWithHandler)
	}
	if p.Store.Path == "" {
		found.add("store.path", "expected the name of a directory")
	}
}

// checkProxy checks fetch.proxy.
func checkProxy(p *Project, found *problemCollector) {
	if p.Fetch.Proxy == "" {
		return
	}
	// Errors about the proxy do not repeat its URL, which may contain a password.
	if _, err := dialrules.ParseProxy(p.Fetch.Proxy); err != nil {
		found.add("fetch.proxy", "%v", err)
	}
	if len(p.Fetch.ConnectToRules) > 0 {
		found.add("fetch.proxy",
			"the proxy makes the connections and ignores fetch.connect_to; leave one of the two out")
	}
}
