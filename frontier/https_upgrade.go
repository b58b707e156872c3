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

// httpsRedirectsNoteKey is the note of an http origin that counts how many of its pages in a row
// redirected to their https variant: one byte, at most redirectsToUpgrade, or answersAlike.
const httpsRedirectsNoteKey = "https"

// redirectsToUpgrade is how many such pages in a row show that an origin has moved to https. From
// then on, an http URL that is found is queued as its https variant.
const redirectsToUpgrade = 3

// answersAlike is the note of an origin whose pages have the same bodies on http and https: twinsToUpgrade
// in a row had. It is more than redirectsToUpgrade, so the origin counts as one that has moved.
const (
	answersAlike   = redirectsToUpgrade + 1
	twinsToUpgrade = 3
)

// maxCachedOrigins is how many of the last used origins are remembered in memory, at least; at most
// twice as many are. Others are read from the store again.
const maxCachedOrigins = 10_000

// An httpsUpgradeTracker knows which http origins have moved to https. It keeps the evidence in
// notes of the store.
type httpsUpgradeTracker struct {
	notes storage.Notes
	scope *Scope // nil: every URL belongs to the crawl

	// mu guards consecutiveRedirectsByOrigin and consecutiveTwinsByOrigin, and serialises writes of the
	// notes with them.
	mu                           sync.Mutex
	consecutiveRedirectsByOrigin recent.Map[decorum.Origin, byte]
	consecutiveTwinsByOrigin     recent.Map[decorum.Origin, byte]
	anyOriginUpgraded            atomic.Bool  // an origin has moved, now or earlier in this process
	upgradeCount                 atomic.Int64 // entries that upgradeEntry has changed
}

// HTTPSUpgradeCount returns how many http URLs this Frontier has queued as their https variant.
func (f *Frontier) HTTPSUpgradeCount() int64 { return f.httpsUpgrades.upgradeCount.Load() }

// HTTPSVariant returns the https URL that differs from u in its scheme only. It returns false if u
// is not on http or has a port other than 80.
func HTTPSVariant(u decorum.URL) (decorum.URL, bool) {
	if !isHTTPOnDefaultPort(u) {
		return decorum.URL{}, false
	}
	variant, err := decorum.ParseURL("https://" + u.String()[len(httpPrefix):])
	return variant, err == nil
}

const httpPrefix = "http://"

// isHTTPOnDefaultPort reports whether u is on http and on the default port. It is called for each
// link, and therefore parses no URL.
func isHTTPOnDefaultPort(u decorum.URL) bool {
	o := u.Origin()
	return strings.HasPrefix(u.String(), httpPrefix) && strings.TrimSuffix(o.HostPort(), ".") == o.Host()
}

// HTTPVariant returns the http URL whose HTTPSVariant is u, and false if there is none.
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

// RecordHTTPSEvidence records how a page was answered. If u is on http, toHTTPS says whether it
// redirected to its https variant. If u is on https, failed says that no answer came, or one that
// leads back to http: the host has then not moved to https.
func (f *Frontier) RecordHTTPSEvidence(ctx context.Context, u decorum.URL, toHTTPS, failed bool) error {
	return f.httpsUpgrades.recordEvidence(ctx, u, toHTTPS, failed)
}

// recordEvidence implements Frontier.RecordHTTPSEvidence.
func (t *httpsUpgradeTracker) recordEvidence(ctx context.Context, u decorum.URL, toHTTPS, failed bool) error {
	o := u.Origin()
	if _, ok := HTTPSVariant(u); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		before, err := t.consecutiveHTTPSRedirects(ctx, o)
		switch {
		case err != nil || before == answersAlike: // an answer on http is no news
			return err
		case toHTTPS:
			return t.setHTTPSNote(ctx, o, before, min(before+1, redirectsToUpgrade))
		}
		return t.setHTTPSNote(ctx, o, before, 0)
	}
	if !failed {
		return nil
	}
	plain, ok := HTTPVariant(u)
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before, err := t.consecutiveHTTPSRedirects(ctx, plain.Origin())
	if err != nil {
		return err
	}
	t.consecutiveTwinsByOrigin.Delete(plain.Origin())
	return t.setHTTPSNote(ctx, plain.Origin(), before, 0)
}

// RecordTwins records that u and its variant on the other scheme, http or https, were both answered with
// 2xx. isAlike says whether their bodies are the same. If those of three pages in a row are, the http
// URLs of the host that are found from then on are queued as their https variants.
func (f *Frontier) RecordTwins(ctx context.Context, u decorum.URL, isAlike bool) error {
	if plain, ok := HTTPVariant(u); ok {
		u = plain
	}
	return f.httpsUpgrades.recordTwins(ctx, u.Origin(), isAlike)
}

// AnswersAlikeOnHTTPS reports whether RecordTwins has shown that the host of u, a URL on https, gives the same
// pages on http.
func (f *Frontier) AnswersAlikeOnHTTPS(ctx context.Context, u decorum.URL) (bool, error) {
	plain, ok := HTTPVariant(u)
	if !ok {
		return false, nil
	}
	t := &f.httpsUpgrades
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.consecutiveHTTPSRedirects(ctx, plain.Origin())
	return n == answersAlike, err
}

// recordTwins implements Frontier.RecordTwins for the http origin o.
func (t *httpsUpgradeTracker) recordTwins(ctx context.Context, o decorum.Origin, isAlike bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, err := t.consecutiveHTTPSRedirects(ctx, o)
	if err != nil {
		return err
	}
	if !isAlike {
		t.consecutiveTwinsByOrigin.Delete(o)
		return t.setHTTPSNote(ctx, o, before, 0)
	}
	n, _ := t.consecutiveTwinsByOrigin.Peek(o)
	t.consecutiveTwinsByOrigin.Put(o, min(n+1, twinsToUpgrade), maxCachedOrigins)
	if n+1 < twinsToUpgrade {
		return nil
	}
	return t.setHTTPSNote(ctx, o, before, answersAlike)
}

// setHTTPSNote changes the evidence about o from before to now, in memory and in the store. The caller
// holds t.mu.
func (t *httpsUpgradeTracker) setHTTPSNote(ctx context.Context, o decorum.Origin, before, now byte) error {
	if now == before {
		return nil
	}
	var note []byte // an empty note is deleted
	if now > 0 {
		note = []byte{now}
	}
	t.setConsecutiveRedirects(o, now)
	return t.notes.SetNote(ctx, o, httpsRedirectsNoteKey, note)
}

// consecutiveHTTPSRedirects returns how many pages of o in a row redirected to https, or answersAlike.
// The caller holds t.mu.
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
		n = min(note[0], answersAlike)
	}
	t.setConsecutiveRedirects(o, n)
	return n, nil
}

// setConsecutiveRedirects remembers the count of o. The caller holds t.mu.
func (t *httpsUpgradeTracker) setConsecutiveRedirects(o decorum.Origin, n byte) {
	t.consecutiveRedirectsByOrigin.Put(o, n, maxCachedOrigins)
	if n >= redirectsToUpgrade {
		t.anyOriginUpgraded.Store(true)
	}
}

// upgradeEntry replaces the URL of e by its https variant if its origin has moved there. It does so
// once: an entry that has come back to http stays there.
func (t *httpsUpgradeTracker) upgradeEntry(ctx context.Context, e *storage.Entry) error {
	if e.HTTPSUpgradeTried {
		return nil
	}
	upgraded, err := t.upgrade(ctx, e.URL)
	if err != nil || upgraded == e.URL {
		return err
	}
	// UncleanedURL must be of the same origin as URL.
	e.URL, e.UncleanedURL, e.UseUncleanedURL, e.HTTPSUpgradeTried = upgraded, decorum.URL{}, false, true
	t.upgradeCount.Add(1)
	return nil
}

// UpgradeIfOriginMovedToHTTPS returns the https variant of u if u's origin has moved to https,
// otherwise u. It also returns u if u belongs to the crawl and the variant does not.
func (f *Frontier) UpgradeIfOriginMovedToHTTPS(ctx context.Context, u decorum.URL) (decorum.URL, error) {
	return f.httpsUpgrades.upgrade(ctx, u)
}

// upgrade implements Frontier.UpgradeIfOriginMovedToHTTPS.
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

// isKnownToStayHTTP reports whether memory shows that upgrade would return u unchanged. False means
// only that the store must be read.
func (t *httpsUpgradeTracker) isKnownToStayHTTP(u decorum.URL) bool {
	if !t.anyOriginUpgraded.Load() || !isHTTPOnDefaultPort(u) {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n, known := t.consecutiveRedirectsByOrigin.Peek(u.Origin())
	return known && n < redirectsToUpgrade
}
