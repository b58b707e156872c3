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

// asker returns the User-Agent as answers to it are kept: without the program's
// own version, so that a new one does not ask everybody again.
func (p *Project) asker() string {
	return strings.TrimSuffix(p.Agent.Product+"/"+p.Agent.Version, "/") + " (+" + p.Agent.Contact + ")"
}

// seed returns a number that other projects, and those of others, do not have: so
// they do not all come back to a host at the same moment.
func (p *Project) seed() uint64 {
	h := fnv.New64a()
	h.Write([]byte(p.asker() + " " + p.Name))
	return h.Sum64()
}

func (p *Project) policy() politeness.Policy {
	policy := politeness.Policy{
		Delay: time.Duration(p.Politeness.Delay), Adaptive: p.Politeness.Adaptive,
		Concurrency: p.Politeness.Concurrency, MaxCrawlDelay: time.Duration(p.Politeness.MaxCrawlDelay),
		Seed: p.seed(),
	}
	if policy.Delay == 0 {
		policy.Delay = politeness.NoDelay
	}
	if policy.Adaptive == 0 {
		policy.Adaptive = -1
	}
	policy.Window, _ = p.Politeness.Window.parse()
	policy.Hosts = make(map[string]politeness.Override, len(p.Politeness.Hosts))
	for name, h := range p.Politeness.Hosts {
		host, _ := hostName(name)
		policy.Hosts[host] = h.override()
	}
	return policy
}

// maxPolitenessDelay returns for how long a crawl waits for the next URL: as long as its
// own policy makes a host rest, or a host may ask for.
func maxPolitenessDelay(p politeness.Policy) time.Duration {
	p = p.WithDefaults()
	longest := max(p.MaxRetryAfter, p.MaxCrawlDelay, p.MaxBackoff, p.Delay)
	for _, o := range p.Hosts {
		if o.Delay != nil {
			longest = max(longest, *o.Delay)
		}
	}
	return longest
}

// override returns what is otherwise for a host.
func (h HostPoliteness) override() politeness.Override {
	o := politeness.Override{Concurrency: h.Concurrency, Adaptive: h.Adaptive, Reason: h.Reason, Expires: h.Expires.end()}
	if h.Delay != nil {
		o.Delay = new(time.Duration(*h.Delay))
		if *o.Delay == 0 {
			*o.Delay = politeness.NoDelay
		}
	}
	if h.Adaptive != nil && *h.Adaptive == 0 {
		o.Adaptive = new(-1.0)
	}
	if h.Window != nil {
		w, _ := h.Window.parse()
		o.Window = &w
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

// hostName returns the canonical name of a host, and false if s is none. A "*",
// of which a URL may be made, is no wildcard: it would stand for no host at all.
func hostName(s string) (string, bool) {
	u, err := decorum.ParseURL("http://" + s + "/")
	if err != nil || strings.Contains(s, "*") || u.String() != "http://"+u.Origin().Host()+"/" {
		return "", false
	}
	return u.Origin().Host(), true
}

// Default pace of an address.
const ipConcurrency = 2

// limits returns the crawl's own limits. restarted is when the crawl was gone
// on with, zero if it begins.
func (p *Project) limits(restarted time.Time) politeness.LimitsConfig {
	ip := p.Politeness.IP
	cfg := politeness.LimitsConfig{
		RequestsPerSecond: p.Limits.RequestsPerSecond,
		BytesPerSecond:    float64(p.Limits.BytesPerSecond),
		IPConcurrency:     ipConcurrency, IPLoopback: ip != IPPoliteness{}, Restarted: restarted,
	}
	if ip.Concurrency != nil {
		cfg.IPConcurrency = *ip.Concurrency
	}
	if ip.Delay != nil {
		cfg.IPDelay = time.Duration(*ip.Delay)
	}
	return cfg
}

// agent returns the crawl as robots.txt files address it.
func (p *Project) agent() (robots.Agent, error) {
	dialect, err := robots.ParseDialect(p.Robots.Dialect)
	if err != nil {
		return robots.Agent{}, err
	}
	return robots.Configured(dialect, p.Agent.Product, p.Agent.Wider...)
}

func (p *Project) gateConfig() (robots.GateConfig, error) {
	agent, err := p.agent()
	if err != nil {
		return robots.GateConfig{}, err
	}
	dialect, err := robots.ParseDialect(p.Robots.Dialect)
	if err != nil {
		return robots.GateConfig{}, err
	}
	maxTTL := time.Duration(p.Robots.MaxTTL)
	cfg := robots.GateConfig{
		Agent: agent, UserAgent: p.asker(), Dialect: dialect, NoExtensions: !p.Robots.Extensions,
		MinTTL: min(time.Minute, maxTTL), MaxTTL: maxTTL, Purposes: p.Robots.Purpose,
	}
	if dialect == robots.Yandex {
		cfg.Session = time.Now() // a run of the crawl is a session
	}
	return cfg, cfg.Validate()
}

func (p *Project) scope() (frontier.ScopeConfig, error) {
	within, err := frontier.ParseWithin(p.Scope.Within)
	if err != nil {
		return frontier.ScopeConfig{}, err
	}
	cfg := frontier.ScopeConfig{
		Within: within, FTP: p.Fetch.FTP, MaxDepth: p.Scope.MaxDepth, MaxURLLength: p.Scope.MaxURLLength,
		MaxParams: p.Scope.MaxParams, MaxPathDepth: p.Scope.MaxPathDepth, MaxRepeat: p.Scope.MaxRepeat,
		MaxRedirects: p.Scope.MaxRedirects, MaxURLsPerPattern: p.Scope.MaxURLsPerPattern,
		MaxURLsPerHost: p.Scope.MaxURLsPerHost, MaxHostsPerDomain: p.Scope.MaxHostsPerDomain,
		MaxHosts: p.Scope.MaxHosts, Year: time.Now().Year(),
	}
	if cfg.MaxDepth == 0 {
		cfg.MaxDepth = -1
	}
	budget := newPatternBudget()
	if cfg.Include, err = budget.compileAll(p.Scope.Include); err != nil {
		return cfg, err
	}
	cfg.Exclude, err = budget.compileAll(p.Scope.Exclude)
	return cfg, err
}

// params returns the project's rules for parameters.
func (p *Project) params() (*frontier.Params, error) {
	return frontier.NewParams(frontier.ParamRules(p.Scope.Params))
}

func (p *Project) settings() (crawler.Settings, error) {
	mode, err := frontier.ParseRevisitMode(p.Revisit.Mode)
	return crawler.Settings{
		Workers: p.Limits.Workers, MaxPages: int64(p.Limits.Pages), MaxBytes: int64(p.Limits.Bytes),
		MaxPagesPerHost: p.Scope.MaxPagesPerHost, MaxBytesPerHost: int64(p.Scope.MaxBytesPerHost),
		TDMRepTTL:    time.Duration(p.Robots.MaxTTL),
		ProductToken: p.Agent.Product, NoSitemaps: !p.Discover.Sitemaps, IgnoreNoFollow: !p.Robots.Meta,
		Follow: p.follow(), MaxLinks: p.Discover.MaxLinks, MaxSitemaps: p.Discover.MaxSitemaps, MaxSitemapBody: int64(p.Fetch.MaxSitemapBody),
		LedgerRefusals: p.Output.LedgerRefusals,
		Revisit: frontier.Revisit{
			Mode: mode, Every: time.Duration(p.Revisit.Every),
			Min: time.Duration(p.Revisit.Min), Max: time.Duration(p.Revisit.Max),
		},
	}, err
}

// follow says what of a page leads on, where no callbacks do.
func (p *Project) follow() crawler.FollowedLinkKinds {
	return crawler.FollowedLinkKinds{
		NoLinks: !p.Discover.Links, NoFeeds: !p.Discover.Feeds || p.Handler != "", NoCanonical: !p.Discover.Canonical,
		Images: p.Discover.Images,
	}
}
