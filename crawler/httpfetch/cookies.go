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
	// maxCookiesPerSite is how many cookies a site may have set, and maxJarBytes how many
	// bytes they may have together; older ones make way.
	maxCookiesPerSite = 64
	maxJarBytes       = 64 << 10
	// maxCookieBytes is how many bytes a cookie may have, attributes included (RFC
	// 6265, section 6.1).
	maxCookieBytes = 4096
	// cachedSites is of how many sites the cookies are in memory, and of up to twice as many.
	cachedSites = 512
)

// Cookies are the cookies of a crawl (RFC 6265), kept in its notes. Each site, a
// domain that somebody has registered by the public suffix list, has a jar of its
// own, so that none can set cookies for another, or push them out. They are shown
// to pages and taken from them; robots.txt files and sitemaps are asked for
// without. Its methods may be called at the same time.
type Cookies struct {
	noteStore storage.Notes
	mu        sync.Mutex // guards jars
	jars      recent.Map[string, *singleSiteCookies]
}

// NewCookies returns the cookies that are kept in notes.
func NewCookies(notes storage.Notes) *Cookies {
	return &Cookies{noteStore: notes}
}

// A singleSiteCookies has the cookies of a site: as they were set, and ready for use.
type singleSiteCookies struct {
	savedCookies []savedCookie // oldest first
	cookieJar    *cookiejar.Jar
}

// A savedCookie is one cookie as it was set.
type savedCookie struct {
	SetCookieHeader string    `json:"line"` // the Set-Cookie header
	URL             string    `json:"from"` // the URL that answered with it
	SetAt           time.Time `json:"at"`
}

// addToRequest adds to req the cookies that are for its URL.
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

// storeCookies keeps the cookies that an answer to u sets. They count even where the
// notes cannot be written for now: a store that fails pauses or ends the crawl by
// itself.
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
		if len(line) <= maxCookieBytes {
			saved = append(saved, savedCookie{SetCookieHeader: line, URL: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), SetAt: now})
		}
	}
	j := newSiteCookieJar(saved, now)
	c.jars.Put(siteOf(u), j, cachedSites)
	if note, err := json.Marshal(j.savedCookies); err == nil {
		_ = c.noteStore.SetNote(ctx, decorum.Origin{}, cookiesNoteKey(siteOf(u)), note)
	}
}

// jarFor returns the jar for u, from memory or from its note. A note that cannot be
// read is as good as none.
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

func cookiesNoteKey(site string) string { return "cookies " + site }

// siteOf returns the domain under which cookies for u are shared: the host
// itself where nobody can have registered one, as for addresses.
func siteOf(u *url.URL) string { return registrable.Domain(u.Hostname()) }

// newSiteCookieJar returns a jar of the cookies in saved: of several of one identity the last
// counts, and cookies that have expired are left out.
func newSiteCookieJar(saved []savedCookie, now time.Time) *singleSiteCookies {
	// The options hold no error.
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

// parse returns the cookie, with a Max-Age made an Expires, and where it is from;
// nil if it is none, or is for a domain that its host is not in (RFC 6265, section
// 5.3, step 6): it must not take the place of one that is.
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

// cookieDomain returns the domain that a cookie is for, empty if for its host alone.
func cookieDomain(cookie *http.Cookie) string {
	return strings.ToLower(strings.TrimPrefix(cookie.Domain, "."))
}

// cookieIdentity returns what two settings of the same cookie have in common (RFC 6265,
// section 5.3, step 11).
func cookieIdentity(cookie *http.Cookie, from *url.URL) string {
	domain := cmp.Or(cookieDomain(cookie), "="+from.Hostname())
	dir := from.Path[:max(0, strings.LastIndexByte(from.Path, '/'))]
	path := cookie.Path
	if !strings.HasPrefix(path, "/") {
		path = cmp.Or(dir, "/")
	}
	return strings.Join([]string{cookie.Name, domain, path}, ";")
}
