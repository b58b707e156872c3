package frontier

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/registrable"
	"github.com/decorum-crawler/decorum/storage"
)

// ScopeMode says how far from its seeds a crawl may go.
type ScopeMode uint8

// How far. The zero value keeps to the seeds' hosts.
const (
	HostScope   ScopeMode = iota // the hosts of the seeds, any scheme and port
	OriginScope                  // the origins of the seeds
	DomainScope                  // the registrable domains of the seeds (public suffix list)
	AnyScope                     // anywhere
)

// ParseScopeMode returns the ScopeMode of that name.
func ParseScopeMode(name string) (ScopeMode, error) {
	if i := slices.Index(scopeModeNames[:], name); i >= 0 {
		return ScopeMode(i), nil
	}
	return 0, fmt.Errorf("%q is not one of origin, host, domain, any", name)
}

var scopeModeNames = [...]string{HostScope: "host", OriginScope: "origin", DomainScope: "domain", AnyScope: "any"}

// String returns the name, "unknown" for what is no ScopeMode.
func (w ScopeMode) String() string {
	if int(w) < len(scopeModeNames) {
		return scopeModeNames[w]
	}
	return "unknown"
}

// ScopeConfig says which URLs belong to a crawl. Of a limit, 0 means the constant
// of its name: MaxDepth 0 is DefaultMaxDepth. Those from MaxParams on end what a
// site makes up without end.
type ScopeConfig struct {
	Mode           ScopeMode        // how far from the seeds
	AllowFTP       bool             // URLs of ftp belong to it, too; they do wherever a seed is one
	Include        []*regexp.Regexp // a URL must match one of them, if there are any
	Exclude        []*regexp.Regexp // and none of these
	MaxDepth       int              // links from a seed; negative: seeds only
	MaxURLLength   int              // bytes
	MaxParams      int              // parameters of a query
	MaxPathDepth   int              // segments of a path
	MaxPathRepeats int              // times that a segment, or up to 8 in the same order, stand in a row in a path
	MaxRedirects   int              // in a row, that lead to a URL
	// MaxURLsPerPattern is how many URLs of a host are queued whose paths and
	// queries differ in nothing but numbers, dates and tokens: see URLPattern. What
	// seeds and sitemaps name does not count. A new Frontier counts anew.
	MaxURLsPerPattern int
	// MaxURLsPerHost is how many URLs of a host are ever queued. Its schemes and
	// ports count apart; seeds are queued even then.
	MaxURLsPerHost int
	// MaxHostsPerDomain is how many hosts of a registrable domain may ever have a URL
	// queued. Each user of github.io has a domain of his own, as for DomainScope. Hosts of
	// seeds, and targets of a robots.txt redirect, are counted and never refused.
	MaxHostsPerDomain int
	// MaxHosts is how many hosts of all domains together may ever have a URL queued.
	MaxHosts    int
	CurrentYear int // in which the crawl is: calendars far from it end; 0: none does
}

// Defaults of the limits of a ScopeConfig.
const (
	DefaultMaxDepth          = 32
	DefaultMaxURLLength      = 2048
	DefaultMaxParams         = 32
	DefaultMaxPathDepth      = 20
	DefaultMaxPathRepeats    = 3
	DefaultMaxRedirects      = 10
	DefaultMaxURLsPerPattern = 100_000
	DefaultMaxURLsPerHost    = 1_000_000
	DefaultMaxHostsPerDomain = 10_000
	DefaultMaxHosts          = 1_000_000
)

func (c ScopeConfig) withDefaults() ScopeConfig {
	c.MaxDepth = cmp.Or(c.MaxDepth, DefaultMaxDepth)
	c.MaxURLLength = cmp.Or(c.MaxURLLength, DefaultMaxURLLength)
	c.MaxParams = cmp.Or(c.MaxParams, DefaultMaxParams)
	c.MaxPathDepth = cmp.Or(c.MaxPathDepth, DefaultMaxPathDepth)
	c.MaxPathRepeats = cmp.Or(c.MaxPathRepeats, DefaultMaxPathRepeats)
	c.MaxRedirects = cmp.Or(c.MaxRedirects, DefaultMaxRedirects)
	c.MaxURLsPerPattern = cmp.Or(c.MaxURLsPerPattern, DefaultMaxURLsPerPattern)
	c.MaxURLsPerHost = cmp.Or(c.MaxURLsPerHost, DefaultMaxURLsPerHost)
	c.MaxHostsPerDomain = cmp.Or(c.MaxHostsPerDomain, DefaultMaxHostsPerDomain)
	c.MaxHosts = cmp.Or(c.MaxHosts, DefaultMaxHosts)
	return c
}

// A Scope decides which URLs belong to a crawl. It is immutable.
type Scope struct {
	cfg       ScopeConfig
	scopeKeys map[string]bool // origins, hosts or domains of the seeds
	allowsFTP bool
}

// NewScope returns the scope of a crawl from seeds.
func NewScope(cfg ScopeConfig, seeds []decorum.URL) *Scope {
	s := &Scope{cfg: cfg.withDefaults(), scopeKeys: map[string]bool{}, allowsFTP: cfg.AllowFTP}
	for _, u := range seeds {
		s.scopeKeys[s.scopeKey(u)] = true
		s.allowsFTP = s.allowsFTP || !u.Origin().IsHTTP()
	}
	return s
}

// Check returns nil if e belongs to the crawl, else an error of Kind OutOfScope
// with a *Refusal. How many URLs there are already is for Frontier.Discover to
// judge. To a crawl without a scope, which is nil, every URL belongs.
func (s *Scope) Check(e storage.Entry) error {
	if s == nil {
		return nil
	}
	if why := s.refusal(&e); why != nil {
		return outOfScopeError(e.URL, why)
	}
	return nil
}

func (s *Scope) refusal(e *storage.Entry) *Refusal {
	u := e.URL.String()
	switch {
	case !s.allowsFTP && !e.URL.Origin().IsHTTP():
		return &Refusal{WrongScheme, "ftp is not fetched unless a seed is on ftp, or fetch.ftp says so"}
	case len(u) > s.cfg.MaxURLLength:
		return newRefusal(LongURL, "longer than %d bytes", s.cfg.MaxURLLength)
	case e.Redirects > s.cfg.MaxRedirects:
		return newRefusal(TooManyRedirects, "more than %d redirects in a row", s.cfg.MaxRedirects)
	case e.Source == storage.SourcePrerequisite:
		return nil // an errand: the rest is for pages
	case e.Depth > max(s.cfg.MaxDepth, 0):
		return newRefusal(DeepLink, "deeper than %d links", max(s.cfg.MaxDepth, 0))
	case s.cfg.Mode != AnyScope && !s.scopeKeys[s.scopeKey(e.URL)]:
		return newRefusal(OutsideScope, "another %s than the seeds'", s.cfg.Mode)
	case len(s.cfg.Include) > 0 && !matchesAny(s.cfg.Include, u):
		return &Refusal{NotIncluded, "matches no include pattern"}
	case matchesAny(s.cfg.Exclude, u):
		return &Refusal{Excluded, "matches an exclude pattern"}
	}
	return s.cfg.trapRefusal(e.URL.PathAndQuery())
}

func newRefusal(r RefusalReason, format string, args ...any) *Refusal {
	return &Refusal{r, fmt.Sprintf(format, args...)}
}

// scopeKey returns what u shares with the other URLs that are within its reach.
func (s *Scope) scopeKey(u decorum.URL) string {
	switch s.cfg.Mode {
	case OriginScope:
		return u.Origin().String()
	case DomainScope:
		return registrable.Domain(u.Origin().Host())
	}
	return u.Origin().Host()
}

func matchesAny(patterns []*regexp.Regexp, u string) bool {
	return slices.ContainsFunc(patterns, func(re *regexp.Regexp) bool { return re.MatchString(u) })
}
