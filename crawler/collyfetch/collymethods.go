package collyfetch

import (
	"io"
	"net/http"

	"github.com/gocolly/colly/v2"
)

// Visit enqueues a URL. Like colly's, it returns when all that follows from it
// has been visited, unless the collector is Async, or the crawl is running, as
// it is for a callback. What follows from earlier visits that were cut short is
// visited as well. Origins that do not answer are logged, and no error.
func (c *Crawl) Visit(url string) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.Visit(url) })
}

// Head is Visit by HEAD.
func (c *Crawl) Head(url string) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.Head(url) })
}

// Post is Visit by POST, with a form for a body. It is sent once at most, however
// the program ends: see docs/colly.md.
func (c *Crawl) Post(url string, form map[string]string) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.Post(url, form) })
}

// PostRaw is Post with a body of any kind.
func (c *Crawl) PostRaw(url string, body []byte) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.PostRaw(url, body) })
}

// PostMultipart is Post with a form of several parts.
func (c *Crawl) PostMultipart(url string, form map[string][]byte) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.PostMultipart(url, form) })
}

// Request is Visit by any method but TRACE and CONNECT. By one that is not safe
// (RFC 9110, section 9.2.1) it is sent once at most, as by Post.
func (c *Crawl) Request(method, url string, body io.Reader, ctx *colly.Context, header http.Header) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.Request(method, url, body, ctx, header) })
}

// enqueueAndRunUnlessAsync enqueues and then, unless the crawl is Async or running, crawls.
func (c *Crawl) enqueueAndRunUnlessAsync(enqueue func() error) error {
	if c.async.Load() || !c.isRunning.CompareAndSwap(false, true) {
		return enqueue()
	}
	defer c.isRunning.Store(false)
	if err := c.rereadSettings(); err != nil { // Async may have been set
		return err
	}
	if err := enqueue(); err != nil || c.async.Load() {
		return err
	}
	return c.warnIfOnlySuspendedLeft(c.run(c.ctx))
}
