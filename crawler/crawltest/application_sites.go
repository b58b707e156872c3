package crawltest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/encoding/htmlindex"
)

// An ApplicationSite behaves as a kind of web application does that crawlers meet, and that wastes their
// visits or hides pages from them.
type ApplicationSite struct {
	Name  string // what the site does
	Site  Site
	Seeds []string
	// WantedPages holds the URLs that a good crawler visits.
	WantedPages []string
	// ExtraVisits is how many page visits more a good crawler may need: to learn, to try again, and to
	// find out that pages are the same.
	ExtraVisits int
}

// ApplicationSites returns one site of each kind, each with state of its own: crawl a site once.
func ApplicationSites() []ApplicationSite {
	return []ApplicationSite{
		failingPagesSite(), rateLimitedSite(), relativeLinkTrapSite(), mirroredTreeSite(), sessionIDSite(),
		charsetSite(), wildcardDomainSite(), embeddedPagesSite(), percentSignSite(), unlistedSitemapSite(),
		autoindexSite(), postFeedsSite(),
	}
}

// newApplicationSite returns a site at host whose home page is its only seed.
func newApplicationSite(name, host string, home PageFunc) ApplicationSite {
	return ApplicationSite{Name: name, Seeds: []string{homeURL(host)}, WantedPages: []string{homeURL(host)},
		Site: Site{Host: host, Pages: map[string]PageFunc{"/": home}, Latency: Latency{Base: 20 * time.Millisecond}}}
}

// addPage adds a page that a good crawler visits.
func (a *ApplicationSite) addPage(path string, page PageFunc) {
	a.Site.Pages[path] = page
	a.WantedPages = append(a.WantedPages, strings.TrimSuffix(a.Seeds[0], "/")+path)
}

// linksHTML returns a page with links to hrefs.
func linksHTML(title string, hrefs ...string) Response {
	var b strings.Builder
	fmt.Fprintf(&b, "<title>%s</title>", title)
	for _, href := range hrefs {
		fmt.Fprintf(&b, "<a href='%s'>%s</a>\n", href, href)
	}
	return HTML(b.String())
}

// numberedPaths returns n paths that begin with prefix.
func numberedPaths(prefix string, n int) []string {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = prefix + strconv.Itoa(i)
	}
	return paths
}

// failingPagesSite has twenty pages, and twenty that always answer 500.
func failingPagesSite() ApplicationSite {
	good, bad := numberedPaths("/good/", 20), numberedPaths("/bad/", 20)
	a := newApplicationSite("pages that always fail", "failing.test",
		StaticPage(linksHTML("home", slices.Concat(good, bad)...)))
	for i := range good {
		a.addPage(bad[i], StaticPage(Status(http.StatusInternalServerError)))
		a.addPage(good[i], StaticPage(linksHTML(good[i])))
	}
	a.ExtraVisits = 2 * len(bad) // each has three attempts
	return a
}

// A slidingWindow allows a number of requests in any window of time. Those that it refuses count, too,
// as in haproxy's http_req_rate.
type slidingWindow struct {
	limit  int
	window time.Duration

	mu       sync.Mutex // guards requests
	requests []time.Time
}

// admit counts a request at now, and reports whether it is within the limit.
func (w *slidingWindow) admit(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = slices.DeleteFunc(w.requests, func(t time.Time) bool { return now.Sub(t) >= w.window })
	w.requests = append(w.requests, now)
	return len(w.requests) <= w.limit
}

// rateLimitedSite allows 20 requests a minute and answers others with 429 and Retry-After: 5.
func rateLimitedSite() ApplicationSite {
	limit := &slidingWindow{limit: 20, window: time.Minute}
	limited := func(page Response) PageFunc {
		return func(r PageRequest) Response {
			if limit.admit(r.ReceivedAt) {
				return page
			}
			refusal := Status(http.StatusTooManyRequests)
			refusal.Header.Set("Retry-After", "5")
			return refusal
		}
	}
	paths := numberedPaths("/page/", 200)
	a := newApplicationSite("a limit of requests", "limited.test", limited(linksHTML("home", paths...)))
	for _, path := range paths {
		a.addPage(path, limited(linksHTML(path)))
	}
	a.ExtraVisits = 20
	return a
}

// relativeLinkTrapSite answers each path below /a/ with one page of relative links.
func relativeLinkTrapSite() ApplicationSite {
	paths := numberedPaths("/page", 20)
	a := newApplicationSite("relative links that multiply", "relative.test",
		StaticPage(linksHTML("home", append(paths, "/a/")...)))
	for _, path := range paths {
		a.addPage(path, StaticPage(linksHTML(path)))
	}
	a.addPage("/a/", StaticPage(linksHTML("trap", "b/", "c/", "d/", "e/")))
	a.Site.Fallback = a.Site.Pages["/a/"]
	a.ExtraVisits = 150
	return a
}

// mirroredTreeSite has a tree of directories, and links in each directory that lead back to its top, as
// symbolic links of a file server do.
func mirroredTreeSite() ApplicationSite {
	const dirs, files = 10, 20
	index := func(path string) Response {
		hrefs := numberedPaths("file", files)
		hrefs = append(hrefs, "top/")
		if strings.HasSuffix(path, "/doc/") || strings.HasSuffix(path, "/top/") {
			for i := range dirs {
				hrefs = append(hrefs, fmt.Sprintf("dir%c/", 'a'+i))
			}
		}
		return linksHTML("Index of "+path, hrefs...)
	}
	a := newApplicationSite("a tree with links to itself", "tree.test", StaticPage(linksHTML("home", "/doc/")))
	page := func(r PageRequest) Response {
		inTree := strings.TrimPrefix(r.Path[strings.LastIndex(r.Path, "/top/")+1:], "top/")
		if strings.HasSuffix(r.Path, "/") {
			return index(r.Path)
		}
		return linksHTML("the file " + strings.TrimPrefix(inTree, "doc/"))
	}
	a.Site.Fallback = page
	a.addPage("/doc/", page)
	for f := range files {
		a.addPage("/doc/file"+strconv.Itoa(f), page)
	}
	for d := range dirs {
		dir := fmt.Sprintf("/doc/dir%c/", 'a'+d)
		a.addPage(dir, page)
		for f := range files {
			a.addPage(dir+"file"+strconv.Itoa(f), page)
		}
	}
	a.ExtraVisits = 2000 // each directory leads back to the top by itself
	return a
}

// sessionIDSite adds a new session ID to the query of each link.
func sessionIDSite() ApplicationSite {
	a := newApplicationSite("session IDs in queries", "session.test", nil)
	paths := numberedPaths("/page", 20)
	page := func(r PageRequest) Response {
		var hrefs []string
		for _, path := range paths {
			hrefs = append(hrefs, fmt.Sprintf("%s?PHPSESSID=%026x", path, r.ReceivedAt.UnixNano()))
		}
		path, _, _ := strings.Cut(r.Path, "?")
		return linksHTML(path, hrefs...)
	}
	a.Site.Pages["/"] = page
	for _, path := range paths {
		a.addPage(path, page)
	}
	return a
}

// charsetSite has pages in charsets other than UTF-8, with links whose queries the site understands in
// the charset of the page alone, as browsers send them.
func charsetSite() ApplicationSite {
	a := newApplicationSite("links in the charset of the page", "charset.test", nil)
	var hrefs []string
	for _, c := range []struct{ charset, text string }{
		{"windows-1251", "Привет"}, {"windows-1250", "Łódź"}, {"gbk", "中文"}, {"shift_jis", "東京"}, {"iso-8859-1", "é"},
	} {
		encoding, err := htmlindex.Get(c.charset)
		if err != nil {
			continue // the names are those of the standard; a missing page fails the test
		}
		text, err := encoding.NewEncoder().String(c.text)
		if err != nil {
			continue
		}
		path := "/" + c.charset
		hrefs = append(hrefs, path)
		a.addPage(path, StaticPage(ResponseOfType("text/html; charset="+c.charset, "<a href='/search?q="+text+"'>")))
		a.addPage("/search?q="+url.QueryEscape(text), StaticPage(linksHTML(c.charset)))
	}
	a.Site.Pages["/"] = StaticPage(linksHTML("home", hrefs...))
	return a
}

// wildcardDomainSite answers for every name of a domain, and each page links to names that nothing else
// leads to: 20,000 in all.
func wildcardDomainSite() ApplicationSite {
	const names = 20_000
	a := newApplicationSite("a wildcard domain", "wild.test", nil)
	a.Site.Fallback = func(r PageRequest) Response {
		var n int
		fmt.Sscanf(r.Host, "host%d.", &n)
		var hrefs []string
		for next := 10*n + 1; next <= 10*n+10 && next < names; next++ {
			hrefs = append(hrefs, fmt.Sprintf("http://host%d.wild.test/", next))
		}
		return linksHTML(r.Host, hrefs...)
	}
	a.Site.Pages["/"] = a.Site.Fallback
	a.Site.AnswersSubdomains = true
	a.ExtraVisits = names
	return a
}

// embeddedPagesSite embeds its pages by elements other than links.
func embeddedPagesSite() ApplicationSite {
	a := newApplicationSite("pages in object, embed and srcdoc", "embed.test", StaticPage(HTML(
		"<object data=/object></object><embed src=/embed><iframe srcdoc='<a href=/srcdoc>x</a>'></iframe><a "+
			"href=/xhtml>")))
	for _, path := range []string{"/object", "/embed", "/srcdoc"} {
		a.addPage(path, StaticPage(linksHTML(path)))
	}
	a.addPage("/xhtml", StaticPage(ResponseOfType("application/xml",
		`<html xmlns="http://www.w3.org/1999/xhtml"><body><a href="/from-xhtml">x</a></body></html>`)))
	a.addPage("/from-xhtml", StaticPage(linksHTML("from XHTML")))
	return a
}

// percentSignSite has a page whose path has a percent sign that begins no escape.
func percentSignSite() ApplicationSite {
	a := newApplicationSite("a stray percent sign", "percent.test", StaticPage(linksHTML("home", "/100%", "/empty?")))
	a.addPage("/100%", StaticPage(linksHTML("all")))
	a.addPage("/empty?", StaticPage(linksHTML("an empty query")))
	return a
}

// unlistedSitemapSite has a sitemap that its robots.txt does not name, with a page that nothing links to.
func unlistedSitemapSite() ApplicationSite {
	a := newApplicationSite("a sitemap that robots.txt does not name", "sitemap.test", StaticPage(linksHTML("home")))
	a.Site.Pages["/sitemap.xml"] = StaticPage(ResponseOfType("text/xml",
		`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://sitemap.test/orphan</loc></url></urlset>`))
	a.addPage("/orphan", StaticPage(linksHTML("orphan")))
	return a
}

// autoindexSite has directories as Apache lists them: the head of each column is a link that sorts the list
// by it, and in the other direction if the list is sorted so already.
func autoindexSite() ApplicationSite {
	const dirs, files = 30, 5
	index := func(r PageRequest) Response {
		path, query, _ := strings.Cut(r.Path, "?")
		column, order := "N", "A"
		fmt.Sscanf(query, "C=%1s;O=%1s", &column, &order)
		var hrefs []string
		for _, c := range []string{"N", "M", "S", "D"} {
			next := "A"
			if c == column && order == "A" {
				next = "D"
			}
			hrefs = append(hrefs, "?C="+c+";O="+next)
		}
		names := numberedPaths("file", files)
		if path == "/" {
			names = nil
			for i := range dirs {
				names = append(names, fmt.Sprintf("dir%d/", i))
			}
		}
		if order == "D" {
			slices.Reverse(names)
		}
		return linksHTML("Index of "+path, append(hrefs, names...)...)
	}
	a := newApplicationSite("an autoindex with links that sort it", "autoindex.test", index)
	for d := range dirs {
		dir := fmt.Sprintf("/dir%d/", d)
		a.addPage(dir, index)
		for f := range files {
			path := dir + "file" + strconv.Itoa(f)
			a.addPage(path, StaticPage(linksHTML(path)))
		}
	}
	a.ExtraVisits = 20
	return a
}

// postFeedsSite is a blog that announces, as WordPress does, the feed of the site on each page, and on that
// of each post a feed of its comments. A post is linked by the feed of the site alone.
func postFeedsSite() ApplicationSite {
	const posts = 80
	feed := func(links ...string) Response {
		var b strings.Builder
		for _, link := range links {
			fmt.Fprintf(&b, "<item><link>http://blog.test%s</link></item>", link)
		}
		return ResponseOfType("application/rss+xml", "<rss version='2.0'><channel>"+b.String()+"</channel></rss>")
	}
	page := func(title, feeds string, links ...string) PageFunc {
		res := linksHTML(title, links...)
		for path := range strings.FieldsSeq("/feed/ /comments/feed/ " + feeds) {
			res.Body = "<link rel=alternate type='application/rss+xml' href='" + path + "'>" + res.Body
		}
		return StaticPage(res)
	}
	paths := numberedPaths("/post/", posts)
	a := newApplicationSite("a feed of each post", "blog.test", page("home", "", paths[1:]...))
	a.addPage("/feed/", StaticPage(feed(paths[:10]...)))
	a.addPage("/comments/feed/", StaticPage(feed()))
	for _, path := range paths {
		a.addPage(path, page(path, path+"/feed/"))
		a.Site.Pages[path+"/feed/"] = StaticPage(feed(path + "#comment-1"))
	}
	a.ExtraVisits = 20
	return a
}
