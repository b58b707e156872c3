package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// TestHeadersAndCookies checks that the crawl sends the headers of the project, and that it sends
// cookies to pages, also after a stop and --resume.
func TestHeadersAndCookies(t *testing.T) {
	var mu sync.Mutex
	received := map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		received[r.URL.Path] = strings.Join([]string{r.Header.Get("Accept-Language"), r.Header.Get("From"),
			r.Header.Get("Cookie")}, "|")
		http.SetCookie(w, &http.Cookie{Name: "visited", Value: strings.Trim(r.URL.Path, "/"), Path: "/"})
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<a href=/b>next</a>")
	}))
	defer s.Close()
	data := filepath.Join(t.TempDir(), "data")
	project := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nseeds: ['"+s.URL+
		"/a']\nstore: {path: "+data+"}\n"+
		"politeness: {delay: 0s}\ndiscover: {sitemaps: false}\nfetch: {headers: {accept-language: cs}, cookies: "+
		"true, allow_private: true}\n")
	runCommand(t, "crawl", "-c", project, "--max-pages=1", "--progress=none").want(t, command.ExitDone)
	runCommand(t, "crawl", "--resume", "--data", data, "--max-pages=0", "--progress=none").want(t, command.ExitDone)
	mu.Lock()
	defer mu.Unlock()
	for path, want := range map[string]string{"/robots.txt": "cs|bot@example.com|", "/a": "cs|bot@example.com|",
		"/b": "cs|bot@example.com|visited=a"} {
		if received[path] != want {
			t.Errorf("%s was shown %q, want %q", path, received[path], want)
		}
	}
}

// TestProxy checks that all requests go through the proxy of --proxy, and that no output contains its
// password.
func TestProxy(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
	}))
	defer site.Close()
	var mu sync.Mutex
	var requested []string
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL = r.In.URL }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requested = append(requested, r.URL.String())
		mu.Unlock()
		forward.ServeHTTP(w, r)
	}))
	address := strings.Replace(proxy.URL, "//", "//me:geheim@", 1)
	args := []string{"crawl", "--data", filepath.Join(t.TempDir(), "data"), "--contact=mailto:bot@example.com",
		"--delay=0s", "--progress=none", "--sitemap-xml=false", "--proxy=" + address}
	r := runCommand(t, append(args, "--allow-private", site.URL+"/")...)
	r.want(t, command.ExitDone, "pages: 1 (")
	if len(requested) != 2 {
		t.Errorf("the proxy got requests for %q, want robots.txt and the page", requested)
	}
	proxy.Close()
	r = runCommand(t, append(args, "--fresh", "--max-time=2s", "--allow-private", site.URL+"/")...)
	if strings.Contains(r.stdout+r.stderr, "geheim") || !strings.Contains(r.stderr, "connection refused") {
		t.Errorf("without the proxy:\n%s%s", r.stdout, r.stderr)
	}
	r = runCommand(t, append(args, "--fresh", "--max-time=2s", site.URL+"/")...)
	if !strings.Contains(r.stderr, "forbidden address") {
		t.Errorf("the host is private:\n%s%s", r.stdout, r.stderr)
	}
}
