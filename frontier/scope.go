package frontier

import (
	"errors"
	"fmt"
	"regexp"

	"golang.org/x/net/publicsuffix"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// Within says how far from its seeds a crawl may go.
type Within uint8

// How far. The zero value keeps to the seeds' hosts.
const (
	Host   Within = iota // the hosts of the seeds, any scheme and port
	Origin               // the origins of the seeds
	Domain               // the registrable domains of the seeds (public suffix list)
	Any                  // anywhere
)

// ParseWithin returns the Within of that name.
func ParseWithin(name string) (Within, error) {
	for w, n := range withinNames {
		if n == name {
			return Within(w), nil
		}
	}
	return 0, fmt.Errorf("%q is not one of origin, host, domain, any", name)
}

var withinNames = [...]string{Host: "host", Origin: "origin", Domain: "domain", Any: "any"}

// String returns the name.
func (w Within) String() string { return withinNames[w] }

// ScopeConfig says which URLs belong to a crawl.
type ScopeConfig struct {
	Within       Within
	Include      []*regexp.Regexp // a URL must match one of them, if there are any
	Exclude      []*regexp.Regexp // and none of these
	MaxDepth     int              // links from a seed; 0: 32, negative: seeds only
	MaxURLLength int              // bytes; 0: 2048
}

// A Scope decides which URLs belong to a crawl. It is immutable.
type Scope struct {
	cfg   ScopeConfig
	roots map[string]bool // origins, hosts or domains of the seeds
}

// NewScope returns the scope of a crawl from seeds.
func NewScope(cfg ScopeConfig, seeds []decorum.URL) *Scope {
	if cfg.MaxDepth == 0 {
		cfg.MaxDepth = 32
	}
	if cfg.MaxURLLength == 0 {
		cfg.MaxURLLength = 2048
	}
	s := &Scope{cfg: cfg, roots: map[string]bool{}}
	for _, u := range seeds {
		s.roots[s.root(u)] = true
	}
	return s
}

// Check returns nil if e belongs to the crawl, else an error of Kind OutOfScope
// that says why not.
func (s *Scope) Check(e storage.Entry) error {
	if why := s.refuse(e); why != nil {
		return &decorum.Error{Op: "scope", URL: e.URL.String(), Kind: decorum.OutOfScope, Err: why}
	}
	return nil
}

// Reasons that need no detail.
var (
	errScheme      = errors.New("only http and https are fetched")
	errExcluded    = errors.New("matches an exclude pattern")
	errNotIncluded = errors.New("matches no include pattern")
)

func (s *Scope) refuse(e storage.Entry) error {
	u := e.URL.String()
	switch {
	case !e.URL.Origin().IsHTTP():
		return errScheme
	case len(u) > s.cfg.MaxURLLength:
		return fmt.Errorf("longer than %d bytes", s.cfg.MaxURLLength)
	case e.Source == storage.Robots:
		return nil // an errand: the rest is for pages
	case e.Depth > max(s.cfg.MaxDepth, 0):
		return fmt.Errorf("deeper than %d links", max(s.cfg.MaxDepth, 0))
	case s.cfg.Within != Any && !s.roots[s.root(e.URL)]:
		return fmt.Errorf("another %s than the seeds'", s.cfg.Within)
	case len(s.cfg.Include) > 0 && !matchesAny(s.cfg.Include, u):
		return errNotIncluded
	case matchesAny(s.cfg.Exclude, u):
		return errExcluded
	}
	return nil
}

// root returns what u shares with the other URLs that are within its reach.
func (s *Scope) root(u decorum.URL) string {
	switch s.cfg.Within {
	case Origin:
		return u.Origin().String()
	case Domain:
		host := u.Origin().Host()
		if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
			return domain
		}
		return host // an address, or a public suffix itself
	}
	return u.Origin().Host()
}

func matchesAny(patterns []*regexp.Regexp, u string) bool {
	for _, re := range patterns {
		if re.MatchString(u) {
			return true
		}
	}
	return false
}
