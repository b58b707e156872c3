package collyfetch

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
)

const (
	// maxCookies is how many cookies a site may have set, and maxJar how many
	// bytes they may have together; older ones make way.
	maxCookies = 64
	maxJar     = 64 << 10
	// maxCookie is how many bytes a cookie may have, attributes included (RFC
	// 6265, section 6.1).
	maxCookie = 4096
	// maxSites is of how many sites the cookies are in memory.
	maxSites = 512
)

// Notes is where cookies are kept. Every storage.Store is one.
type Notes interface {
	// Note returns what SetNote kept, nil if nothing.
	Note(ctx context.Context, o decorum.Origin, key string) ([]byte, error)
	// SetNote keeps value.
	SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error
}

// Cookies are the cookies of a crawl (RFC 6265), kept in its notes. Each site, a
// domain that somebody has registered by the public suffix list, has a jar of its
// own, so that none can set cookies for another, or push them out. They are shown
// to pages and taken from them; robots.txt files and sitemaps are asked for
// without. Its methods may be called at the same time.
type Cookies struct {
	notes Notes
	mu    sync.Mutex
	sites map[string]*jar
}

// NewCookies returns the cookies that are kept in notes.
func NewCookies(notes Notes) *Cookies {
	return &Cookies{notes: notes, sites: map[string]*jar{}}
}

// A jar has the cookies of a site: as they were set, and ready for use.
type jar struct {
	set   []crumb // oldest first
	ready *cookiejar.Jar
}

// A crumb is one cookie as it was set.
type crumb struct {
	SetCookieHeader string    `json:"line"` // the Set-Cookie header
	From            string    `json:"from"` // the URL that answered with it
	At              time.Time `json:"at"`
}

// show adds to req the cookies that are for its URL.
func (c *Cookies) show(ctx context.Context, req *http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	j, err := c.of(ctx, req.URL)
	if err != nil {
		return err
	}
	cookies := j.ready.Cookies(req.URL)
	if len(cookies) > 0 {
		req.Header = req.Header.Clone()
	}
	for _, cookie := range cookies {
		req.AddCookie(cookie)
	}
	return nil
}

// take keeps the cookies that an answer to u sets. They count even where the
// notes cannot be written for now: a store that fails pauses or ends the crawl by
// itself.
func (c *Cookies) take(ctx context.Context, u *url.URL, res *http.Response) {
	lines := res.Header.Values("Set-Cookie")
	if len(lines) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old, err := c.of(ctx, u)
	if err != nil {
		return
	}
	set, now := slices.Clone(old.set), time.Now()
	for _, line := range lines[max(0, len(lines)-maxCookies):] {
		if len(line) <= maxCookie {
			set = append(set, crumb{SetCookieHeader: line, From: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), At: now})
		}
	}
	j := newJar(set, now)
	c.sites[siteOf(u)] = j
	if note, err := json.Marshal(j.set); err == nil {
		_ = c.notes.SetNote(ctx, decorum.Origin{}, noteOf(siteOf(u)), note)
	}
}

// of returns the jar for u, from memory or from its note. A note that cannot be
// read is as good as none.
func (c *Cookies) of(ctx context.Context, u *url.URL) (*jar, error) {
	site := siteOf(u)
	if j := c.sites[site]; j != nil {
		return j, nil
	}
	note, err := c.notes.Note(ctx, decorum.Origin{}, noteOf(site))
	if err != nil {
		return nil, err
	}
	var set []crumb
	if len(note) > 0 && json.Unmarshal(note, &set) != nil {
		set = nil
	}
	for other := range c.sites {
		if len(c.sites) < maxSites {
			break
		}
		delete(c.sites, other) // it is in its note
	}
	j := newJar(set, time.Now())
	c.sites[site] = j
	return j, nil
}

func noteOf(site string) string { return "cookies " + site }

// siteOf returns the domain under which cookies for u are shared: the host
// itself where nobody can have registered one, as for addresses.
func siteOf(u *url.URL) string {
	host := u.Hostname()
	site, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return site
}

// newJar returns a jar of what set says now: of crumbs for the same cookie the
// last counts, and those that are over are left out.
func newJar(set []crumb, now time.Time) *jar {
	// The options hold no error.
	ready, _ := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List})
	j := &jar{ready: ready}
	place := map[string]int{}
	for _, c := range set {
		cookie, from := c.read()
		if cookie == nil {
			continue
		}
		id := sameness(cookie, from)
		if i, known := place[id]; known {
			j.set[i] = crumb{}
			delete(place, id)
		}
		if cookie.MaxAge >= 0 && (cookie.Expires.IsZero() || cookie.Expires.After(now)) {
			place[id] = len(j.set)
			j.set = append(j.set, c)
		}
	}
	j.set = slices.DeleteFunc(j.set, func(c crumb) bool { return c == crumb{} })
	j.trim()
	for _, c := range j.set {
		cookie, from := c.read()
		j.ready.SetCookies(from, []*http.Cookie{cookie})
	}
	return j
}

// trim takes the oldest crumbs out that are too many.
func (j *jar) trim() {
	first, size := len(j.set), 0
	for first > 0 && len(j.set)-first < maxCookies {
		size += len(j.set[first-1].SetCookieHeader) + len(j.set[first-1].From)
		if size > maxJar {
			break
		}
		first--
	}
	j.set = j.set[first:]
}

// read returns the cookie, with a Max-Age made an Expires, and where it is from;
// nil if it is none, or is for a domain that its host is not in (RFC 6265, section
// 5.3, step 6): it must not take the place of one that is.
func (c crumb) read() (*http.Cookie, *url.URL) {
	cookie, err := http.ParseSetCookie(c.SetCookieHeader)
	from, urlErr := url.Parse(c.From)
	if err != nil || urlErr != nil {
		return nil, nil
	}
	if domain := domainOf(cookie); domain != "" && !strings.HasSuffix("."+from.Hostname(), "."+domain) {
		return nil, nil
	}
	if cookie.MaxAge > 0 {
		age := min(time.Duration(cookie.MaxAge), 400*24*3600) * time.Second
		cookie.Expires, cookie.MaxAge = c.At.Add(age), 0
	}
	return cookie, from
}

// domainOf returns the domain that a cookie is for, empty if for its host alone.
func domainOf(cookie *http.Cookie) string {
	return strings.ToLower(strings.TrimPrefix(cookie.Domain, "."))
}

// sameness returns what two crumbs for the same cookie have in common (RFC 6265,
// section 5.3, step 11).
func sameness(cookie *http.Cookie, from *url.URL) string {
	domain := cmp.Or(domainOf(cookie), "="+from.Hostname())
	dir := from.Path[:max(0, strings.LastIndexByte(from.Path, '/'))]
	path := cookie.Path
	if !strings.HasPrefix(path, "/") {
		path = cmp.Or(dir, "/")
	}
	return strings.Join([]string{cookie.Name, domain, path}, ";")
}
