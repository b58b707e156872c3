package gate

import (
	"cmp"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/internal/backoff"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// A Config says how a Gate decides. The zero value of a field means its
// default.
type Config struct {
	// Agent is who crawls. The zero Agent is addressed by "*" alone.
	Agent robots.Agent
	// UserAgent is the header with which files are fetched: a server may answer
	// another crawler otherwise. Gates that share notes share what they learn if
	// it is the same, whatever their Agents (CACHE-03).
	UserAgent string
	// Dialect and NoExtensions say how files are read: see robots.ParseOptions.
	Dialect      robots.Dialect
	NoExtensions bool
	// SessionStart is when the session began, such as one run of a crawl: what was
	// learnt before is asked for anew, whatever its age (CACHE-08, SESS-01). The
	// Yandex dialect must have one; in others zero means that answers hold until
	// they are too old (SESS-03).
	SessionStart time.Time
	// Purposes are what the crawl is for, of the constant aiuse.KnownPurposes. A page whose
	// file asks, by Content-Usage or Content-Signal, not to be used for one of
	// them is refused. Empty: such wishes are kept, and not enforced.
	Purposes []string
	// MinTTL and MaxTTL bound how long rules hold (CACHE-07). Defaults 1 min, 24 h.
	// Within a day, rules hold at least until a page has been cleared by them.
	MinTTL, MaxTTL time.Duration
	// MaxRedirects is how many redirects of a robots.txt are followed, at least 5
	// (FETCH-02). Default 5.
	MaxRedirects int
	// Backoff503 says when to ask again after a 503, Backoff after any other
	// failure (FETCH-12). Defaults 1 min to 5 min, and 5 min to 1 h.
	Backoff503, Backoff Backoff
	// MinOutageForCachedRules is how long a robots.txt must have been unreachable, without a
	// break, for its last good copy to count again (FETCH-13). Default 30 days.
	MinOutageForCachedRules time.Duration
	// SuspendAfterFailures is how many lookups of an origin must have failed in a row for
	// nobody to wait for it any more. Default 3.
	SuspendAfterFailures int
	// NotFoundPhrases lists what error pages say in any case of letters where they
	// answer 5xx for a missing page (FETCH-17). Default: "Page not found" in English,
	// Russian, Chinese and Czech.
	NotFoundPhrases []string
	// FetchLeaseTimeout is how long a lookup may take until somebody else may make it, RedirectWaitTimeout
	// how long a redirect's target may wait for its host. Defaults 2 min, 15 min.
	FetchLeaseTimeout, RedirectWaitTimeout time.Duration
	// MaxVersions is how many files of an origin are kept, the one that counts
	// included, and MaxArchiveBytes how many bytes the others may have together. The
	// oldest go first. Defaults 20, 2 MiB; a negative one means none but the one
	// that counts.
	MaxVersions, MaxArchiveBytes int
	// MaxCachedOrigins is how many origins' rules are held ready in memory; those of
	// others are read from the notes when they are needed. Default 10,000.
	MaxCachedOrigins int
}

// A Backoff is how long to wait after a failure: First, then twice as long
// after each further one in a row, never longer than Max.
type Backoff struct{ First, Max time.Duration }

// delayAfter returns the wait after so many failures in a row.
func (b Backoff) delayAfter(failures int) time.Duration {
	return backoff.Delay(b.First, b.Max, failures)
}

// defaultNotFoundPhrases are those of Q-15.
var defaultNotFoundPhrases = []string{"Page not found", "Страница не найдена", "找不到网页", "Stránka nenalezena"}

// Validate reports settings that make no sense.
func (c Config) Validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"MinTTL", c.MinTTL}, {"MaxTTL", c.MaxTTL}, {"MinOutageForCachedRules", c.MinOutageForCachedRules}, {"FetchLeaseTimeout", c.FetchLeaseTimeout}, {"RedirectWaitTimeout", c.RedirectWaitTimeout},
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
		return fmt.Errorf("robots gate: purposes are judged by lines that NoExtensions ignores")
	}
	c = c.withDefaults()
	switch {
	case c.Dialect == robots.Yandex && c.SessionStart.IsZero():
		return fmt.Errorf("robots gate: the yandex dialect needs to know when the session began")
	case c.MinTTL > c.MaxTTL:
		return fmt.Errorf("robots gate: MinTTL %v is longer than MaxTTL %v", c.MinTTL, c.MaxTTL)
	case c.MaxRedirects < minRedirects:
		return fmt.Errorf("robots gate: MaxRedirects must be at least %d", minRedirects)
	case c.SuspendAfterFailures < 0, c.MaxCachedOrigins < 0:
		return fmt.Errorf("robots gate: SuspendAfterFailures and MaxCachedOrigins must not be negative")
	case c.Backoff503.First > c.Backoff503.Max, c.Backoff.First > c.Backoff.Max:
		return fmt.Errorf("robots gate: a first retry must not wait longer than the longest")
	}
	return nil
}

// minRedirects is how many redirects must be followed (FETCH-02).
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
