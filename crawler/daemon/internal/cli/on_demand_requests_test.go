package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/decorum-crawler/decorum/internal/testfile"
)

// A requestRecorder is a server of several hosts that records the requests it gets.
type requestRecorder struct {
	*httptest.Server
	mu       sync.Mutex // guards requests
	requests []string   // "host/path", with the product tokens of agents other than decorum
}

// newRequestRecorder returns a server. The robots.txt of every host names a sitemap and disallows
// /closed; that of moved.test redirects, that of down.test fails, and that of slow.test has a
// Crawl-delay.
func newRequestRecorder(t *testing.T) *requestRecorder {
	s := &requestRecorder{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		request := r.Host + r.URL.RequestURI()
		if agent, _, _ := strings.Cut(r.UserAgent(), "/"); agent != "decorum" {
			request += " by " + cmp.Or(agent, "nobody")
		}
		s.requests = append(s.requests, request)
		robots := "User-agent: *\nDisallow: /closed\nClean-param: x\nSitemap: http://" + r.Host + "/named.xml\n"
		switch {
		case r.Host == "moved.test" && r.URL.Path == "/robots.txt":
			http.Redirect(w, r, "http://moved.test/to", http.StatusFound)
		case r.Host == "moved.test" && r.URL.Path == "/to":
			http.Redirect(w, r, "http://a.test/of-moved.txt", http.StatusFound)
		case r.Host == "down.test":
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.Host == "none.test" && r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
		case r.Host == "late.test" && r.URL.Path == "/robots.txt":
			fmt.Fprint(w, robots, "Crawl-delay: 7200\n")
		case r.URL.Path == "/robots.txt", r.URL.Path == "/of-moved.txt":
			fmt.Fprint(w, robots)
		case r.URL.Path == "/moved.xml":
			http.Redirect(w, r, "/page.xml?x=1&sid=0123456789abcdef0123456789abcdef", http.StatusFound)
		case r.URL.Path == "/busy.xml":
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/index.xml":
			fmt.Fprintf(
				w, "<sitemapindex><sitemap><loc>http://%[1]s/moved.xml</loc></sitemap><sitemap><loc>http://%[1]s/closed.xml</loc></sitemap>"+
					"<sitemap><loc>http://b.test/page.xml?x=2</loc></sitemap></sitemapindex>", r.Host)
		case strings.HasSuffix(r.URL.Path, ".xml"):
			fmt.Fprintf(w, "<urlset><url><loc>http://%s/page</loc></url></urlset>", r.Host)
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<a href="/linked">linked</a>`)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// takeRequests returns the requests since the last call.
func (s *requestRecorder) takeRequests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// TestRequestsOfCommandsThatAsk checks that each command which answers a question sends only the
// requests that the answer needs: robots.txt once for each origin, and no sitemaps that it names, no
// tdmrep.json although the project mines text, no links or redirects of a page, and no request twice.
func TestRequestsOfCommandsThatAsk(t *testing.T) {
	s := newRequestRecorder(t)
	addr := strings.TrimPrefix(s.URL, "http://")
	projectFile := testfile.Write(t, "project.yaml",
		"agent: {contact: mailto:bot@example.com}\nseeds: [http://a.test/]\n"+
			"store: {path: "+t.TempDir()+
			"}\npoliteness: {delay: 10ms}\nrobots: {purpose: [ai-train]}\n"+
			"fetch: {allow_private: true, connect_to: [\"::"+addr+"\"]}\n")
	fetchFlags := []string{"--allow-private", "--connect-to=::" + addr}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want []string // requests
		says string   // part of what it prints
	}{
		{"robots check", []string{"robots", "check", "--agent=bot", "http://a.test/", "http://a.test/closed",
			"https://none.test.invalid:1/", "http://b.test/", "http://a.test/x"}, 1,
			[]string{"a.test/robots.txt", "b.test/robots.txt"},
			"cannot fetch https://none.test.invalid:1/robots.txt: robots https://none.test.invalid:1/robots.txt: " +
				"unreachable: robots.txt: fetch https://none.test.invalid:1/robots.txt: unreachable: http: server " +
				"gave HTTP response to HTTPS client; closed until 2"},
		{"robots check, redirects", []string{"robots", "check", "--agent=bot", "http://moved.test/",
			"http://moved.test/closed"}, 3,
			[]string{"moved.test/robots.txt", "moved.test/to", "a.test/of-moved.txt"}, ""},
		{"robots check, no answer", []string{"robots", "check", "--agent=bot", "http://down.test/",
			"http://down.test/x", "http://none.test/"}, 1,
			[]string{"down.test/robots.txt", "none.test/robots.txt"},
			"cannot fetch http://down.test/robots.txt: robots http://down.test/robots.txt: unreachable: robots.txt: " +
				"status 503; closed until 2"},
		{"robots check --file", []string{"robots", "check", "--agent=bot", "--file=http://a.test/robots.txt",
			"http://b.test/", "http://c.test/"}, 0,
			[]string{"a.test/robots.txt"}, ""},
		{"robots lint", []string{"robots", "lint", "http://a.test/robots.txt"}, 0, []string{"a.test/robots.txt"}, ""},
		{"robots diff", []string{"robots", "diff", "http://a.test/robots.txt", "http://b.test/robots.txt"}, 3,
			[]string{"a.test/robots.txt", "b.test/robots.txt"}, ""},
		{"sitemap", []string{"sitemap", "--delay=10ms",
			"http://a.test/page.xml?x=1&sid=0123456789abcdef0123456789abcdef"}, 0,
			[]string{"a.test/robots.txt", "a.test/page.xml?x=1&sid=0123456789abcdef0123456789abcdef"}, ""},
		{"sitemap --follow", []string{"sitemap", "--delay=10ms", "--follow", "http://a.test/index.xml"}, 1,
			[]string{"a.test/robots.txt", "a.test/index.xml", "a.test/moved.xml",
				"b.test/robots.txt", "b.test/page.xml?x=2",
				"a.test/page.xml?x=1&sid=0123456789abcdef0123456789abcdef"},
			"decorum: http://a.test/closed.xml: robots http://a.test/closed.xml: disallowed by robots.txt: " +
				"disallow: /closed (line 2, group *)\n"},
		{"sitemap, busy", []string{"sitemap", "--delay=10ms", "http://a.test/busy.xml"}, 1,
			[]string{"a.test/robots.txt", "a.test/busy.xml"}, "decorum: http://a.test/busy.xml: status 503\n"},
		{"sitemap, closed", []string{"sitemap", "--delay=10ms", "http://a.test/closed.xml"}, 1,
			[]string{"a.test/robots.txt"},
			"decorum: http://a.test/closed.xml: robots http://a.test/closed.xml: disallowed by robots.txt: " +
				"disallow: /closed (line 2, group *)\n"},
		{"sitemap, too long a pause", []string{"sitemap", "--delay=10ms", "http://late.test/page.xml"}, 1,
			[]string{"late.test/robots.txt"},
			"decorum: http://late.test/page.xml: late.test may not be visited before 2"},
		{"explain", []string{"explain", "-c", projectFile, "http://a.test/x"}, 0, nil, ""},
		{"explain --fetch", []string{"explain", "-c", projectFile, "--fetch", "http://a.test/x"}, 0,
			[]string{"a.test/robots.txt"}, ""},
		{"explain --fetch, redirects", []string{"explain", "-c", projectFile, "--fetch", "http://moved.test/x"}, 0,
			[]string{"moved.test/robots.txt", "moved.test/to", "a.test/of-moved.txt"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.args
			if args[0] != "explain" {
				args = slices.Concat(args, fetchFlags)
			}
			r := runCommand(t, args...)
			if !strings.Contains(r.stdout+r.stderr, tt.says) {
				t.Errorf("it prints %s%s, want %q", r.stdout, r.stderr, tt.says)
			}
			if r.code != tt.code {
				t.Errorf("it ends with %d, want %d: %s", r.code, tt.code, r.stderr)
			}
			if got := s.takeRequests(); !slices.Equal(got, tt.want) {
				t.Errorf("requests\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}
