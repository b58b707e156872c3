package collyfetch

import (
	"context"
	"net/http"
	"sync"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
)

// warnings logs losses for which a program gets no error, or one that programs often ignore. It logs
// each once.
type warnings struct {
	queueRun  sync.Once // requests of Queue.Run
	notJoined sync.Once // requests of Clones that Collector.Clone did not make

	mu        sync.Mutex  // guards hasUnsafe, cookieURL and areLogged
	hasUnsafe bool        // a form or another unsafe request was sent
	cookieURL decorum.URL // a page that set a cookie; zero: none has
	areLogged bool        // the loss of cookies is logged
}

// logQueueRun logs that Queue.Run makes the request r.
func (w *warnings) logQueueRun(c *Collector, message string, r *colly.Request) {
	w.queueRun.Do(func() { c.Log.Error(message, "url", r.URL, "why", errUseRunQueue) })
}

// noteUnsafeRequest notes that c sends a form or another unsafe request.
func (w *warnings) noteUnsafeRequest(c *Collector) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hasUnsafe = true
	w.logLostCookiesLocked(c)
}

// noteCookies notes whether the answer of u sets a cookie.
func (w *warnings) noteCookies(c *Collector, u decorum.URL, h http.Header) {
	if len(h["Set-Cookie"]) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cookieURL = u
	w.logLostCookiesLocked(c)
}

// logLostCookiesLocked logs that a crawl which sends forms keeps no cookies, so that a login has no
// effect. The cookie may come before the form is sent.
func (w *warnings) logLostCookiesLocked(c *Collector) {
	if !w.hasUnsafe || w.cookieURL.IsZero() || w.areLogged || c.fetcher.KeepsCookies() {
		return
	}
	w.areLogged = true
	c.Log.Warn("a site set a cookie, and the crawl keeps no cookies, so a login has no effect: set "+
		"WrapOptions.KeepCookies, or fetch.cookies in a project file", "url", w.cookieURL)
}

// A cloneOf is the value, in the Context of a Clone, by which its requests are recognised.
type cloneOf struct {
	collector *Collector
	refused   sync.Once // a request was refused and logged
}

// cloneKey is the key of a *cloneOf.
type cloneKey struct{}

// Clone returns a copy of the embedded collector without its callbacks, as colly's Clone does. Its
// requests are refused until JoinCollector makes it part of the crawl.
func (c *Collector) Clone() *colly.Collector {
	clone := c.Collector.Clone()
	clone.Context = context.WithValue(c.canceledCtx, cloneKey{}, &cloneOf{collector: c})
	return clone
}

// isNamedClone reports whether ctx is the Context of a Clone that c.Clone made.
func isNamedClone(ctx context.Context, c *Collector) bool {
	clone, ok := ctx.Value(cloneKey{}).(*cloneOf)
	return ok && clone.collector == c
}

// logNotJoined logs the first refused request of each Clone, and of all Clones together that
// colly's own Clone made.
func (w *warnings) logNotJoined(c *Collector, req *http.Request) {
	once := &w.notJoined
	if clone, ok := req.Context().Value(cloneKey{}).(*cloneOf); ok {
		once = &clone.refused
	}
	once.Do(func() {
		c.Log.Error("the requests of a collector are refused", "url", req.URL, "why", errNotJoined)
	})
}
