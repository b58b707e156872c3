package project

import (
	"cmp"
	"hash/fnv"
	"io/fs"
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

// A project in the words of each room. All of these are for projects that have
// been checked. Where a room's zero means its default, the project's zero is
// said as the room says none.

// UserAgent returns the User-Agent header.
func (p *Project) UserAgent() string {
	return p.Agent.Product + "/" + cmp.Or(p.Agent.Version, decorum.Version()) + " (+" + p.Agent.Contact + ")"
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

// PolitenessPolicy returns how long hosts rest.
func (p *Project) PolitenessPolicy() politeness.Policy {
	policy := politeness.Policy{
		Delay:          cmp.Or(time.Duration(p.Politeness.Delay), politeness.NoDelay),
		AdaptiveFactor: cmp.Or(p.Politeness.AdaptiveFactor, -1),
		Concurrency:    p.Politeness.Concurrency, MaxCrawlDelay: time.Duration(p.Politeness.MaxCrawlDelay),
		JitterSeed: p.jitterSeed(),
	}
	policy.VisitWindow, _ = p.Politeness.Window.parse()
	policy.HostOverrides = make(map[string]politeness.HostOverride, len(p.Politeness.Hosts))
	for name, h := range p.Politeness.Hosts {
		host, _ := CanonicalHost(name)
		policy.HostOverrides[host] = h.toOverride()
	}
	return policy
}

// toOverride returns what is otherwise for a host.
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

// parse returns the window; without hours it is always open.
func (w Window) parse() (politeness.Window, error) {
	if w == (Window{}) {
		return politeness.Window{}, nil
	}
	return politeness.ParseWindow(w.Hours, w.Zone)
}

// CanonicalHost returns the canonical name of a host, and false if s is none. A "*",
// of which a URL may be made, is no wildcard: it would stand for no host at all.
func CanonicalHost(s string) (string, bool) {
	u, err := decorum.ParseURL("http://" + s + "/")
	if err != nil || strings.Contains(s, "*") || u.String() != "http://"+u.Origin().Host()+"/" {
		return "", false
	}
	return u.Origin().Host(), true
}

// Default pace of an address.
const defaultIPConcurrency = 2

// LimiterConfig returns the crawl's own limits. restartedAt is when the crawl was gone
// on with, zero if it begins.
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

// RobotsAgent returns the crawl as robots.txt files address it.
func (p *Project) RobotsAgent() (robots.Agent, error) {
	dialect, err := robots.ParseDialect(p.Robots.Dialect)
	if err != nil {
		return robots.Agent{}, err
	}
	return robots.PresetOrNewAgent(dialect, p.Agent.Product, p.Agent.FallbackTokens...)
}

// GateConfig returns how robots.txt is read.
func (p *Project) GateConfig() (gate.Config, error) {
	agent, err := p.RobotsAgent()
	if err != nil {
		return gate.Config{}, err
	}
	dialect, _ := robots.ParseDialect(p.Robots.Dialect) // RobotsAgent has read it
	maxTTL := time.Duration(p.Robots.MaxTTL)
	cfg := gate.Config{
		Agent: agent, UserAgent: p.cacheKeyUserAgent(), Dialect: dialect, NoExtensions: !p.Robots.ObeyExtensions,
		MinTTL: min(time.Minute, maxTTL), MaxTTL: maxTTL, Purposes: p.Robots.Purposes,
	}
	if dialect == robots.Yandex {
		cfg.SessionStart = time.Now() // a run of the crawl is a session
	}
	return cfg, cfg.Validate()
}

// ScopeConfig returns which URLs belong to the crawl.
func (p *Project) ScopeConfig() (frontier.ScopeConfig, error) {
	mode, err := frontier.ParseScopeMode(p.Scope.ScopeMode)
	if err != nil {
		return frontier.ScopeConfig{}, err
	}
	cfg := frontier.ScopeConfig{
		Mode: mode, AllowFTP: p.Fetch.FTP, MaxDepth: cmp.Or(p.Scope.MaxDepth, -1), MaxURLLength: p.Scope.MaxURLLength,
		MaxParams: p.Scope.MaxParams, MaxPathDepth: p.Scope.MaxPathDepth, MaxPathRepeats: p.Scope.MaxPathRepeats,
		MaxRedirects: p.Scope.MaxRedirects, MaxURLsPerPattern: p.Scope.MaxURLsPerPattern,
		MaxURLsPerHost: p.Scope.MaxURLsPerHost, MaxHostsPerDomain: p.Scope.MaxHostsPerDomain,
		MaxHosts: p.Scope.MaxHosts, CurrentYear: time.Now().Year(),
	}
	budget := newRegexpBudget()
	if cfg.Include, err = budget.compileAll(p.Scope.Include); err != nil {
		return cfg, err
	}
	cfg.Exclude, err = budget.compileAll(p.Scope.Exclude)
	return cfg, err
}

// ParamCleaner returns the project's rules for parameters.
func (p *Project) ParamCleaner() (*frontier.ParamCleaner, error) {
	return frontier.NewParamCleaner(frontier.ParamRules(p.Scope.Params))
}

// allowedFileModes are the modes that files of output may have; the first is the default.
var allowedFileModes = []string{"0600", "0640", "0644"}

// FileModeBits returns output.mode, of a project that has been checked.
func (o *OutputSettings) FileModeBits() fs.FileMode {
	mode, err := strconv.ParseUint(o.FileMode, 8, 9)
	if err != nil {
		return disk.PrivateMode
	}
	return fs.FileMode(mode)
}

// HostOverride returns what the project says of one host, as it says it; nil if it
// says nothing.
func (p *Project) HostOverride(host string) (settings map[string]any) {
	h, ok := p.Politeness.Hosts[host]
	if !ok {
		return nil
	}
	text, err := yaml.Marshal(h)
	if err == nil {
		err = yaml.Unmarshal(text, &settings)
	}
	if err != nil { // cannot be: it was read from YAML
		return map[string]any{"error": err.Error()}
	}
	return settings
}
