package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"golang.org/x/net/html"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/bench/internal/web"
)

// crawlByNetHTTP requests every page and discards it: the minimum cost of any crawler on net/http.
func crawlByNetHTTP(p childProcessTask) error {
	transport, err := p.transport()
	if err != nil {
		return err
	}
	transport.MaxIdleConnsPerHost = p.Workers
	client := &http.Client{Transport: transport}
	var next atomic.Int64
	return program.RunWorkers(p.Workers, func(int) (err error) {
		buf := make([]byte, 32<<10)
		for i := int(next.Add(1)) - 1; i < p.Web.numPages() && err == nil; i = int(next.Add(1)) - 1 {
			err = fetchAndDiscardPage(client, p.Web.originOf(i%p.Web.Hosts)+web.PagePath(i/p.Web.Hosts), buf)
		}
		return err
	})
}

// fetchAndDiscardPage fetches a page, reads it through buf, and discards it.
func fetchAndDiscardPage(client *http.Client, url string, buf []byte) error {
	res, err := client.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, res.Body, buf)
	return err
}

// crawlByTokenizer follows links with the minimum of a crawler: net/http, the tokenizer of
// x/net/html, URLs resolved by net/url, and a map of known URLs. It requests no robots.txt and
// writes no files.
func crawlByTokenizer(p childProcessTask) error {
	transport, err := p.transport()
	if err != nil {
		return err
	}
	transport.MaxIdleConnsPerHost = p.Workers
	client := &http.Client{Transport: transport}
	found := newLinkQueue(p.Web.seedURL())
	return program.RunWorkers(p.Workers, func(int) (errs error) {
		var body bytes.Buffer
		for {
			page, ok := found.nextPage()
			if !ok {
				return errs
			}
			links, err := fetchLinks(client, page, &body)
			errs = errors.Join(errs, err)
			found.finishPageWithLinks(links)
		}
	})
}

// fetchLinks fetches a page, using body as its buffer, and returns the absolute URLs of its links.
func fetchLinks(client *http.Client, page string, body *bytes.Buffer) (links []string, err error) {
	res, err := client.Get(page)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body.Reset()
	if _, err := body.ReadFrom(res.Body); err != nil {
		return nil, err
	}
	// Resolve the href of each a element.
	for tokens := html.NewTokenizer(bytes.NewReader(body.Bytes())); ; {
		switch tokens.Next() {
		case html.ErrorToken:
			if err := tokens.Err(); err != io.EOF {
				return nil, err
			}
			return links, nil
		case html.StartTagToken, html.SelfClosingTagToken:
			href, ok := anchorHref(tokens)
			if !ok {
				continue
			}
			to, err := res.Request.URL.Parse(href)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", page, err)
			}
			links = append(links, to.String())
		}
	}
}

// anchorHref returns the href of the current tag of tokens, and whether the tag is a link.
func anchorHref(tokens *html.Tokenizer) (string, bool) {
	name, more := tokens.TagName()
	if string(name) != "a" {
		return "", false
	}
	for more {
		var key, value []byte
		if key, value, more = tokens.TagAttr(); string(key) == "href" {
			return string(value), true
		}
	}
	return "", false
}

// A linkQueue is the queue of crawlByTokenizer: the known pages, and those that wait for a worker.
type linkQueue struct {
	mu         sync.Mutex // guards seen, queue and inProgress
	changed    *sync.Cond // signals changes of queue and inProgress
	seen       map[string]bool
	queue      []string
	inProgress int // pages that a worker is reading
}

// newLinkQueue returns a linkQueue with the first page.
func newLinkQueue(first string) *linkQueue {
	l := &linkQueue{seen: map[string]bool{first: true}, queue: []string{first}}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// nextPage returns a page to read. The caller must call finishPageWithLinks afterwards. It waits
// while the queue is empty but may still grow, and returns false when the crawl is over.
func (l *linkQueue) nextPage() (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 {
		if l.inProgress == 0 {
			return "", false
		}
		l.changed.Wait()
	}
	page := l.queue[0]
	l.queue = l.queue[1:]
	l.inProgress++
	return page, true
}

// finishPageWithLinks ends the work on a page, and queues the links in it that are new.
func (l *linkQueue) finishPageWithLinks(found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, to := range found {
		if !l.seen[to] {
			l.seen[to] = true
			l.queue = append(l.queue, to)
		}
	}
	l.inProgress--
	l.changed.Broadcast()
}
