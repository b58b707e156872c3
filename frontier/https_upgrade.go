package frontier

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/storage"
)

// httpsRedirectsNoteKey is the note of an http origin that says how many of its pages in a
// row redirected to themselves on https: one byte, at most redirectsToUpgrade.
const httpsRedirectsNoteKey = "https"

// redirectsToUpgrade is how many pages in a row make an origin one that is on https: a
// URL on http that is found from then on is queued as its twin on https.
const redirectsToUpgrade = 3

// maxCachedOrigins is how many origins are remembered in memory at least, twice as many at most; the
// rest is read from the store again.
const maxCachedOrigins = 10_000

// An httpsUpgradeTracker knows which http origins have moved to https. It keeps that in
// notes.
type httpsUpgradeTracker struct {
	notes storage.Notes
	scope *Scope // nil: every URL belongs to the crawl

	mu                           sync.Mutex // guards consecutiveRedirectsByOrigin, and orders the notes
	consecutiveRedirectsByOrigin recent.Map[decorum.Origin, byte]
	anyOriginUpgraded            atomic.Bool  // of them, or of those before, one is of an origin on https
	upgradeCount                 atomic.Int64 // entries that upgradeEntry has changed
}

// HTTPSUpgradeCount returns how many URLs on http that were found were taken for their
// twins on https, by this Frontier.
func (f *Frontier) HTTPSUpgradeCount() int64 { return f.httpsUpgrades.upgradeCount.Load() }

// HTTPSVariant returns the URL on https of one on http, and false if u is on https, or on
// a port of its own.
func HTTPSVariant(u decorum.URL) (decorum.URL, bool) {
	if !isHTTPOnDefaultPort(u) {
		return decorum.URL{}, false
	}
	variant, err := decorum.ParseURL("https://" + u.String()[len(httpPrefix):])
	return variant, err == nil
}

const httpPrefix = "http://"

// isHTTPOnDefaultPort reports whether u is on http, and not on a port of its own. It is
// asked of each link, and makes no URL.
func isHTTPOnDefaultPort(u decorum.URL) bool {
	o := u.Origin()
	return strings.HasPrefix(u.String(), httpPrefix) && strings.TrimSuffix(o.HostPort(), ".") == o.Host()
}

// HTTPVariant returns the URL on http whose HTTPSVariant u is, and false if there is none.
func HTTPVariant(u decorum.URL) (decorum.URL, bool) {
	rest, ok := strings.CutPrefix(u.String(), "https://")
	if !ok {
		return decorum.URL{}, false
	}
	plain, err := decorum.ParseURL(httpPrefix + rest)
	if err != nil {
		return decorum.URL{}, false
	}
	variant, ok := HTTPSVariant(plain)
	return plain, ok && variant == u
}

// RecordHTTPSEvidence notes how a page was answered: whether it redirected to its twin on
// https. On https, failed says that no answer came, or one that leads back to
// http: then its host is not on https after all.
func (f *Frontier) RecordHTTPSEvidence(ctx context.Context, u decorum.URL, toHTTPS, failed bool) error {
	return f.httpsUpgrades.recordEvidence(ctx, u, toHTTPS, failed)
}

// recordEvidence is Frontier.RecordHTTPSEvidence.
func (t *httpsUpgradeTracker) recordEvidence(ctx context.Context, u decorum.URL, toHTTPS, failed bool) error {
	o := u.Origin()
	if _, ok := HTTPSVariant(u); ok {
		return t.updateConsecutiveHTTPSRedirects(ctx, o, toHTTPS)
	}
	if !failed {
		return nil
	}
	plain, ok := HTTPVariant(u)
	if !ok {
		return nil
	}
	return t.updateConsecutiveHTTPSRedirects(ctx, plain.Origin(), false)
}

// updateConsecutiveHTTPSRedirects adds to the row of an origin, or ends it.
func (t *httpsUpgradeTracker) updateConsecutiveHTTPSRedirects(ctx context.Context, o decorum.Origin, redirected bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, err := t.consecutiveHTTPSRedirects(ctx, o)
	if err != nil {
		return err
	}
	now := byte(0)
	if redirected {
		now = min(before+1, redirectsToUpgrade)
	}
	if now == before {
		return nil
	}
	var note []byte
	if now > 0 {
		note = []byte{now}
	}
	t.setConsecutiveRedirects(o, now)
	return t.notes.SetNote(ctx, o, httpsRedirectsNoteKey, note)
}

// consecutiveHTTPSRedirects returns how many pages in a row of o redirected to https. It needs
// t.mu.
func (t *httpsUpgradeTracker) consecutiveHTTPSRedirects(ctx context.Context, o decorum.Origin) (byte, error) {
	if n, known := t.consecutiveRedirectsByOrigin.Peek(o); known {
		return n, nil
	}
	note, err := t.notes.ReadNote(ctx, o, httpsRedirectsNoteKey)
	if err != nil {
		return 0, err
	}
	n := byte(0)
	if len(note) == 1 {
		n = min(note[0], redirectsToUpgrade)
	}
	t.setConsecutiveRedirects(o, n)
	return n, nil
}

// setConsecutiveRedirects remembers the row of an origin. It needs t.mu.
func (t *httpsUpgradeTracker) setConsecutiveRedirects(o decorum.Origin, n byte) {
	t.consecutiveRedirectsByOrigin.Put(o, n, maxCachedOrigins)
	if n >= redirectsToUpgrade {
		t.anyOriginUpgraded.Store(true)
	}
}

// upgradeEntry takes an entry for its twin on https if that is where its origin has gone:
// once, for one that has come back to http from there stays.
func (t *httpsUpgradeTracker) upgradeEntry(ctx context.Context, e *storage.Entry) error {
	if e.HTTPSUpgradeTried {
		return nil
	}
	upgraded, err := t.upgrade(ctx, e.URL)
	if err != nil || upgraded == e.URL {
		return err
	}
	e.URL, e.UncleanedURL, e.UseUncleanedURL, e.HTTPSUpgradeTried = upgraded, decorum.URL{}, false, true // Found must be of the same origin
	t.upgradeCount.Add(1)
	return nil
}

// UpgradeIfOriginMovedToHTTPS returns the twin of u on https if that is where its origin has gone,
// else u itself. A URL that belongs to the crawl stays as it is if its twin does
// not: not all of its origin need have gone.
func (f *Frontier) UpgradeIfOriginMovedToHTTPS(ctx context.Context, u decorum.URL) (decorum.URL, error) {
	return f.httpsUpgrades.upgrade(ctx, u)
}

// upgrade is Frontier.UpgradeIfOriginMovedToHTTPS.
func (t *httpsUpgradeTracker) upgrade(ctx context.Context, u decorum.URL) (decorum.URL, error) {
	if !isHTTPOnDefaultPort(u) {
		return u, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, err := t.consecutiveHTTPSRedirects(ctx, u.Origin()); err != nil || n < redirectsToUpgrade {
		return u, err
	}
	variant, ok := HTTPSVariant(u)
	if !ok || t.scope.Check(storage.Entry{URL: variant}) != nil && t.scope.Check(storage.Entry{URL: u}) == nil {
		return u, nil
	}
	return variant, nil
}

// isKnownToStayHTTP reports whether u is known not to be taken for its twin on https, as far
// as that is in memory.
func (t *httpsUpgradeTracker) isKnownToStayHTTP(u decorum.URL) bool {
	if !t.anyOriginUpgraded.Load() || !isHTTPOnDefaultPort(u) {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n, known := t.consecutiveRedirectsByOrigin.Peek(u.Origin())
	return known && n < redirectsToUpgrade
}
