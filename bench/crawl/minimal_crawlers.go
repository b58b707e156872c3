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

// crawlByNetHTTP asks for every page, and does nothing with it: what any crawler on
// net/http pays at least.
func crawlByNetHTTP(p childProcessTask) error {
	transport := transportTo(p.Address)
	transport.MaxIdleConnsPerHost = p.Workers
	client := &http.Client{Transport: transport}
	var next atomic.Int64
	return program.RunWorkers(p.Workers, func(int) (err error) {
		buf := make([]byte, 32<<10)
		for i := int(next.Add(1)) - 1; i < p.Web.numPages() && err == nil; i = int(next.Add(1)) - 1 {
			err = fetchAndDiscardPage(client, "http://"+hostName(i%p.Web.Hosts)+web.PagePath(i/p.Web.Hosts), buf)
		}
		return err
	})
}

// fetchAndDiscardPage reads a page through buf.
func fetchAndDiscardPage(client *http.Client, url string, buf []byte) error {
	res, err := client.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, res.Body, buf)
	return err
}

// crawlByTokenizer follows links as the least of a crawler does: net/http, the tokenizer
// of x/net/html, URLs resolved by net/url, and a map of those that are known. It
// asks for no robots.txt, keeps nothing, and forgets all when it ends.
func crawlByTokenizer(p childProcessTask) error {
	transport := transportTo(p.Address)
	transport.MaxIdleConnsPerHost = p.Workers
	client := &http.Client{Transport: transport}
	found := newLinkQueue(seedURL())
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

// fetchLinks fetches a page into body, and returns where its links lead.
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

// anchorHref returns where the tag leads that tokens has come to, if it is a link.
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

// linkQueue are the pages that are known, and those of them that wait.
type linkQueue struct {
	mu         sync.Mutex
	changed    *sync.Cond
	seen       map[string]bool
	queue      []string
	inProgress int // pages that are being read
}

func newLinkQueue(first string) *linkQueue {
	l := &linkQueue{seen: map[string]bool{first: true}, queue: []string{first}}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// nextPage returns a page to be read, after which add must be called; false if there
// will be none.
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

// finishPageWithLinks ends the reading of a page that has these links.
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
