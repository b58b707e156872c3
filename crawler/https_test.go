package crawler_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
)

// A schemeWeb is a web of one host whose answers depend on the scheme, which crawltest's sites do
// not see.
type schemeWeb struct {
	web    *crawltest.Web
	answer func(u string) (status int, location string, err error) // status 0: the web's own answer
}

func (s schemeWeb) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.web.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	status, to, err := s.answer(r.URL.String())
	if err != nil {
		res.Body.Close()
		return nil, err
	}
	if status != 0 {
		res.StatusCode = status
	}
	if to != "" {
		res.Header.Set("Location", to)
	}
	return res, nil
}

// redirectToHTTPS redirects every URL to https.
func redirectToHTTPS(u string) (status int, location string, err error) {
	if rest, ok := strings.CutPrefix(u, "http://"); ok && !strings.HasSuffix(u, "/robots.txt") {
		return http.StatusMovedPermanently, "https://" + rest, nil
	}
	return 0, "", nil
}

// TestUpgradesToHTTPS: if a host redirects everything to https, only three of its pages are
// requested on http; if it redirects in a circle, each page is requested once on both.
func TestUpgradesToHTTPS(t *testing.T) {
	const pages = 20
	for _, tt := range []struct {
		name                    string
		answer                  func(string) (int, string, error)
		httpVisits, httpsVisits int
		upgraded                bool
	}{
		{"https", redirectToHTTPS, 3, pages + 1, true},
		{"both", func(string) (int, string, error) { return 0, "", nil }, pages + 1, 0, false},
		{"circle", func(u string) (int, string, error) {
			if rest, ok := strings.CutPrefix(u, "https://"); ok && !strings.HasSuffix(u, "/robots.txt") {
				return http.StatusFound, "http://" + rest, nil
			}
			return redirectToHTTPS(u)
		}, 4, 4, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				next := func(r crawltest.PageRequest) crawltest.Response {
					n, _ := strconv.Atoi(strings.TrimPrefix(r.Path, "/"))
					if n >= pages {
						return crawltest.HTML("the end")
					}
					return crawltest.HTML(fmt.Sprintf("<a href=http://a.test/%d>next</a>", n+1))
				}
				web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: next})
				c := newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{}, "http://a.test/0")
				if tt.name == "circle" {
					addSeeds(t, c, "http://a.test/1", "http://a.test/2", "http://a.test/3")
				}
				c.Fetcher = newFetcher(t, schemeWeb{web, tt.answer})
				runCrawl(t, c)
				var httpVisits, secure int
				for _, x := range web.Log() {
					switch {
					case strings.HasSuffix(x.URL, "/robots.txt"):
					case strings.HasPrefix(x.URL, "https://"):
						secure++
					default:
						httpVisits++
					}
				}
				if httpVisits != tt.httpVisits || secure != tt.httpsVisits {
					t.Errorf("%d visits on http, %d on https, want %d and %d", httpVisits, secure,
						tt.httpVisits, tt.httpsVisits)
				}
				if s := c.Stats(); (s.HTTPSUpgrades > 0) != tt.upgraded {
					t.Errorf("%d links were folded", s.HTTPSUpgrades)
				}
			})
		})
	}
}

// TestPartlyOnHTTPS: only a part of the host is on https. A URL that was found on http,
// upgraded and does not exist on https is requested once on http, whatever the answer.
func TestPartlyOnHTTPS(t *testing.T) {
	const start = "http://a.test/ https://a.test/ http://a.test/1 https://a.test/1 http://a.test/2 https://a.test/2 "
	noTLS := tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}
	for _, tt := range []struct {
		name, robots, links string
		answer              func(u string) (status int, location string, err error) // of pages beyond the first three
		want                string                                                  // requests, in order
		// scheme on which links that are found later are queued
		later string
	}{
		{"there", "", "/x", func(u string) (int, string, error) {
			if strings.HasPrefix(u, "https:") {
				return http.StatusNotFound, "", nil
			}
			return 0, "", nil
		}, "https://a.test/x http://a.test/x", "http"},
		{"on https", "", "/x /y", func(string) (int, string, error) {
			return 0, "", nil
		}, "https://a.test/x https://a.test/y", "https"},
		{"back to https", "", "/x", func(u string) (int, string, error) {
			if strings.HasPrefix(u, "https:") {
				return http.StatusGone, "", nil
			}
			return redirectToHTTPS(u)
		}, "https://a.test/x http://a.test/x", "https"},
		// A page on neither scheme says nothing about the origin.
		{"nowhere", "", "/x /y", func(string) (int, string, error) { return http.StatusNotFound, "", nil },
			"https://a.test/x https://a.test/y http://a.test/x http://a.test/y", "https"},
		{"disallowed", "User-agent: *\nDisallow: /x\n", "/x", func(string) (int, string, error) {
			return http.StatusNotFound, "", nil
		}, "", "https"},
		{"with a parameter", "User-agent: *\nClean-param: sid\n", "/x?sid=1", func(u string) (int, string, error) {
			if u == "http://a.test/x?sid=1" {
				return 0, "", nil
			}
			return http.StatusNotFound, "", nil
		}, "https://a.test/x https://a.test/x?sid=1 http://a.test/x http://a.test/x?sid=1", "http"},
		// Each redirect on http leads to a page that is upgraded to https again.
		{"redirects without end", "", "/9", func(u string) (int, string, error) {
			rest, ok := strings.CutPrefix(u, "http://a.test/")
			n, _ := strconv.Atoi(rest)
			if !ok {
				return http.StatusNotFound, "", nil
			}
			return http.StatusFound, fmt.Sprintf("http://a.test/%d", n+1), nil
		}, "https://a.test/9 http://a.test/9 http://a.test/10 http://a.test/11 http://a.test/12", "http"},
		{"TLS fails", "", "/x", func(u string) (int, string, error) {
			if strings.HasPrefix(u, "https:") && !strings.HasSuffix(u, "/robots.txt") {
				return 0, "", noTLS
			}
			return 0, "", nil
		}, "https://a.test/x https://a.test/x http://a.test/x", "http"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pages := map[string]crawltest.PageFunc{"/": pageWithLinks("http://a.test/1"),
					"/1": pageWithLinks("http://a.test/2"), "/2": pageWithLinks(httpLinks(tt.links)...)}
				web := crawltest.New(crawltest.Site{Host: "a.test", Robots: robotsText(tt.robots, 0, nil), Pages: pages,
					Fallback: pageWithLinks()})
				c := newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{MaxRedirects: 3}, "http://a.test/")
				c.Fetcher = newFetcher(t, schemeWeb{web, func(u string) (int, string, error) {
					if path := u[strings.Index(u, "a.test"):]; pages[strings.TrimPrefix(path, "a.test")] != nil ||
						strings.HasSuffix(u, "/robots.txt") {
						return redirectToHTTPS(u)
					}
					return tt.answer(u)
				}})
				runCrawl(t, c)
				var got []string
				for _, x := range web.Log() {
					if !strings.HasSuffix(x.URL, "/robots.txt") {
						got = append(got, x.URL)
					}
				}
				if want := strings.Fields(start + tt.want); !slices.Equal(got, want) {
					t.Errorf("requested\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				link, err := decorum.ParseURL("http://a.test/later")
				if err != nil {
					t.Fatal(err)
				}
				if got, err := c.Frontier.UpgradeIfOriginMovedToHTTPS(t.Context(), link); err != nil ||
					got.Origin().Scheme() != tt.later {
					t.Errorf("later links on http are queued as %s (%v), want %s", got, err, tt.later)
				}
			})
		})
	}
}

// httpLinks returns links to paths of a.test.
func httpLinks(paths string) (links []string) {
	for path := range strings.FieldsSeq(paths) {
		links = append(links, "http://a.test"+path)
	}
	return links
}

// TestHTTPSIsDown: while the robots.txt of https cannot be fetched, URLs found on http are no
// longer upgraded.
func TestHTTPSIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks()})
		c := newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{}, "http://a.test/1",
			"http://a.test/2", "http://a.test/3")
		c.Fetcher = newFetcher(t, schemeWeb{web, func(u string) (int, string, error) {
			if strings.HasPrefix(u, "https:") {
				return 0, "", syscall.ECONNREFUSED
			}
			if strings.HasSuffix(u, "/4") {
				return 0, "", nil
			}
			return redirectToHTTPS(u)
		}})
		if err := c.Run(t.Context()); !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
			t.Fatal(err)
		}
		addSeeds(t, c, "http://a.test/4")
		if err := c.Run(t.Context()); !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
			t.Fatal(err)
		}
		if _, times := countRequests(web.Log()); times["http://a.test/4"] != 1 {
			t.Errorf("requests %v", times)
		}
	})
}

// TestTwinsOnHTTPAndHTTPS: if a host gives the same pages on http and https, links to http are followed
// on https after three such pages in a row; if the pages differ, both are visited.
func TestTwinsOnHTTPAndHTTPS(t *testing.T) {
	const pages = 20
	for _, tt := range []struct {
		name       string
		isAlike    bool
		httpVisits func(int) bool
	}{
		{"alike", true, func(n int) bool { return n >= 3 && n <= 6 }},
		{"different", false, func(n int) bool { return n == pages+1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				page := func(r crawltest.PageRequest) crawltest.Response {
					n, _ := strconv.Atoi(strings.TrimPrefix(r.Path, "/"))
					text := fmt.Sprintf("<a href=/%d>next</a>", n+1)
					if n >= pages {
						text = "the end"
					}
					if !tt.isAlike {
						text += r.ReceivedAt.String()
					}
					return crawltest.HTML(text)
				}
				web, store := crawltest.New(crawltest.Site{Host: "a.test", Fallback: page}), newMemoryStore()
				runCrawl(t, newScopedCrawl(t, web, store, frontier.ScopeConfig{}, "http://a.test/0", "https://a.test/0"))
				httpVisits, httpsVisits := 0, 0
				for _, x := range web.Log() {
					switch {
					case strings.HasSuffix(x.URL, "/robots.txt"):
					case strings.HasPrefix(x.URL, "https://"):
						httpsVisits++
					default:
						httpVisits++
					}
				}
				if !tt.httpVisits(httpVisits) || httpsVisits != pages+1 {
					t.Errorf("%d visits on http, %d on https", httpVisits, httpsVisits)
				}
				// A later run knows it from the store.
				again := newScopedCrawl(t, web, store, frontier.ScopeConfig{}, "http://a.test/0")
				u, err := again.Frontier.UpgradeIfOriginMovedToHTTPS(t.Context(), parseURL(t, "http://a.test/x"))
				if isUpgraded := strings.HasPrefix(u.String(), "https:"); err != nil || isUpgraded != tt.isAlike {
					t.Errorf("a link of a later run: %v, %v", u, err)
				}
			})
		})
	}
}

// TestDeadTwin: a crawl waits neither for https nor for http where no server has ever answered, if the
// other of the two has; a host of which nothing has answered is tried three times.
func TestDeadTwin(t *testing.T) {
	for _, tt := range []struct {
		seed, link, dead string
		err              error
		isShort          bool // the crawl does not wait
	}{
		{"http://a.test/", "https://a.test/x", "https://a.test", syscall.ECONNREFUSED, true},
		{"http://a.test/", "https://a.test/x", "https://a.test", os.ErrDeadlineExceeded, true},
		{"https://a.test/", "http://a.test/x", "http://a.test", syscall.ECONNRESET, true},
		{"http://a.test/", "http://b.test/x", "http://b.test", syscall.ECONNREFUSED, false},
		// The server answers with errors.
		{"http://a.test/", "https://a.test/x", "https://a.test", nil, false},
		// The site is on https, where its server fails for a while.
		{"http://a.test/go", "https://a.test/go", "https://a.test", syscall.ECONNREFUSED, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks(tt.link, "/y")},
				crawltest.Site{Host: "b.test"})
			store := newMemoryStore()
			c := newCrawl(t, web, store, tt.seed)
			c.Fetcher = newFetcher(t, schemeWeb{web, func(u string) (int, string, error) {
				switch {
				case strings.HasPrefix(u, tt.dead) && tt.err == nil:
					return 503, "", nil
				case strings.HasPrefix(u, tt.dead):
					return 0, "", tt.err
				case strings.HasSuffix(u, "/go"):
					return redirectToHTTPS(u)
				}
				return 0, "", nil
			}})
			for run := range 2 {
				begin := time.Now()
				if err := c.Run(t.Context()); !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
					t.Errorf("%s, run %d: %v, want ErrOnlySuspendedLeft", tt.dead, run, err)
				}
				if took := time.Since(begin); (run == 0 || tt.isShort) && (took < time.Minute) != tt.isShort {
					t.Errorf("%s: the crawl took %v", tt.dead, took)
				}
				if err := c.Frontier.EndSuspensionsExcept(t.Context(), c.ShouldStaySuspended); err != nil {
					t.Fatal(err)
				}
			}
			if n, err := countsOf(store); err != nil || n.QueuedURLs != 1 {
				t.Errorf("%s: %+v, %v; want the link still queued", tt.dead, n, err)
			}
		})
	}
}

// TestTwinsCloseNoPattern: the pages of a site on https, which repeat those that were visited on http, close
// no pattern of both.
func TestTwinsCloseNoPattern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := ""
		for i := range 30 {
			links += fmt.Sprintf("<a href=/d/%d>", i)
		}
		page := func(r crawltest.PageRequest) crawltest.Response {
			switch r.Path {
			case "/", "/list":
				return crawltest.HTML(r.Path + links)
			case "/d/29":
				return crawltest.HTML("<a href=https://a.test/list>")
			}
			return crawltest.HTML("page " + r.Path)
		}
		web, store := crawltest.New(crawltest.Site{Host: "a.test", Fallback: page}), newMemoryStore()
		scope := frontier.ScopeConfig{MaxDuplicatesPerPattern: 2}
		runCrawl(t, newScopedCrawl(t, web, store, scope, "http://a.test/"))
		if pages := requestedPages(web); len(pages) != 1+30+1+1+30 {
			t.Errorf("%d visits, want 31 on each scheme and robots.txt on https: %q", len(pages), pages)
		}
		if closed, err := frontier.LoadClosedPatterns(t.Context(), store); err != nil || len(closed.List("")) > 0 {
			t.Errorf("closed: %v, %v", closed.List(""), err)
		}
	})
}

// A robotsOnHTTPS answers the robots.txt of a.test on https with body.
type robotsOnHTTPS struct {
	crawler.Fetcher
	body string
}

func (f robotsOnHTTPS) Fetch(ctx context.Context, ticket crawler.Ticket) (*decorum.Response, error) {
	res, err := f.Fetcher.Fetch(ctx, ticket)
	if err == nil && ticket.URL().String() == "https://a.test/robots.txt" {
		res.Status, res.Body = 200, []byte(f.body)
	}
	return res, err
}

// TestTwinDisallowedOnHTTPS: a URL whose twin on https is disallowed is visited on http, which has a
// robots.txt of its own.
func TestTwinDisallowedOnHTTPS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := func(r crawltest.PageRequest) crawltest.Response {
			n, _ := strconv.Atoi(strings.TrimPrefix(r.Path, "/"))
			if n == 10 {
				return crawltest.HTML("<a href=http://a.test/closed>")
			}
			return crawltest.HTML(fmt.Sprintf("%s <a href=/%d>", r.Path, n+1))
		}
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: page,
			Pages: map[string]crawltest.PageFunc{"/closed": crawltest.StaticPage(crawltest.HTML("the end"))}})
		c := newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{}, "http://a.test/0", "https://a.test/0")
		c.Fetcher = robotsOnHTTPS{c.Fetcher, "User-agent: *\nDisallow: /closed\n"}
		runCrawl(t, c)
		var visits []string
		for _, x := range web.Log() {
			if strings.HasSuffix(x.URL, "/closed") {
				visits = append(visits, x.URL)
			}
		}
		if want := []string{"http://a.test/closed"}; !slices.Equal(visits, want) {
			t.Errorf("visits %q, want %q", visits, want)
		}
	})
}
