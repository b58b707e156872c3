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
)

// byNetHTTP asks for every page, and does nothing with it: what any crawler on
// net/http pays at least.
func byNetHTTP(p plan) error {
	transport := redirected(p.Address)
	transport.MaxIdleConnsPerHost = p.Workers
	client := &http.Client{Transport: transport}
	errs := make([]error, p.Workers)
	var next atomic.Int64
	var wg sync.WaitGroup
	for worker := range p.Workers {
		wg.Go(func() {
			buf := make([]byte, 32<<10)
			for {
				i := int(next.Add(1)) - 1
				if i >= p.Web.size() || errs[worker] != nil {
					return
				}
				errs[worker] = read(client, "http://"+hostName(i%p.Web.Hosts)+path(i/p.Web.Hosts), buf)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// read reads a page through buf.
func read(client *http.Client, url string, buf []byte) error {
	res, err := client.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, res.Body, buf)
	return err
}

// byTokenizer follows links as the least of a crawler does: net/http, the tokenizer
// of x/net/html, URLs resolved by net/url, and a map of those that are known. It
// asks for no robots.txt, keeps nothing, and forgets all when it ends.
func byTokenizer(p plan) error {
	transport := redirected(p.Address)
	transport.MaxIdleConnsPerHost = p.Workers
	client := &http.Client{Transport: transport}
	found := newLinks(seed())
	errs := make([]error, p.Workers)
	var wg sync.WaitGroup
	for worker := range p.Workers {
		wg.Go(func() {
			var body bytes.Buffer
			for {
				page, ok := found.next()
				if !ok {
					return
				}
				links, err := linksOf(client, page, &body)
				errs[worker] = errors.Join(errs[worker], err)
				found.add(links)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// linksOf fetches a page into body, and returns where its links lead.
func linksOf(client *http.Client, page string, body *bytes.Buffer) (links []string, err error) {
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
			href, ok := hrefOf(tokens)
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

// hrefOf returns where the tag leads that tokens has come to, if it is a link.
func hrefOf(tokens *html.Tokenizer) (string, bool) {
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

// links are the pages that are known, and those of them that wait.
type links struct {
	mu      sync.Mutex
	changed *sync.Cond
	known   map[string]bool
	waiting []string
	busy    int // pages that are being read
}

func newLinks(first string) *links {
	l := &links{known: map[string]bool{first: true}, waiting: []string{first}}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// next returns a page to be read, after which add must be called; false if there
// will be none.
func (l *links) next() (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) == 0 {
		if l.busy == 0 {
			return "", false
		}
		l.changed.Wait()
	}
	page := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.busy++
	return page, true
}

// add ends the reading of a page that has these links.
func (l *links) add(found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, to := range found {
		if !l.known[to] {
			l.known[to] = true
			l.waiting = append(l.waiting, to)
		}
	}
	l.busy--
	l.changed.Broadcast()
}
