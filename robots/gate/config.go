package gate

import (
	"cmp"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/internal/backoff"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// A Config configures a Gate. The zero value of a field means its default.
type Config struct {
	// Agent is the crawler whose rules count. Files address the zero Agent only by "*".
	Agent robots.Agent
	// UserAgent is the User-Agent header with which the crawl fetches files, because a server may
	// answer other crawlers differently. Gates that share notes and have the same UserAgent share
	// their records, whatever their Agents are (CACHE-03).
	UserAgent string
	// Dialect and NoExtensions are the options for parsing files: see robots.ParseOptions.
	Dialect      robots.Dialect
	NoExtensions bool
	// SessionStart is when the session, such as one run of a crawl, began. The Gate fetches a
	// robots.txt again if its answer is older than the session (CACHE-08, SESS-01). The Yandex
	// dialect requires a SessionStart. In other dialects zero means that answers are valid until
	// they expire (SESS-03).
	SessionStart time.Time
	// Purposes are what the crawl is for, from aiuse.KnownPurposes. The Gate disallows a page if
	// the file forbids, by Content-Usage or Content-Signal, its use for one of them. If Purposes is
	// empty, the Gate reports such preferences and does not enforce them.
	Purposes []string
	// MinTTL and MaxTTL bound how long rules are valid (CACHE-07). Defaults: 1 min, 24 h. New rules
	// stay in force longer, for at most a day, until they have cleared a page.
	MinTTL, MaxTTL time.Duration
	// MaxRedirects is how many redirects of a robots.txt are followed, at least 5
	// (FETCH-02). Default: 5.
	MaxRedirects int
	// Backoff503 says when to try again after a 503, Backoff after any other failure (FETCH-12).
	// Defaults: 1 min to 5 min, and 5 min to 1 h.
	Backoff503, Backoff Backoff
	// MinOutageForCachedRules is how long a robots.txt must have been unreachable without
	// interruption before its last good copy is used again (FETCH-13). Default: 30 days.
	MinOutageForCachedRules time.Duration
	// SuspendAfterFailures is after how many consecutive failed fetches a crawl stops waiting for
	// the origin. Default: 3.
	SuspendAfterFailures int
	// NotFoundPhrases are phrases by which the Gate recognises the error page of a missing file
	// that a server sends with a 5xx status (FETCH-17). Case does not matter. Default: "Page not
	// found" in English, Russian, Chinese and Czech.
	NotFoundPhrases []string
	// FetchLeaseTimeout is how long a caller may take to fetch a robots.txt before another caller
	// may fetch it. RedirectWaitTimeout is how long the target of a redirect may wait until its
	// host is due. Defaults: 2 min, 15 min.
	FetchLeaseTimeout, RedirectWaitTimeout time.Duration
	// MaxVersions is how many files of an origin are stored, including the current one.
	// MaxArchiveBytes limits the total size of the older ones. The oldest are deleted first.
	// Defaults: 20, 2 MiB. If one of them is negative, only the current file is stored.
	MaxVersions, MaxArchiveBytes int
	// MaxCachedOrigins is for how many origins compiled rules are kept in memory. For other origins
	// the Gate reads the notes again when it needs them. Default: 10,000.
	MaxCachedOrigins int
}

// A Backoff is the wait after a failure: First, doubled after each further consecutive failure, at
// most Max.
type Backoff struct{ First, Max time.Duration }

// delayAfter returns the wait after the given number of consecutive failures.
func (b Backoff) delayAfter(failures int) time.Duration {
	return backoff.Delay(b.First, b.Max, failures)
}

// defaultNotFoundPhrases are the phrases of requirement Q-15.
var defaultNotFoundPhrases = []string{"Page not found", "Страница не найдена", "找不到网页", "Stránka nenalezena"}

// Validate returns an error for the first invalid setting that it finds, nil if c is valid.
func (c Config) Validate() error {
	// Check the fields as they were set, in which zero means the default.
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"MinTTL", c.MinTTL}, {"MaxTTL", c.MaxTTL}, {"MinOutageForCachedRules", c.MinOutageForCachedRules},
		{"FetchLeaseTimeout", c.FetchLeaseTimeout}, {"RedirectWaitTimeout", c.RedirectWaitTimeout},
		{"Backoff503", min(c.Backoff503.First, c.Backoff503.Max)}, {"Backoff", min(c.Backoff.First, c.Backoff.Max)},
	} {
		if d.value < 0 {
			return fmt.Errorf("robots gate: %s must not be negative", d.name)
		}
	}
	if err := aiuse.ValidatePurposes(c.Purposes); err != nil {
		return fmt.Errorf("robots gate: %w", err)
	}
	if len(c.Purposes) > 0 && c.NoExtensions {
		return fmt.Errorf("robots gate: Purposes need the lines that NoExtensions ignores")
	}
	// Check the values that depend on each other with their defaults.
	c = c.withDefaults()
	switch {
	case c.Dialect == robots.Yandex && c.SessionStart.IsZero():
		return fmt.Errorf("robots gate: the yandex dialect requires SessionStart")
	case c.MinTTL > c.MaxTTL:
		return fmt.Errorf("robots gate: MinTTL %v is longer than MaxTTL %v", c.MinTTL, c.MaxTTL)
	case c.MaxRedirects < minRedirects:
		return fmt.Errorf("robots gate: MaxRedirects must be at least %d", minRedirects)
	case c.SuspendAfterFailures < 0, c.MaxCachedOrigins < 0:
		return fmt.Errorf("robots gate: SuspendAfterFailures and MaxCachedOrigins must not be negative")
	case c.Backoff503.First > c.Backoff503.Max, c.Backoff.First > c.Backoff.Max:
		return fmt.Errorf("robots gate: Backoff and Backoff503 must not have a First longer than Max")
	}
	return nil
}

// minRedirects is the number of redirects that a crawler must follow (FETCH-02).
const minRedirects = 5

func (c Config) withDefaults() Config {
	c.MinTTL = cmp.Or(c.MinTTL, time.Minute)
	c.MaxTTL = cmp.Or(c.MaxTTL, day)
	c.MaxRedirects = cmp.Or(c.MaxRedirects, minRedirects)
	c.Backoff503.First = cmp.Or(c.Backoff503.First, time.Minute)
	c.Backoff503.Max = cmp.Or(c.Backoff503.Max, max(5*time.Minute, c.Backoff503.First))
	c.Backoff.First = cmp.Or(c.Backoff.First, 5*time.Minute)
	c.Backoff.Max = cmp.Or(c.Backoff.Max, max(time.Hour, c.Backoff.First))
	c.MinOutageForCachedRules = cmp.Or(c.MinOutageForCachedRules, 30*day)
	c.SuspendAfterFailures = cmp.Or(c.SuspendAfterFailures, 3)
	if c.NotFoundPhrases == nil {
		c.NotFoundPhrases = defaultNotFoundPhrases
	}
	c.FetchLeaseTimeout = cmp.Or(c.FetchLeaseTimeout, 2*time.Minute)
	c.RedirectWaitTimeout = cmp.Or(c.RedirectWaitTimeout, 15*time.Minute)
	c.MaxCachedOrigins = cmp.Or(c.MaxCachedOrigins, 10_000)
	c.MaxVersions = cmp.Or(c.MaxVersions, 20)
	c.MaxArchiveBytes = cmp.Or(c.MaxArchiveBytes, 2<<20)
	return c
}

const day = 24 * time.Hour
