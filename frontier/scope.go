package frontier

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/registrable"
	"github.com/decorum-crawler/decorum/storage"
)

// A ScopeMode says how far from its seeds a crawl may go.
type ScopeMode uint8

// The modes. The zero value limits the crawl to the hosts of the seeds.
const (
	HostScope   ScopeMode = iota // the hosts of the seeds, any scheme and port
	OriginScope                  // the origins of the seeds
	DomainScope                  // the registrable domains of the seeds (public suffix list)
	AnyScope                     // every URL
	PathScope                    // the directories of the seeds on their hosts, any scheme and port
)

// ParseScopeMode returns the mode of that name: path, origin, host, domain or any.
func ParseScopeMode(name string) (ScopeMode, error) {
	if i := slices.Index(scopeModeNames[:], name); i >= 0 {
		return ScopeMode(i), nil
	}
	return 0, fmt.Errorf("%q is not one of path, origin, host, domain, any", name)
}

var scopeModeNames = [...]string{HostScope: "host", OriginScope: "origin", DomainScope: "domain", AnyScope: "any",
	PathScope: "path"}

// String returns the name of the mode, "unknown" for an invalid one.
func (w ScopeMode) String() string {
	if int(w) < len(scopeModeNames) {
		return scopeModeNames[w]
	}
	return "unknown"
}

// ScopeConfig says which URLs belong to a crawl. A limit of 0 means the constant of its name:
// MaxDepth 0 means DefaultMaxDepth. MaxParams and the limits after it end what a site generates
// without end.
type ScopeConfig struct {
	Mode ScopeMode // how far from the seeds
	// SeedRedirects is how far from a seed its own redirects may lead beyond Mode. The site at their end
	// then belongs to the crawl: see Frontier.ExtendScopeToSeedTarget. It applies to entries with a
	// SeedOrigin.
	SeedRedirects ScopeMode
	AllowFTP      bool             // ftp URLs belong to the crawl; also allowed if a seed is one
	Include       []*regexp.Regexp // if not empty, a URL must match one of them
	Exclude       []*regexp.Regexp // a URL must match none of them
	MaxDepth      int              // links from a seed; negative: seeds only
	MaxURLLength  int              // bytes
	MaxParams     int              // parameters in a query
	MaxPathDepth  int              // segments in a path
	// MaxPathRepeats is how many times in a row a path may contain the same segment, or the same
	// sequence of up to 8 segments.
	MaxPathRepeats int
	MaxRedirects   int // consecutive redirects that lead to a URL
	// MaxURLsPerPattern is how many URLs of a host are queued whose paths and queries differ only
	// in numbers, dates and random tokens: see URLPattern. URLs of seeds and sitemaps are not
	// counted. Each new Frontier counts from 0.
	MaxURLsPerPattern int
	// MaxSortLinksPerHost is how many links of a host are queued that only sort a list: see IsSortLink.
	// MaxFeedsPerHost is how many feeds of a host are queued that pages announce. Negative: no limit.
	// Seeds, and what sitemaps list, are not counted. Each new Frontier counts from 0.
	MaxSortLinksPerHost, MaxFeedsPerHost int
	// MaxDuplicatesPerPattern is how many pages of a host may have the body of another of its pages
	// and URLs of the same pattern (a directory, a path with any values of its parameters, or a
	// URLPattern) before links to that pattern are refused, if at most a tenth as many of its pages
	// are new.
	MaxDuplicatesPerPattern int
	// MaxURLsPerHost is how many URLs of an origin are ever queued: each scheme and port of a host
	// is counted separately. Seeds are queued beyond the limit.
	MaxURLsPerHost int
	// MaxHostsPerDomain is how many hosts of a registrable domain may ever have a URL queued. As
	// for DomainScope, each user of github.io has a separate domain. Hosts of seeds, and targets of
	// a robots.txt redirect, are counted but never refused.
	MaxHostsPerDomain int
	// MaxHosts is how many hosts of all domains together may ever have a URL queued.
	MaxHosts    int
	CurrentYear int // year of the crawl, which bounds calendars; 0: no bound
}

// The defaults of the limits of a ScopeConfig.
const (
	DefaultMaxDepth          = 32
	DefaultMaxURLLength      = 2048
	DefaultMaxParams         = 32
	DefaultMaxPathDepth      = 20
	DefaultMaxPathRepeats    = 3
	DefaultMaxRedirects      = 10
	DefaultMaxURLsPerPattern = 100_000
	DefaultMaxURLsPerHost    = 1_000_000

	DefaultMaxSortLinksPerHost = 20
	DefaultMaxFeedsPerHost     = 20

	DefaultMaxDuplicatesPerPattern = 100
	DefaultMaxHostsPerDomain       = 10_000
	DefaultMaxHosts                = 1_000_000
)

// withDefaults returns c with each limit of 0 set to its default.
func (c ScopeConfig) withDefaults() ScopeConfig {
	c.MaxDepth = cmp.Or(c.MaxDepth, DefaultMaxDepth)
	c.MaxURLLength = cmp.Or(c.MaxURLLength, DefaultMaxURLLength)
	c.MaxParams = cmp.Or(c.MaxParams, DefaultMaxParams)
	c.MaxPathDepth = cmp.Or(c.MaxPathDepth, DefaultMaxPathDepth)
	c.MaxPathRepeats = cmp.Or(c.MaxPathRepeats, DefaultMaxPathRepeats)
	c.MaxRedirects = cmp.Or(c.MaxRedirects, DefaultMaxRedirects)
	c.MaxURLsPerPattern = cmp.Or(c.MaxURLsPerPattern, DefaultMaxURLsPerPattern)
	c.MaxSortLinksPerHost = cmp.Or(c.MaxSortLinksPerHost, DefaultMaxSortLinksPerHost)
	c.MaxFeedsPerHost = cmp.Or(c.MaxFeedsPerHost, DefaultMaxFeedsPerHost)
	c.MaxDuplicatesPerPattern = cmp.Or(c.MaxDuplicatesPerPattern, DefaultMaxDuplicatesPerPattern)
	c.MaxURLsPerHost = cmp.Or(c.MaxURLsPerHost, DefaultMaxURLsPerHost)
	c.MaxHostsPerDomain = cmp.Or(c.MaxHostsPerDomain, DefaultMaxHostsPerDomain)
	c.MaxHosts = cmp.Or(c.MaxHosts, DefaultMaxHosts)
	return c
}

// A Scope decides which URLs belong to a crawl. It is immutable, but for that of a Frontier: see
// Frontier.Scope.
type Scope struct {
	cfg       ScopeConfig
	scopeKeys map[string]bool // scopeKey of each seed: true; in PathScope also of the directories above: false
	allowsFTP bool            // AllowFTP, or a seed is on ftp
	// hasRedirectSite reports whether redirects of seeds led to a site; nil: to none.
	hasRedirectSite func(scopeKey string) bool
}

// NewScope returns the Scope of a crawl from seeds.
func NewScope(cfg ScopeConfig, seeds []decorum.URL) *Scope {
	s := &Scope{cfg: cfg.withDefaults(), scopeKeys: map[string]bool{}, allowsFTP: cfg.AllowFTP}
	for _, u := range seeds {
		key := s.scopeKey(u)
		s.anyScopeKey(u, func(above string) bool {
			s.scopeKeys[above] = s.scopeKeys[above] || above == key
			return false
		})
		s.allowsFTP = s.allowsFTP || !u.Origin().IsHTTP()
	}
	return s
}

// Check returns nil if e belongs to the crawl, otherwise an error of Kind decorum.OutOfScope with a
// *Refusal. It does not check the limits of how many URLs and hosts there are: see
// Frontier.Discover. A nil Scope contains every URL.
func (s *Scope) Check(e storage.Entry) error {
	if s == nil {
		return nil
	}
	if why := s.refusal(&e); why != nil {
		return outOfScopeError(e.URL, why)
	}
	return nil
}

// refusal returns why e does not belong to the crawl, nil if it does.
func (s *Scope) refusal(e *storage.Entry) *Refusal {
	u := e.URL.String()
	switch {
	case !s.allowsFTP && !e.URL.Origin().IsHTTP():
		return &Refusal{WrongScheme, "ftp is not fetched unless a seed is on ftp, or fetch.ftp says so"}
	case len(u) > s.cfg.MaxURLLength:
		return newRefusal(LongURL, "longer than %d bytes", s.cfg.MaxURLLength)
	case e.Redirects > s.cfg.MaxRedirects:
		return newRefusal(TooManyRedirects, "more than %d redirects in a row", s.cfg.MaxRedirects)
	// The other limits apply to pages. A robots.txt or a sitemap may be anywhere.
	case e.Source == storage.SourcePrerequisite:
		return nil
	case e.Depth > max(s.cfg.MaxDepth, 0):
		return s.depthRefusal(e)
	case !s.isWithinMode(e) && s.cfg.Mode == PathScope:
		return newRefusal(OutsideScope, "outside the directories of the seeds")
	case !s.isWithinMode(e):
		return newRefusal(OutsideScope, "another %s than the seeds'", s.cfg.Mode)
	case len(s.cfg.Include) > 0 && !matchesAny(s.cfg.Include, u):
		return &Refusal{NotIncluded, "matches no include pattern"}
	case matchesAny(s.cfg.Exclude, u):
		return &Refusal{Excluded, "matches an exclude pattern"}
	}
	return s.cfg.trapRefusal(e.URL.PathAndQuery())
}

// depthRefusal returns the refusal of a link that is too deep. A chain of pages that each lead to the
// next, as archives and lists do, may end there although the crawl wants all of them, so its refusal
// has its own reason.
func (s *Scope) depthRefusal(e *storage.Entry) *Refusal {
	limit := max(s.cfg.MaxDepth, 0)
	pattern, isMasked := URLPattern(e.URL.PathAndQuery())
	if path, ok := strings.CutPrefix(e.Referrer, e.URL.Origin().String()); ok && isMasked && limit > 0 {
		if from, _ := URLPattern(path); from == pattern {
			return newRefusal(DeepChain, "deeper than %d links, in a chain of pages as %s", limit, pattern)
		}
	}
	return newRefusal(DeepLink, "deeper than %d links", limit)
}

// isWithinMode reports whether e is as near to the seeds as the mode requires, or to its own seed as
// SeedRedirects requires.
func (s *Scope) isWithinMode(e *storage.Entry) bool {
	return s.cfg.Mode == AnyScope || s.isSeedSite(e.URL) ||
		s.hasRedirectSite != nil && s.anyScopeKey(e.URL, s.hasRedirectSite) ||
		s.mayRedirect(e.SeedOrigin, e.URL.Origin())
}

// mayRedirect reports whether redirects may lead from seed, which is zero if they begin elsewhere, to
// target.
func (s *Scope) mayRedirect(seed, target decorum.Origin) bool {
	near := s.cfg.SeedRedirects
	return !seed.IsZero() && s.hasSeedOn(seed) && near.siteKey(seed) == near.siteKey(target)
}

// hasSeedOn reports whether o is as near to a seed as the mode requires; in PathScope, whether a seed is on
// its host.
func (s *Scope) hasSeedOn(o decorum.Origin) bool {
	key := s.cfg.Mode.siteKey(o)
	if s.cfg.Mode == PathScope {
		key += "/"
	}
	_, ok := s.scopeKeys[key]
	return ok
}

// isSeedSite reports whether u is as near to a seed as the mode requires.
func (s *Scope) isSeedSite(u decorum.URL) bool {
	return s.anyScopeKey(u, func(key string) bool { return s.scopeKeys[key] })
}

// newRefusal returns a Refusal with a formatted Detail.
func newRefusal(r RefusalReason, format string, args ...any) *Refusal {
	return &Refusal{r, fmt.Sprintf(format, args...)}
}

// anyScopeKey reports whether has returns true for the scopeKey of u or, in PathScope, for the key of any
// directory above it.
func (s *Scope) anyScopeKey(u decorum.URL, has func(key string) bool) bool {
	key := s.scopeKey(u)
	if s.cfg.Mode != PathScope {
		return has(key)
	}
	for i := len(u.Origin().Host()); i < len(key); i++ {
		if key[i] == '/' && has(key[:i+1]) {
			return true
		}
	}
	return false
}

// scopeKey returns the origin, host or domain of u, or its host and directory. All URLs with the key of
// a seed are in scope.
func (s *Scope) scopeKey(u decorum.URL) string {
	key := s.cfg.Mode.siteKey(u.Origin())
	if s.cfg.Mode == PathScope {
		key += directoryOf(u)
	}
	return key
}

// directoryOf returns the path of u up to its last slash.
func directoryOf(u decorum.URL) string {
	path, _, _ := strings.Cut(u.PathAndQuery(), "?")
	return path[:strings.LastIndexByte(path, '/')+1]
}

// siteKey returns o, its host or its domain, or "" for AnyScope.
func (w ScopeMode) siteKey(o decorum.Origin) string {
	switch w {
	case OriginScope:
		return o.String()
	case DomainScope:
		return registrable.Domain(o.Host())
	case AnyScope:
		return ""
	}
	return o.Host()
}

// matchesAny reports whether u matches one of patterns.
func matchesAny(patterns []*regexp.Regexp, u string) bool {
	return slices.ContainsFunc(patterns, func(re *regexp.Regexp) bool { return re.MatchString(u) })
}
