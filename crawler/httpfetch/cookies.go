package httpfetch

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/internal/registrable"
	"github.com/decorum-crawler/decorum/storage"
)

const (
	// maxCookiesPerSite is how many cookies a site may set, and maxJarBytes how many bytes they may
	// take together. The oldest cookies are dropped first.
	maxCookiesPerSite = 64
	maxJarBytes       = 64 << 10
	// maxCookieBytes is the largest cookie, in bytes with its attributes (RFC 6265, section 6.1).
	maxCookieBytes = 4096
	// cachedSites is how many recently visited sites have their cookies in memory; at most twice as
	// many do.
	cachedSites = 512
)

// Cookies are the cookies of a crawl (RFC 6265), stored in its notes. Each site, which is a domain
// that can be registered according to the public suffix list, has a separate jar, so that a site
// can neither set cookies for another nor displace them. Requests for pages and feeds carry cookies
// and their responses set them; requests for robots.txt files and sitemaps carry none. The methods
// are safe for concurrent use.
type Cookies struct {
	noteStore storage.Notes
	mu        sync.Mutex // guards jars, and is held while a site's note is read or written
	jars      recent.Map[string, *singleSiteCookies]
}

// NewCookies returns the cookies that are stored in notes.
func NewCookies(notes storage.Notes) *Cookies {
	return &Cookies{noteStore: notes}
}

// A singleSiteCookies has the cookies of a site: as the site set them, and as a jar made from them.
type singleSiteCookies struct {
	savedCookies []savedCookie // oldest first
	cookieJar    *cookiejar.Jar
}

// A savedCookie is one cookie as the site set it, encoded in the site's note.
type savedCookie struct {
	SetCookieHeader string    `json:"line"` // value of the Set-Cookie header
	URL             string    `json:"from"` // URL whose response set it
	SetAt           time.Time `json:"at"`
}

// addToRequest adds the cookies for req's URL to req. It returns an error if they cannot be read from
// the notes.
func (c *Cookies) addToRequest(ctx context.Context, req *http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	j, err := c.jarFor(ctx, req.URL)
	if err != nil {
		return err
	}
	cookies := j.cookieJar.Cookies(req.URL)
	if len(cookies) > 0 {
		req.Header = req.Header.Clone()
	}
	for _, cookie := range cookies {
		req.AddCookie(cookie)
	}
	return nil
}

// storeCookies keeps the cookies that the response to a request for u sets. They apply even if the
// notes cannot be written for now: a failing store pauses or ends the crawl in any case.
func (c *Cookies) storeCookies(ctx context.Context, u *url.URL, res *http.Response) {
	lines := res.Header.Values("Set-Cookie")
	if len(lines) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old, err := c.jarFor(ctx, u)
	if err != nil {
		return
	}
	saved, now := slices.Clone(old.savedCookies), time.Now()
	for _, line := range lines[max(0, len(lines)-maxCookiesPerSite):] {
		// Only the URL's parts that cookies depend on are kept: no query, no user.
		if len(line) <= maxCookieBytes {
			saved = append(saved, savedCookie{SetCookieHeader: line,
				URL: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), SetAt: now})
		}
	}
	j := newSiteCookieJar(saved, now)
	c.jars.Put(siteOf(u), j, cachedSites)
	if note, err := json.Marshal(j.savedCookies); err == nil {
		_ = c.noteStore.SetNote(ctx, decorum.Origin{}, cookiesNoteKey(siteOf(u)), note)
	}
}

// jarFor returns the cookies for u's site, from memory or from the site's note. The caller holds
// c.mu. An unreadable note counts as empty.
func (c *Cookies) jarFor(ctx context.Context, u *url.URL) (*singleSiteCookies, error) {
	site := siteOf(u)
	if j, ok := c.jars.Get(site, cachedSites); ok {
		return j, nil
	}
	note, err := c.noteStore.ReadNote(ctx, decorum.Origin{}, cookiesNoteKey(site))
	if err != nil {
		return nil, err
	}
	var saved []savedCookie
	if len(note) > 0 && json.Unmarshal(note, &saved) != nil {
		saved = nil
	}
	j := newSiteCookieJar(saved, time.Now())
	c.jars.Put(site, j, cachedSites)
	return j, nil
}

// cookiesNoteKey returns the key of the note that holds the cookies of site.
func cookiesNoteKey(site string) string { return "cookies " + site }

// siteOf returns the domain within which cookies for u are shared: the registrable domain, or the
// host itself if it has no registrable domain, like an IP address.
func siteOf(u *url.URL) string { return registrable.Domain(u.Hostname()) }

// newSiteCookieJar returns a jar of the cookies in saved. If saved has several cookies with one
// identity, the last one counts; expired cookies are left out.
func newSiteCookieJar(saved []savedCookie, now time.Time) *singleSiteCookies {
	// cookiejar.New returns no error for valid options.
	cookieJar, _ := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List})
	j := &singleSiteCookies{cookieJar: cookieJar}
	index := map[string]int{}
	for _, c := range saved {
		cookie, from := c.parse()
		if cookie == nil {
			continue
		}
		id := cookieIdentity(cookie, from)
		if i, known := index[id]; known {
			j.savedCookies[i] = savedCookie{}
			delete(index, id)
		}
		if cookie.MaxAge >= 0 && (cookie.Expires.IsZero() || cookie.Expires.After(now)) {
			index[id] = len(j.savedCookies)
			j.savedCookies = append(j.savedCookies, c)
		}
	}
	j.savedCookies = slices.DeleteFunc(j.savedCookies, func(c savedCookie) bool { return c == savedCookie{} })
	j.trimToLimits()
	for _, c := range j.savedCookies {
		cookie, from := c.parse()
		j.cookieJar.SetCookies(from, []*http.Cookie{cookie})
	}
	return j
}

// trimToLimits removes the oldest cookies beyond the limits of a site.
func (j *singleSiteCookies) trimToLimits() {
	first, size := len(j.savedCookies), 0
	for first > 0 && len(j.savedCookies)-first < maxCookiesPerSite {
		size += len(j.savedCookies[first-1].SetCookieHeader) + len(j.savedCookies[first-1].URL)
		if size > maxJarBytes {
			break
		}
		first--
	}
	j.savedCookies = j.savedCookies[first:]
}

// parse returns the cookie, with its Max-Age converted to Expires (at most 400 days), and the URL that
// set it. It returns nil if the header is invalid, or names a domain that does not contain the URL's
// host (RFC 6265, section 5.3, step 6), so that such a cookie does not replace a valid one.
func (c savedCookie) parse() (*http.Cookie, *url.URL) {
	cookie, err := http.ParseSetCookie(c.SetCookieHeader)
	from, urlErr := url.Parse(c.URL)
	if err != nil || urlErr != nil {
		return nil, nil
	}
	if domain := cookieDomain(cookie); domain != "" && !strings.HasSuffix("."+from.Hostname(), "."+domain) {
		return nil, nil
	}
	if cookie.MaxAge > 0 {
		age := min(time.Duration(cookie.MaxAge), 400*24*3600) * time.Second
		cookie.Expires, cookie.MaxAge = c.SetAt.Add(age), 0
	}
	return cookie, from
}

// cookieDomain returns the domain that a cookie is for; empty for a cookie of its host alone.
func cookieDomain(cookie *http.Cookie) string {
	return strings.ToLower(strings.TrimPrefix(cookie.Domain, "."))
}

// cookieIdentity returns a key that is equal for two settings of the same cookie (RFC 6265, section
// 5.3, step 11).
func cookieIdentity(cookie *http.Cookie, from *url.URL) string {
	domain := cmp.Or(cookieDomain(cookie), "="+from.Hostname())
	dir := from.Path[:max(0, strings.LastIndexByte(from.Path, '/'))]
	path := cookie.Path
	if !strings.HasPrefix(path, "/") {
		path = cmp.Or(dir, "/")
	}
	return strings.Join([]string{cookie.Name, domain, path}, ";")
}
