package project

import (
	"cmp"
	"hash/fnv"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/disk"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// The methods in this file translate a project into the configuration of other packages. The project
// must have passed Check. Where 0 means "none" in a project and "the default" in a package, a method
// returns the value that the package has for "none".

// UserAgent returns the User-Agent header of the crawl's requests.
func (p *Project) UserAgent() string {
	return p.Agent.Product + "/" + cmp.Or(p.Agent.Version, decorum.Version()) + " (+" + p.Agent.Contact + ")"
}

// cacheKeyUserAgent returns the User-Agent that keys cached responses. It lacks the default version,
// so that a new version of decorum still uses the responses to an older one.
func (p *Project) cacheKeyUserAgent() string {
	return strings.TrimSuffix(p.Agent.Product+"/"+p.Agent.Version, "/") + " (+" + p.Agent.Contact + ")"
}

// jitterSeed returns a number that differs between projects and operators, so that their crawls do
// not all return to a host at the same moment.
func (p *Project) jitterSeed() uint64 {
	h := fnv.New64a()
	h.Write([]byte(p.cacheKeyUserAgent() + " " + p.Name))
	return h.Sum64()
}

// OffersPostQuantum reports whether TLS handshakes offer post-quantum key exchange. "auto" offers it if the
// crawl may send or receive something secret, as far as the project shows that.
func (p *Project) OffersPostQuantum() bool {
	if choice := p.Fetch.Connections.PostQuantum; choice != "auto" {
		return choice == "always"
	}
	for name := range p.Fetch.Headers {
		switch http.CanonicalHeaderKey(name) {
		case "Accept", "Accept-Charset", "Accept-Language":
		default:
			return true
		}
	}
	return p.Fetch.Cookies || p.Handler != "" || p.Agent.Signature.isUsed() || p.Fetch.AllowPrivate ||
		p.Fetch.CAFile != ""
}

// PolitenessPolicy returns the pace of visits to each host.
func (p *Project) PolitenessPolicy() politeness.Policy {
	policy := politeness.Policy{
		Delay:          cmp.Or(time.Duration(p.Politeness.Delay), politeness.NoDelay),
		AdaptiveFactor: cmp.Or(p.Politeness.AdaptiveFactor, -1),
		Concurrency:    p.Politeness.Concurrency, MaxCrawlDelay: time.Duration(p.Politeness.MaxCrawlDelay),
		InitialBackoff: time.Duration(p.Politeness.Backoff.Initial), BackoffFactor: p.Politeness.Backoff.Factor,
		MaxBackoff:      time.Duration(p.Politeness.Backoff.Max),
		MaxLearnedDelay: cmp.Or(time.Duration(p.Politeness.MaxLearnedDelay), -1),
		JitterSeed:      p.jitterSeed(),
	}
	policy.VisitWindow, _ = p.Politeness.Window.parse()
	policy.HostOverrides = make(map[string]politeness.HostOverride, len(p.Politeness.Hosts))
	for name, h := range p.Politeness.Hosts {
		host, _ := CanonicalHost(name)
		policy.HostOverrides[host] = h.toOverride()
	}
	return policy
}

// toOverride converts h. Its fields that are nil keep the value for all hosts.
func (h HostPoliteness) toOverride() politeness.HostOverride {
	o := politeness.HostOverride{Concurrency: h.Concurrency, Reason: h.Reason, Expires: h.Expires.endOfDay()}
	if h.Delay != nil {
		o.Delay = new(cmp.Or(time.Duration(*h.Delay), politeness.NoDelay))
	}
	if h.AdaptiveFactor != nil {
		o.AdaptiveFactor = new(cmp.Or(*h.AdaptiveFactor, -1))
	}
	if h.Window != nil {
		w, _ := h.Window.parse()
		o.VisitWindow = &w
	}
	return o
}

// parse returns the window. The zero Window is always open.
func (w Window) parse() (politeness.Window, error) {
	if w == (Window{}) {
		return politeness.Window{}, nil
	}
	return politeness.ParseWindow(w.Hours, w.Zone)
}

// CanonicalHost returns the canonical form of host name s, and whether s is a host name. A name with
// "*" is refused: a URL can contain it, but it would look like a wildcard and match no host.
func CanonicalHost(s string) (string, bool) {
	u, err := decorum.ParseURL("http://" + s + "/")
	if err != nil || strings.Contains(s, "*") || u.String() != "http://"+u.Origin().Host()+"/" {
		return "", false
	}
	return u.Origin().Host(), true
}

// defaultIPConcurrency is the default number of simultaneous visits to one IP address.
const defaultIPConcurrency = 2

// LimiterConfig returns the limits of the crawl as a whole and of IP addresses. restartedAt is the
// time when the crawl was resumed, or zero for a new crawl.
func (p *Project) LimiterConfig(restartedAt time.Time) politeness.LimiterConfig {
	ip := p.Politeness.PerIP
	cfg := politeness.LimiterConfig{
		CrawlRequestsPerSecond: p.Limits.RequestsPerSecond,
		CrawlBytesPerSecond:    float64(p.Limits.BytesPerSecond),
		IPConcurrency:          defaultIPConcurrency, LimitLoopback: ip != IPPoliteness{}, RestartedAt: restartedAt,
	}
	if ip.Concurrency != nil {
		cfg.IPConcurrency = *ip.Concurrency
	}
	if ip.Delay != nil {
		cfg.IPDelay = time.Duration(*ip.Delay)
	}
	return cfg
}

// RobotsAgent returns the agent whose groups in robots.txt files apply to the crawl.
func (p *Project) RobotsAgent() (robots.Agent, error) {
	dialect, err := robots.ParseDialect(p.Robots.Dialect)
	if err != nil {
		return robots.Agent{}, err
	}
	return robots.PresetOrNewAgent(dialect, p.Agent.Product, p.Agent.FallbackTokens...)
}

// GateConfig returns the configuration of the gate: how it reads and caches robots.txt.
func (p *Project) GateConfig() (gate.Config, error) {
	agent, err := p.RobotsAgent()
	if err != nil {
		return gate.Config{}, err
	}
	dialect, _ := robots.ParseDialect(p.Robots.Dialect) // RobotsAgent has checked it
	maxTTL := time.Duration(p.Robots.MaxTTL)
	cfg := gate.Config{
		Agent: agent, UserAgent: p.cacheKeyUserAgent(), Dialect: dialect, NoExtensions: !p.Robots.ObeyExtensions,
		MinTTL: min(time.Minute, maxTTL), MaxTTL: maxTTL, Purposes: p.Robots.Purposes,
	}
	if dialect == robots.Yandex {
		cfg.SessionStart = time.Now() // each run of the crawl is a session (SESS-01)
	}
	return cfg, cfg.Validate()
}

// ScopeConfig returns the rules for which URLs belong to the crawl. It compiles the patterns of the
// scope.
func (p *Project) ScopeConfig() (frontier.ScopeConfig, error) {
	mode, err := frontier.ParseScopeMode(p.Scope.ScopeMode)
	if err != nil {
		return frontier.ScopeConfig{}, err
	}
	seedRedirects, err := frontier.ParseScopeMode(p.Scope.SeedRedirects)
	if err != nil {
		return frontier.ScopeConfig{}, err
	}
	cfg := frontier.ScopeConfig{
		Mode: mode, SeedRedirects: seedRedirects, AllowFTP: p.Fetch.FTP,
		MaxDepth: cmp.Or(p.Scope.MaxDepth, -1), MaxURLLength: p.Scope.MaxURLLength,
		MaxParams: p.Scope.MaxParams, MaxPathDepth: p.Scope.MaxPathDepth, MaxPathRepeats: p.Scope.MaxPathRepeats,
		MaxRedirects: p.Scope.MaxRedirects, MaxURLsPerPattern: p.Scope.MaxURLsPerPattern,
		MaxDuplicatesPerPattern: p.Scope.MaxDuplicatesPerPattern,
		MaxFeedsPerHost:         cmp.Or(p.Discover.MaxFeedsPerHost, -1),
		MaxSortLinksPerHost:     cmp.Or(p.Discover.MaxSortLinksPerHost, -1),
		MaxURLsPerHost:          p.Scope.MaxURLsPerHost, MaxHostsPerDomain: p.Scope.MaxHostsPerDomain,
		MaxHosts: p.Scope.MaxHosts, CurrentYear: time.Now().Year(),
	}
	budget := newRegexpBudget()
	if cfg.Include, err = budget.compileAll(p.Scope.Include); err != nil {
		return cfg, err
	}
	cfg.Exclude, err = budget.compileAll(p.Scope.Exclude)
	return cfg, err
}

// ParamCleaner returns the project's rules for removing query parameters.
func (p *Project) ParamCleaner() (*frontier.ParamCleaner, error) {
	return frontier.NewParamCleaner(frontier.ParamRules(p.Scope.Params))
}

// RevisitPolicy returns when pages are visited again.
func (p *Project) RevisitPolicy() (frontier.RevisitPolicy, error) {
	mode, err := frontier.ParseRevisitMode(p.Revisit.Mode)
	return frontier.RevisitPolicy{
		Mode: mode, Interval: time.Duration(p.Revisit.Interval),
		MinInterval: time.Duration(p.Revisit.MinInterval), MaxInterval: time.Duration(p.Revisit.MaxInterval),
		MaxFreshness:          cmp.Or(time.Duration(p.Revisit.MaxFreshness), -1),
		MaxHeuristicFreshness: cmp.Or(time.Duration(p.Revisit.MaxHeuristicFreshness), -1),
		MaxSitemapFreshness:   cmp.Or(time.Duration(p.Revisit.MaxSitemapFreshness), -1),
	}, err
}

// allowedFileModes lists the valid values of output.mode; the first is the default.
var allowedFileModes = []string{"0600", "0640", "0644"}

// FileModeBits returns output.mode. For an invalid mode, which Check refuses, it returns
// disk.PrivateMode.
func (o *OutputSettings) FileModeBits() fs.FileMode {
	mode, err := strconv.ParseUint(o.FileMode, 8, 9)
	if err != nil {
		return disk.PrivateMode
	}
	return fs.FileMode(mode)
}

// HostOverride returns the fields of politeness.hosts for host, by their names in the project file,
// or nil if the project has no override for the host.
func (p *Project) HostOverride(host string) (settings map[string]any) {
	h, ok := p.Politeness.Hosts[host]
	if !ok {
		return nil
	}
	text, err := yaml.Marshal(h)
	if err == nil {
		err = yaml.Unmarshal(text, &settings)
	}
	if err != nil { // impossible: the override was read from YAML
		return map[string]any{"error": err.Error()}
	}
	return settings
}
