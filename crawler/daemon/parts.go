package daemon

import (
	"hash/fnv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
)

// A project in the words of each room. All of these are for projects that have
// been checked. Where a room's zero means its default, the project's zero is
// said as the room says none.

// userAgent returns the User-Agent header.
func (p *Project) userAgent() string {
	version := p.Agent.Version
	if version == "" {
		version = decorum.Version()
	}
	return p.Agent.Product + "/" + version + " (+" + p.Agent.Contact + ")"
}

// cacheKeyUserAgent returns the User-Agent as answers to it are kept: without the program's
// own version, so that a new one does not ask everybody again.
func (p *Project) cacheKeyUserAgent() string {
	return strings.TrimSuffix(p.Agent.Product+"/"+p.Agent.Version, "/") + " (+" + p.Agent.Contact + ")"
}

// jitterSeed returns a number that other projects, and those of others, do not have: so
// they do not all come back to a host at the same moment.
func (p *Project) jitterSeed() uint64 {
	h := fnv.New64a()
	h.Write([]byte(p.cacheKeyUserAgent() + " " + p.Name))
	return h.Sum64()
}

func (p *Project) politenessPolicy() politeness.Policy {
	policy := politeness.Policy{
		Delay: time.Duration(p.Politeness.Delay), AdaptiveFactor: p.Politeness.AdaptiveFactor,
		Concurrency: p.Politeness.Concurrency, MaxCrawlDelay: time.Duration(p.Politeness.MaxCrawlDelay),
		JitterSeed: p.jitterSeed(),
	}
	if policy.Delay == 0 {
		policy.Delay = politeness.NoDelay
	}
	if policy.AdaptiveFactor == 0 {
		policy.AdaptiveFactor = -1
	}
	policy.VisitWindow, _ = p.Politeness.Window.parse()
	policy.HostOverrides = make(map[string]politeness.HostOverride, len(p.Politeness.Hosts))
	for name, h := range p.Politeness.Hosts {
		host, _ := canonicalHost(name)
		policy.HostOverrides[host] = h.toOverride()
	}
	return policy
}

// maxPolitenessDelay returns for how long a crawl waits for the next URL: as long as its
// own policy makes a host rest, or a host may ask for.
func maxPolitenessDelay(p politeness.Policy) time.Duration {
	p = p.WithDefaults()
	wait := max(p.MaxRetryAfter, p.MaxCrawlDelay, p.MaxBackoff, p.Delay)
	for _, o := range p.HostOverrides {
		if o.Delay != nil {
			wait = max(wait, *o.Delay)
		}
	}
	return wait
}

// toOverride returns what is otherwise for a host.
func (h HostPoliteness) toOverride() politeness.HostOverride {
	o := politeness.HostOverride{Concurrency: h.Concurrency, AdaptiveFactor: h.AdaptiveFactor, Reason: h.Reason, Expires: h.Expires.endOfDay()}
	if h.Delay != nil {
		o.Delay = new(time.Duration(*h.Delay))
		if *o.Delay == 0 {
			*o.Delay = politeness.NoDelay
		}
	}
	if h.AdaptiveFactor != nil && *h.AdaptiveFactor == 0 {
		o.AdaptiveFactor = new(-1.0)
	}
	if h.Window != nil {
		w, _ := h.Window.parse()
		o.VisitWindow = &w
	}
	return o
}

// parse returns the window; without hours it is always open.
func (w Window) parse() (politeness.Window, error) {
	if w == (Window{}) {
		return politeness.Window{}, nil
	}
	return politeness.ParseWindow(w.Hours, w.Zone)
}

// canonicalHost returns the canonical name of a host, and false if s is none. A "*",
// of which a URL may be made, is no wildcard: it would stand for no host at all.
func canonicalHost(s string) (string, bool) {
	u, err := decorum.ParseURL("http://" + s + "/")
	if err != nil || strings.Contains(s, "*") || u.String() != "http://"+u.Origin().Host()+"/" {
		return "", false
	}
	return u.Origin().Host(), true
}

// Default pace of an address.
const defaultIPConcurrency = 2

// limiterConfig returns the crawl's own limits. restarted is when the crawl was gone
// on with, zero if it begins.
func (p *Project) limiterConfig(restartedAt time.Time) politeness.LimiterConfig {
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

// robotsAgent returns the crawl as robots.txt files address it.
func (p *Project) robotsAgent() (robots.Agent, error) {
	dialect, err := robots.ParseDialect(p.Robots.Dialect)
	if err != nil {
		return robots.Agent{}, err
	}
	return robots.PresetOrNewAgent(dialect, p.Agent.Product, p.Agent.FallbackTokens...)
}

func (p *Project) gateConfig() (robots.GateConfig, error) {
	agent, err := p.robotsAgent()
	if err != nil {
		return robots.GateConfig{}, err
	}
	dialect, err := robots.ParseDialect(p.Robots.Dialect)
	if err != nil {
		return robots.GateConfig{}, err
	}
	maxTTL := time.Duration(p.Robots.MaxTTL)
	cfg := robots.GateConfig{
		Agent: agent, UserAgent: p.cacheKeyUserAgent(), Dialect: dialect, NoExtensions: !p.Robots.Extensions,
		MinTTL: min(time.Minute, maxTTL), MaxTTL: maxTTL, Purposes: p.Robots.Purposes,
	}
	if dialect == robots.Yandex {
		cfg.SessionStart = time.Now() // a run of the crawl is a session
	}
	return cfg, cfg.Validate()
}

func (p *Project) scopeConfig() (frontier.ScopeConfig, error) {
	mode, err := frontier.ParseScopeMode(p.Scope.Within)
	if err != nil {
		return frontier.ScopeConfig{}, err
	}
	cfg := frontier.ScopeConfig{
		Mode: mode, AllowFTP: p.Fetch.FTP, MaxDepth: p.Scope.MaxDepth, MaxURLLength: p.Scope.MaxURLLength,
		MaxParams: p.Scope.MaxParams, MaxPathDepth: p.Scope.MaxPathDepth, MaxPathRepeats: p.Scope.MaxPathRepeats,
		MaxRedirects: p.Scope.MaxRedirects, MaxURLsPerPattern: p.Scope.MaxURLsPerPattern,
		MaxURLsPerHost: p.Scope.MaxURLsPerHost, MaxHostsPerDomain: p.Scope.MaxHostsPerDomain,
		MaxHosts: p.Scope.MaxHosts, CurrentYear: time.Now().Year(),
	}
	if cfg.MaxDepth == 0 {
		cfg.MaxDepth = -1
	}
	budget := newRegexpBudget()
	if cfg.Include, err = budget.compileAll(p.Scope.Include); err != nil {
		return cfg, err
	}
	cfg.Exclude, err = budget.compileAll(p.Scope.Exclude)
	return cfg, err
}

// paramCleaner returns the project's rules for parameters.
func (p *Project) paramCleaner() (*frontier.ParamCleaner, error) {
	return frontier.NewParamCleaner(frontier.ParamRules(p.Scope.Params))
}

func (p *Project) crawlerSettings() (crawler.Settings, error) {
	mode, err := frontier.ParseRevisitMode(p.Revisit.Mode)
	return crawler.Settings{
		Workers: p.Limits.Workers, MaxPages: int64(p.Limits.Pages), MaxReceivedBytes: int64(p.Limits.Bytes),
		MaxPagesPerHost: p.Scope.MaxPagesPerHost, MaxBytesPerHost: int64(p.Scope.MaxBytesPerHost),
		TDMRepTTL:    time.Duration(p.Robots.MaxTTL),
		ProductToken: p.Agent.Product, NoSitemaps: !p.Discover.Sitemaps, IgnoreNoFollow: !p.Robots.ObeyMetaTags,
		FollowedLinkKinds: p.followedLinkKinds(), MaxLinks: p.Discover.MaxLinks, MaxSitemapsPerHost: p.Discover.MaxSitemapsPerHost, MaxSitemapBody: int64(p.Fetch.MaxSitemapBody),
		RecordRefusalsInLedger: p.Output.RecordRefusalsInLedger,
		Revisit: frontier.RevisitPolicy{
			Mode: mode, Interval: time.Duration(p.Revisit.Interval),
			MinInterval: time.Duration(p.Revisit.MinInterval), MaxInterval: time.Duration(p.Revisit.MaxInterval),
		},
	}, err
}

// followedLinkKinds says what of a page leads on, where no callbacks do.
func (p *Project) followedLinkKinds() crawler.FollowedLinkKinds {
	return crawler.FollowedLinkKinds{
		NoLinks: !p.Discover.Links, NoFeeds: !p.Discover.Feeds || p.Handler != "", NoCanonical: !p.Discover.Canonical,
		Images: p.Discover.Images,
	}
}
